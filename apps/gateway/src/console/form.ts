import type { IncomingHttpHeaders } from 'node:http';
import type { Failure } from '@order-gateway/domain/failure';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { isForm } from '../http/requests.ts';

/** A submitted form, with its files by the names of their fields. A field without a chosen file is absent. */
export interface SentForm {
  readonly form: URLSearchParams;
  readonly files: ReadonlyMap<string, Uint8Array>;
}

/** Whether a request has the media type of a form. With `hasFiles`, this includes multipart forms. */
export function isAccepted(headers: IncomingHttpHeaders, hasFiles: boolean): boolean {
  return isForm(headers) || (hasFiles && isMultipart(headers));
}

/** Reads a form from its complete body, whose size was limited while it arrived. Node.js reads multipart (RFC 7578). */
export async function readForm(body: Buffer, headers: IncomingHttpHeaders): Promise<Result<SentForm, Failure>> {
  if (!isMultipart(headers)) return success({ form: new URLSearchParams(body.toString()), files: new Map() });
  const form = new URLSearchParams();
  const files = new Map<string, Uint8Array>();
  try {
    const type = { 'content-type': headers['content-type'] ?? '' };
    const sent = await new Response(new Uint8Array(body), { headers: type }).formData();
    for (const [name, value] of sent) {
      if (typeof value === 'string') form.append(name, value);
      else if (value.size > 0) files.set(name, new Uint8Array(await value.arrayBuffer()));
    }
  } catch {
    return failed({ kind: 'malformed_request', reason: 'The form is not valid multipart/form-data.' });
  }
  return success({ form, files });
}

function isMultipart(headers: IncomingHttpHeaders): boolean {
  return /^multipart\/form-data\s*;/i.test(headers['content-type'] ?? '');
}
