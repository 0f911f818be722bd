import { describe, expect, test } from 'vitest';
import { messageBytesMax } from '../limits.ts';
import { encodeEnvelope } from './lane-envelopes.ts';
import { inWholeMessages } from './whole-messages.ts';

const enveloped = 'application/grpc-web+proto';
const bare = 'application/proto';

/** Cuts a body and tells of each piece that is given how many bytes had come by then. */
async function given(bytes: Uint8Array, length: number, mediaType: string) {
  let come = 0;
  async function* cut(): AsyncGenerator<Uint8Array> {
    // One buffer for all pieces, as it may be used for other bytes once the next piece is asked for.
    const piece = Buffer.alloc(length);
    for (let at = 0; at < bytes.length; at += length) {
      piece.set(bytes.subarray(at, at + length));
      come = Math.min(at + length, bytes.length);
      yield piece.subarray(0, come - at);
    }
  }
  const pieces: { readonly come: number; readonly bytes: Buffer }[] = [];
  for await (const piece of inWholeMessages(cut(), mediaType)) pieces.push({ come, bytes: Buffer.from(piece) });
  return { come: pieces.map((piece) => piece.come), bytes: Buffer.concat(pieces.map((piece) => piece.bytes)) };
}

const counted = (length: number) => Buffer.alloc(length).map((_, index) => index % 251);

/** A head that announces a message, and what has come of it. */
function announced(length: number, come: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, come]);
}

describe('messages in envelopes', () => {
  // With a message without a byte, and with flags: compressed, and the trailers of gRPC-Web.
  const whole = [encodeEnvelope('first'), encodeEnvelope(''), encodeEnvelope(counted(messageBytesMax))];
  const compressed = encodeEnvelope('compressed');
  compressed[0] = 1;
  const trailers = encodeEnvelope('grpc-status: 0');
  trailers[0] = 0x80;
  const messages = [...whole, compressed, trailers];
  const body = Buffer.concat(messages);

  test('that come byte by byte are given when the last byte of each has come, and not before', async () => {
    let end = 0;
    const ends = messages.map(({ length }) => {
      end += length;
      return end;
    });
    expect((await given(body, 1, enveloped)).come).toEqual(ends);
  });

  test.each([1, 4, 5, 6, 700, 16_384, 65_551, 100_000])('in pieces of %i bytes are given unchanged', async (length) => {
    const { come, bytes } = await given(body, length, enveloped);
    expect(come.length).toBeLessThanOrEqual(messages.length);
    expect(bytes.equals(body)).toBe(true);
  });

  test('of which one is announced over the limit are given at once', async () => {
    const tooLarge = Buffer.concat([encodeEnvelope('first'), announced(messageBytesMax + 1, counted(3))]);
    expect((await given(tooLarge, 1, enveloped)).come.slice(0, 2)).toEqual([10, 15]);
    const { come, bytes } = await given(tooLarge, 100, enveloped);
    expect(come).toEqual([18]);
    expect(bytes.equals(tooLarge)).toBe(true);
  });

  test.each([
    ['in the head', announced(7, counted(0)).subarray(0, 3)],
    ['after the head', announced(messageBytesMax, counted(0))],
    ['in the message', announced(messageBytesMax, counted(900))],
  ])('of which the last is cut %s are given when the body ends', async (_, cut) => {
    const all = Buffer.concat([encodeEnvelope('first'), cut]);
    const { come, bytes } = await given(all, 1, enveloped);
    expect(come).toEqual([10, all.length]);
    expect(bytes.equals(all)).toBe(true);
  });
});

describe('a message without an envelope', () => {
  test.each([1, 700, messageBytesMax])('in pieces of %i bytes is given when the body ends', async (length) => {
    const { come, bytes } = await given(counted(messageBytesMax), length, bare);
    expect(come).toEqual([messageBytesMax]);
    expect(bytes.equals(counted(messageBytesMax))).toBe(true);
    expect((await given(Buffer.alloc(0), length, bare)).come).toEqual([]);
  });

  test('over the limit is given as soon as it is', async () => {
    expect((await given(counted(messageBytesMax + 700), 1, bare)).come[0]).toBe(messageBytesMax + 1);
  });
});
