import { SignatureError } from '../errors.ts';

// Uses WebCrypto instead of node:crypto, because Node.js, Deno, Bun and workers all have WebCrypto, and its verify()
// takes constant time.

/** Returns the lower-case hex of HMAC-SHA256. */
export async function hmacHex(key: Bytes, data: Bytes): Promise<string> {
  const signature = await crypto.subtle.sign('HMAC', await importKey(key), data);
  return Array.from(new Uint8Array(signature), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Returns the signature of a text with a signing secret, in base64. */
export async function signatureOf(data: string, secret: string): Promise<string> {
  const signature = await crypto.subtle.sign('HMAC', await importKey(secretBytes(secret)), bytesOf(data));
  return btoa(String.fromCharCode(...new Uint8Array(signature)));
}

/** Whether one of the signatures was made with one of the secrets. During a rotation, several secrets are valid. */
export async function isSigned(
  data: Bytes,
  signatures: readonly Bytes[],
  secrets: readonly string[],
): Promise<boolean> {
  for (const secret of secrets) {
    const key = await importKey(secretBytes(secret));
    for (const signature of signatures) {
      if (await crypto.subtle.verify('HMAC', key, signature, data)) return true;
    }
  }
  return false;
}

/**
 * Throws a {@link SignatureError} if a time in Unix seconds differs from the current time by more than the tolerance.
 */
export function checkSignedAt(unixSeconds: string, toleranceSeconds: number): void {
  const differenceSeconds = Math.abs(Date.now() / 1_000 - Number(unixSeconds));
  // Negated so that NaN is rejected too.
  if (!(differenceSeconds <= toleranceSeconds)) {
    throw new SignatureError('The signature is too old, or the clocks differ');
  }
}

/** The input type of WebCrypto, which does not accept shared memory. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Encodes a text as UTF-8. */
export function bytesOf(text: string): Bytes {
  return new TextEncoder().encode(text);
}

/** Decodes base64. Returns `undefined` if the text is not base64. */
export function base64Bytes(base64: string): Bytes | undefined {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function importKey(key: Bytes): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
}

/**
 * Returns the key in a signing secret, which is `whsec_` followed by the key in base64. Throws a TypeError otherwise.
 */
export function secretBytes(secret: string): Bytes {
  const key = secret?.startsWith('whsec_') ? base64Bytes(secret.slice('whsec_'.length)) : undefined;
  if (!key?.length) throw new TypeError('A signing secret must be whsec_ followed by base64');
  return key;
}
