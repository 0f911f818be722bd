import { expect, test } from 'vitest';
import { http2Limits } from '../src/limits.ts';
import { runGrpcServer, useRawClient } from './grpc-servers.ts';
import {
  beginFrame,
  clientPreface,
  type Fields,
  flags,
  frameTypes,
  headersFrame,
  http2Frame,
  pingFrame,
  type ReceivedFrame,
  requestFields,
  resetFrame,
  streamsOf,
  uint32,
  withFields,
} from './http2-frames.ts';

// Those bounds of the gRPC port that are tighter than Node.js's own.

const limits = { drainTimeoutMs: 500 };
const { streamResetBurst, maxSessionInvalidFrames, maxHeaderListPairs, maxHeaderListSize } = http2Limits;

const isPong = (byte: number) => (received: ReceivedFrame) =>
  received.type === frameTypes.ping && received.flags === flags.ack && received.payload[0] === byte;

/** The last column is what each stream sends. */
test.each<[string, allowed: number, tooMany: number, (streamId: number) => Uint8Array[]]>([
  ['resets', streamResetBurst, 2 * streamResetBurst - 100, (id) => [beginFrame(id), resetFrame(id)]],
  [
    'frames that break the protocol',
    maxSessionInvalidFrames,
    maxSessionInvalidFrames + 2,
    (id) => [headersFrame(id, { x: 'y' })],
  ],
])('%s: %d in a row leave a connection open, %d end it', async (_name, allowed, tooMany, make) => {
  const { port, errors } = await runGrpcServer({ limits });
  const staysOpen = async (count: number) => {
    const client = await useRawClient(port);
    client.socket.write(Buffer.concat([clientPreface, streamsOf(count, make), pingFrame()]));
    await client.frame(isPong(0));
    // The first one may still be answered by a connection that is about to end.
    client.socket.write(http2Frame(frameTypes.ping, 0, 0, Buffer.alloc(8, 1)));
    return (await client.frame(isPong(1))) !== undefined;
  };
  expect(await Promise.all([allowed, tooMany].map(staysOpen))).toEqual([true, false]);
  expect(errors).toEqual([]);
});

/** The first frame that answers each of two calls, which are on the streams 1 and 3. */
async function answersTo(...sent: readonly Uint8Array[]): Promise<(ReceivedFrame | undefined)[]> {
  const { port } = await runGrpcServer({ limits });
  const client = await useRawClient(port);
  client.socket.write(Buffer.concat([clientPreface, ...sent]));
  return Promise.all([1, 3].map((id) => client.frame(({ streamId }) => streamId === id)));
}

test('a call with more header fields than the bound is reset, one with fewer is answered', async () => {
  const [allowed, tooMany] = [withFields(0.8 * maxHeaderListPairs), withFields(1.1 * maxHeaderListPairs)];
  const answers = await answersTo(headersFrame(1, allowed), headersFrame(3, tooMany));
  expect(answers.map((answer) => answer?.type)).toEqual([frameTypes.headers, frameTypes.reset]);
});

/** As clients and servers count it (RFC 9113, 6.5.2). */
const headerListSize = (list: Fields) =>
  Object.entries(list).reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);

test.each([
  ['has acknowledged the settings', [http2Frame(frameTypes.settings, flags.ack, 0)]],
  ['never does', []],
])(
  'a call with larger headers than the bound is reset, one byte less is answered, where the client %s',
  async (_, ack) => {
    const length = maxHeaderListSize - headerListSize({ ...requestFields, x: '' });
    const callOf = (streamId: number, x: string) => headersFrame(streamId, { ...requestFields, x });
    const answers = await answersTo(...ack, callOf(1, 'y'.repeat(length)), callOf(3, 'y'.repeat(length + 1)));
    expect(answers.map((answer) => answer?.type)).toEqual([frameTypes.headers, frameTypes.reset]);
    // ENHANCE_YOUR_CALM, of which gRPC clients make RESOURCE_EXHAUSTED
    expect(answers[1]?.payload).toEqual(uint32(11));
  },
);
