/** The alphabet of tokens, client ids and secrets: the ASCII letters and digits, safe in URLs, headers and shells. */
export const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Returns `count` bytes from the system's random source. */
export type RandomBytes = (count: number) => Uint8Array;

/**
 * The largest multiple of 62 in a byte. Bytes from here on would make the first letters more likely, so they are
 * dropped.
 */
const unbiasedByteEnd = 248;

const alphabetCodes = Uint8Array.from(base62Alphabet, (letter) => letter.charCodeAt(0));

/** Random text of `length` base62 characters, each equally likely (5.95 bits per character). */
export function randomBase62(length: number, randomBytes: RandomBytes): string {
  const codes = new Array<number>(length);
  let filled = 0;
  while (filled < length) {
    for (const byte of randomBytes(length - filled)) {
      if (byte < unbiasedByteEnd) codes[filled++] = alphabetCodes[byte % alphabetCodes.length] ?? 0;
    }
  }
  // Builds one flat string; concatenating letters would build a chain of them.
  return String.fromCharCode(...codes);
}
