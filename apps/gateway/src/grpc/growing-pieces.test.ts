import { expect, test } from 'vitest';
import { inGrowingPieces } from './growing-pieces.ts';

async function* cut(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

test('a body that comes byte by byte is given in few pieces, with all its bytes in their order', async () => {
  const bytes = Buffer.alloc(65_541).map((_, index) => index % 251);
  const pieces = await Array.fromAsync(inGrowingPieces(cut(bytes, 1)));
  expect(pieces.length).toBeLessThan(64);
  expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
});

test('a body in a few pieces is given as it comes', async () => {
  const bytes = Buffer.alloc(20_000, 'x');
  const sent = await Array.fromAsync(cut(bytes, 1_000));
  expect(await Array.fromAsync(inGrowingPieces(cut(bytes, 1_000)))).toEqual(sent);
  expect(await Array.fromAsync(inGrowingPieces(cut(Buffer.alloc(0), 1)))).toEqual([]);
});
