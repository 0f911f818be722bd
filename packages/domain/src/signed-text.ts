import { createHmac } from 'node:crypto';

/** The prefix of a signature made by {@link signText}. */
export const signaturePrefix = 'v1=';

/**
 * Joins values with `|`. In a value, `\` is written `\\` and `|` is written `\|`, so that different values give
 * different texts.
 */
export function joinEscaped(values: readonly string[]): string {
  return values.map((value) => value.replaceAll(/[\\|]/g, '\\$&')).join('|');
}

/** Returns `v1=` and the lower-case hex of HMAC-SHA256 over the text in UTF-8. */
export function signText(text: string, key: string | Uint8Array): string {
  return signaturePrefix + createHmac('sha256', key).update(text, 'utf8').digest('hex');
}
