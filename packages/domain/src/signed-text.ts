import { createHmac, timingSafeEqual } from 'node:crypto';

/** The prefix of a signature made by {@link signText}. */
export const signaturePrefix = 'v1=';

/**
 * Joins values with `|`. In a value, `\` is written `\\` and `|` is written `\|`, so that different values give
 * different texts.
 */
export function joinEscaped(values: readonly string[]): string {
  return values.map((value) => value.replaceAll(/[\\|]/g, '\\$&')).join('|');
}

/** Whether a sent text equals a secret one. Takes a time that does not depend on the content of the secret. */
export function equalsSecret(sent: string, secret: string): boolean {
  const [sentBytes, secretBytes] = [Buffer.from(sent), Buffer.from(secret)];
  return sentBytes.length === secretBytes.length && timingSafeEqual(sentBytes, secretBytes);
}

/** Returns `v1=` and the lower-case hex of HMAC-SHA256 over the text in UTF-8. */
export function signText(text: string, key: string | Uint8Array): string {
  return signaturePrefix + createHmac('sha256', key).update(text, 'utf8').digest('hex');
}
