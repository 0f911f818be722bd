import { expect, test } from 'vitest';
import { HeldBytes } from './held-bytes.ts';

test('the room for bytes that come one by one is at most twice as many, and no more than are expected', () => {
  const expectedMax = 1_000;
  const held = new HeldBytes(expectedMax);
  for (let length = 1; length <= 1_200; length += 1) {
    held.add(Buffer.of(length % 251));
    const room = held.bytes().buffer.byteLength;
    expect(room).toBeLessThanOrEqual(Math.max(length, Math.min(2 * length, expectedMax)));
  }
  expect(held.take(1_190)).toEqual(Buffer.from(Array.from({ length: 1_190 }, (_, at) => (at + 1) % 251)));
  expect(held.length).toBe(10);
});
