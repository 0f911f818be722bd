/** The alphabet of tokens, client ids and secrets: the ASCII letters and digits, safe in URLs, headers and shells. */
export const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Gives that many bytes from the system's random source; the caller may overwrite them. */
export type RandomBytes = (count: number) => Uint8Array;

/** The largest multiple of 62 that a byte can hold; bytes from here on would favour the first letters and are thrown away. */
const unbiasedByteEnd = 248;

const alphabetCodes = Uint8Array.from(base62Alphabet, (letter) => letter.charCodeAt(0));

/** Random text of that many base62 characters, each equally likely (5.95 bits a character). */
export function randomBase62(length: number, randomBytes: RandomBytes): string {
  const codes = new Array<number>(length);
  let filled = 0;
  while (filled < length) {
    for (const byte of randomBytes(length - filled)) {
      if (byte < unbiasedByteEnd) codes[filled++] = alphabetCodes[byte % alphabetCodes.length] ?? 0;
    }
  }
  // One flat string: letter by letter it would be a chain of as many.
  return String.fromCharCode(...codes);
}
