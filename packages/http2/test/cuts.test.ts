import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Frame, FrameReader } from '../src/frame-reader.ts';
import { flags, frame, frameTypes } from '../src/frames.ts';
import { encodeHeaders } from '../src/header-encoder.ts';
import { dataFrame, headersFrame, hello, isAnswerOf, openRawClient, requestFields } from './raw-client.ts';
import { type RunningServer, runServer } from './running-server.ts';
import { bytes, ping } from './sequence.ts';

let server: RunningServer;

beforeAll(async () => {
  server = await runServer({ limits: { connectionsMax: 1_000 } });
});

afterAll(async () => {
  await server.close();
});

const block = encodeHeaders(requestFields);

/** A block in as many frames as it has bytes. */
const inContinuations = [...block].map((byte, at) =>
  frame(
    at === 0 ? frameTypes.headers : frameTypes.continuation,
    at === block.length - 1 ? flags.endHeaders : 0,
    3,
    bytes(byte),
  ),
);

const sent = Buffer.concat([
  hello,
  headersFrame(1, requestFields, flags.endHeaders),
  ping(),
  dataFrame(1, Buffer.from('one '), 0),
  dataFrame(1, bytes(3, ...Buffer.from('body'), 0, 0, 0), flags.padded),
  headersFrame(1, ['x-sum', '1']),
  ...inContinuations,
  dataFrame(3, Buffer.from('another')),
]);

/** All that is told of the two requests. */
async function answers(pieces: readonly Uint8Array[]) {
  const client = await openRawClient(server.port);
  const before = server.requests.length;
  for (const piece of pieces) {
    client.send(piece);
    // Lets the piece leave before the next one.
    await new Promise((resolve) => setImmediate(resolve));
  }
  await client.frame((one) => isAnswerOf(3)(one) && (one.flags & flags.endStream) !== 0);
  client.socket.destroy();
  const frames = client.frames.filter(({ type }) => type !== frameTypes.windowUpdate);
  const told = frames.map(({ type, streamId, flags: set, payload }) => [
    type,
    streamId,
    set,
    payload.toString('latin1'),
  ]);
  return { told, requests: server.requests.slice(before) };
}

test('answers the same in one piece, byte by byte, and cut in two anywhere', async () => {
  const whole = await answers([sent]);
  expect(whole.requests.map(({ body }) => String(body))).toEqual(['one body', 'another']);
  expect(await answers(Array.from(sent, (byte) => bytes(byte)))).toEqual(whole);
  for (let cut = 1; cut < sent.length; cut += 1) {
    expect(await answers([sent.subarray(0, cut), sent.subarray(cut)])).toEqual(whole);
  }
  expect(server.faults).toEqual([]);
});

test('reads the same frames from pieces of any length', () => {
  const frames = sent.subarray(24);
  const read = (length: number) => {
    const all: Frame[] = [];
    const reader = new FrameReader();
    for (let at = 0; at < frames.length; at += length)
      reader.take(frames.subarray(at, at + length), (one) => all.push(one));
    return all;
  };
  const whole = read(frames.length);
  expect(whole).toHaveLength(7 + block.length);
  for (let length = 1; length < frames.length; length += 1) expect(read(length)).toEqual(whole);
});
