import { expect, test } from 'vitest';
import { messageBytesMax } from '../limits.ts';
import { EnvelopeReader, encodeEnvelope } from './lane-envelopes.ts';

const message = Buffer.alloc(messageBytesMax).map((_, index) => index % 251);

test('a message that is only announced takes no room', () => {
  const head = encodeEnvelope(message).subarray(0, 5);
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 1_000 }, () => {
    const reader = new EnvelopeReader(messageBytesMax);
    reader.push(head);
    return reader;
  });
  const taken = process.memoryUsage().arrayBuffers - before;
  expect(readers).toHaveLength(1_000);
  // A sixteenth of what was announced is far more than the readers and the test itself need.
  expect(taken).toBeLessThan((1_000 * messageBytesMax) / 16);
});

test.each([1, 4, 5, 6, 700, 16_384, 65_540])('a message in pieces of %i bytes is read as it was sent', (pieceBytes) => {
  const reader = new EnvelopeReader(messageBytesMax);
  const bytes = Buffer.concat([encodeEnvelope(message), encodeEnvelope('next'), encodeEnvelope('')]);
  const envelopes = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    envelopes.push(...reader.push(bytes.subarray(at, at + pieceBytes)));
  }
  expect(reader.isCut()).toBe(false);
  expect(envelopes.map(({ data }) => data.length)).toEqual([messageBytesMax, 4, 0]);
  expect(envelopes[0]?.data.equals(message)).toBe(true);
  expect(envelopes[1]?.data.toString()).toBe('next');
});
