import type { IncomingHttpHeaders } from 'node:http';
import type { Failure } from '@order-gateway/domain/failure';
import type { FieldError } from '@order-gateway/domain/requests';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Html } from '@order-gateway/pages/html-page';
import { html } from 'hono/html';
import { isForm } from '../../http/requests.ts';

interface Field {
  readonly name: string;
  readonly label: string | Html;
  /** The text that the person entered, or a suggestion. */
  readonly value?: string | null | undefined;
  readonly errors?: readonly FieldError<string>[];
  readonly type?: 'text' | 'date' | 'datetime-local' | 'multiline' | 'file';
  readonly choices?: Readonly<Record<string, string>>;
  readonly isWide?: boolean;
  readonly inputMode?: 'decimal' | 'email';
}

/** Renders a field of a form with its label and, if the API rejected its value, the error. */
export function fieldOf({ name, label, value, errors = [], type = 'text', ...field }: Field): Html {
  const error = errors.find((candidate) => candidate.field === name);
  // A date picker takes a time without an offset.
  const text = type === 'datetime-local' ? (value ?? '').replace(/^(.{16}):.*(Z|\+00:00)$/, '$1') : (value ?? '');
  const invalid = error === undefined ? '' : html` aria-invalid="true" aria-describedby="${name}-error"`;
  // Keeps the browser from filling in the data of the person who is signed in, because most fields are about customers.
  const mode = field.inputMode === undefined ? '' : html` inputmode="${field.inputMode}"`;
  const attributes = html` name="${name}" autocomplete="off"${mode}${invalid}`;
  const input = field.choices
    ? html`<select${attributes}>${Object.entries(field.choices).map(
        ([choice, shown]) => html`<option value="${choice}"${choice === text ? html` selected` : ''}>${shown}</option>`,
      )}</select>`
    : type === 'multiline'
      ? html`<textarea rows="3"${attributes}>
${text}</textarea>`
      : html`<input type="${type}"${type === 'file' ? '' : html` value="${text}"`}${attributes}>`;
  return html`<div${field.isWide ? html` class="wide"` : ''}><label><span>${label}</span> ${input}</label>${
    error === undefined ? '' : html`<p class="error" dir="auto" id="${name}-error">${error.message} (${error.code})</p>`
  }</div>`;
}

/**
 * Returns the time of a date picker with its offset. The script sends it in UTC. Without the script, it is in UTC too.
 */
export function timeOfField(text: string): string {
  return /T[\d:.]+$/.test(text) ? `${text}Z` : text;
}

/** Reads the id of a row from an address; `undefined` if the text is not an id that PostgreSQL can compare. */
export function readRowId(text: string | null | undefined): number | undefined {
  return /^\d{1,15}$/.test(text ?? '') ? Number(text) : undefined;
}

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
