import { SignatureError } from '../errors.ts';
import type { OrderEvent, TestEvent } from '../types.ts';
import { base64Bytes, bytesOf, checkSignedAt, isSigned } from './signatures.ts';

/** The headers of a request: a `fetch` Headers object or a Node.js headers object. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Verifies a webhook according to Standard Webhooks and returns its event. Respond with 2xx if it resolves. Respond
 * with 400 if it throws a {@link SignatureError}: a header is missing, no signature matches, or the time of the webhook
 * differs from the current time by more than the tolerance. The comparison takes constant time.
 *
 * @param body The raw body, before it is parsed, because the signature covers its exact bytes.
 * @param secrets The endpoint's signing secret, `whsec_…`, or several during a rotation.
 * @param options.toleranceSeconds 300 by default.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  { toleranceSeconds = 300 }: { readonly toleranceSeconds?: number } = {},
): Promise<OrderEvent | TestEvent> {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    throw new TypeError('The body must be the raw body as text or bytes, not parsed JSON');
  }
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) => {
    const value = headerOf(headers, `webhook-${name}`);
    if (!value) throw new SignatureError(`The header webhook-${name} is missing`);
    return value;
  }) as [string, string, string];
  checkSignedAt(timestamp, toleranceSeconds);
  const content = typeof body === 'string' ? bytesOf(body) : body;
  const prefix = bytesOf(`${id}.${timestamp}.`);
  const data = new Uint8Array(prefix.length + content.length);
  data.set(prefix);
  data.set(content, prefix.length);
  const signatureBytes = signatures.split(' ').flatMap((signature) => {
    const bytes = signature.startsWith('v1,') ? base64Bytes(signature.slice('v1,'.length)) : undefined;
    return bytes ?? [];
  });
  if (!(await isSigned(data, signatureBytes, [secrets].flat())))
    throw new SignatureError('No signature of the webhook matches');
  return JSON.parse(new TextDecoder().decode(content));
}

/** Finds a header by its lower-case name. Some frameworks keep the sender's upper-case letters. */
function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const [, value] = Object.entries(headers).find(([key]) => key.toLowerCase() === name) ?? [];
  return typeof value === 'string' ? value : value?.[0];
}
