import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { base62Alphabet, type RandomBytes, randomBase62 } from './base62.ts';

/** A source that repeats the byte values 0 to 255 in order. */
function countingBytes(): RandomBytes {
  let next = 0;
  return (count) =>
    Uint8Array.from({ length: count }, () => {
      const byte = next;
      next = (next + 1) % 256;
      return byte;
    });
}

function countCharacters(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return counts;
}

describe('the alphabet', () => {
  it('contains the 62 ASCII letters and digits once each', () => {
    expect(base62Alphabet).toMatch(/^[0-9A-Za-z]{62}$/);
    expect(new Set(base62Alphabet).size).toBe(62);
  });
});

describe('randomBase62', () => {
  it.each([0, 1, 24, 32, 43, 1_000])('returns exactly %i characters of the alphabet', (length) => {
    const text = randomBase62(length, randomBytes);

    expect(text).toHaveLength(length);
    expect(text).toMatch(/^[0-9A-Za-z]*$/);
  });

  it('returns every character equally often if every byte value occurs equally often', () => {
    // 248 of the 256 byte values are used, 4 for each character, so every character occurs 16 times in 4 rounds.
    const counts = countCharacters(randomBase62(248 * 4, countingBytes()));

    expect([...base62Alphabet].map((character) => counts.get(character))).toStrictEqual(Array(62).fill(16));
  });

  it('drops bytes that would make some characters more likely, and requests more bytes', () => {
    const requested: number[] = [];
    const chunks = [[255, 248, 249, 250], [0, 254, 61, 247], [62]].map((bytes) => Uint8Array.from(bytes));
    const text = randomBase62(4, (count) => {
      requested.push(count);
      return chunks.shift() ?? new Uint8Array(count);
    });

    expect(text).toBe('0zz0');
    expect(requested).toStrictEqual([4, 4, 1]);
  });
});
