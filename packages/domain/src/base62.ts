/** The alphabet of tokens, client ids and secrets: the ASCII letters and digits, safe in URLs, headers and shells. */
export const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Gives that many bytes from the system's random source; the caller may overwrite them. */
export type RandomBytes = (count: number) => Uint8Array;

/** The largest multiple of 62 that a byte can hold; bytes from here on would favour the first letters and are thrown away. */
const unbiasedByteEnd = 248;

/** Random text of that many base62 characters, each equally likely (5.95 bits a character). */
export function randomBase62(length: number, randomBytes: RandomBytes): string {
  let text = '';
  while (text.length < length) {
    const missing = length - text.length;
    for (const byte of randomBytes(missing)) {
      if (byte < unbiasedByteEnd) text += base62Alphabet[byte % base62Alphabet.length];
    }
  }
  return text;
}
