/** The alphabet of tokens, client ids and secrets: the ASCII letters and digits, safe in URLs, headers and shells. */
export const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** Returns `count` bytes from the system's random source. */
export type RandomBytes = (count: number) => Uint8Array;

/**
 * The largest multiple of 62 that fits in a byte. Bytes from this value on are dropped, because they would make the
 * first characters of the alphabet more likely.
 */
const unbiasedByteEnd = 248;

const alphabetCodes = Uint8Array.from(base62Alphabet, (letter) => letter.charCodeAt(0));

/** Returns a random string of `length` base62 characters, each equally likely (5.95 bits per character). */
export function randomBase62(length: number, randomBytes: RandomBytes): string {
  const codes = new Array<number>(length);
  let filled = 0;
  while (filled < length) {
    for (const byte of randomBytes(length - filled)) {
      if (byte < unbiasedByteEnd) codes[filled++] = alphabetCodes[byte % alphabetCodes.length] ?? 0;
    }
  }
  // Builds one flat string. If the characters were concatenated, V8 would build a chain of strings.
  return String.fromCharCode(...codes);
}
