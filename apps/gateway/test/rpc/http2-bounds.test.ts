import { constants } from 'node:http2';
import { expect, test } from 'vitest';
import {
  clientPreface,
  dataFrame,
  type Fields,
  flags,
  frameTypes,
  http2Frame,
  type ReceivedFrame,
  resetFrame,
  streamsOf,
} from '../../../../tools/http2-frames.ts';
import { http2Limits, penaltyLimits } from '../../src/limits.ts';
import { callHeaders, ordinaryCall, sendCall } from '../helpers/grpc/grpc-call.ts';
import {
  blockedStore,
  runGrpcServer,
  type ServerOptions,
  useRawClient,
  useSession,
} from '../helpers/grpc/grpc-servers.ts';
import {
  beginFrame,
  callFrames,
  headersFrame,
  isFrame,
  type RawClient,
  readByServer,
  requestFields,
} from '../helpers/grpc/raw-client.ts';

// The limits of the gRPC port that are tighter than those of Node.js.

const limits = { drainTimeoutMs: 500 };
const { streamResetBurst, maxSessionInvalidFrames, maxHeaderListPairs, maxHeaderListSize } = http2Limits;
const { metadataBytesMax, metadataEntriesMax } = http2Limits;

interface SentFrames {
  /** The frames of one stream. */
  readonly frames: (streamId: number) => readonly Uint8Array[];
  readonly count: number;
  readonly isAuthenticated?: boolean;
}

const reset = (id: number) => [beginFrame(id), resetFrame(id)];

/**
 * Sends an authenticated call if required, then the frames of `count` streams. Returns whether the connection is still
 * open.
 */
async function staysOpen(client: RawClient, { frames, count, isAuthenticated = false }: SentFrames): Promise<boolean> {
  client.socket.write(clientPreface);
  if (isAuthenticated) {
    client.socket.write(callFrames(1, 'first'));
    await client.firstFrame(isFrame(frameTypes.data, 1));
  }
  client.socket.write(streamsOf(count, frames, 3));
  await readByServer(client);
  // A connection that is about to be closed may still respond once.
  return readByServer(client);
}

test.each<[string, allowed: number, tooMany: number, Omit<SentFrames, 'count'>]>([
  [
    'resets by an authenticated client',
    streamResetBurst,
    2 * streamResetBurst - 100,
    { frames: reset, isAuthenticated: true },
  ],
  [
    'frames that break the protocol',
    maxSessionInvalidFrames,
    maxSessionInvalidFrames + 2,
    { frames: (id) => [headersFrame(id, { x: 'y' })] },
  ],
])('%s: after %d in a row the connection stays open, after %d it is closed', async (_name, allowed, tooMany, sent) => {
  const { port, errors } = await runGrpcServer({ limits });
  const open = async (count: number) => staysOpen(await useRawClient(port), { ...sent, count });
  expect(await open(allowed)).toBe(true);
  // More are allowed per second, and a busy machine may take seconds to read them.
  await expect.poll(() => open(tooMany)).toBe(false);
  expect(errors).toEqual([]);
});

/** More penalties than a network may incur in the time that a slow machine needs to read the frames. */
const tooManyPenalties = 10 * penaltyLimits.perSecond;

const tinyFrames = (count: number) => (id: number) => [
  headersFrame(id, requestFields, 0),
  ...Array(count).fill(dataFrame(id, Buffer.alloc(1), 0)),
];
const { tinyFramesMax } = penaltyLimits;

test.each<[string, SentFrames, SentFrames]>([
  ['resets', { frames: reset, count: penaltyLimits.perSecond }, { frames: reset, count: tooManyPenalties }],
  [
    'tiny frames',
    { frames: tinyFrames(tinyFramesMax), count: 1 },
    { frames: tinyFrames(tinyFramesMax + tooManyPenalties), count: 1 },
  ],
])('an unauthenticated connection that sends too many %s is closed', async (name, few, many) => {
  const never = new Promise<never>(() => {});
  const options: ServerOptions = name === 'tiny frames' ? { limits, authenticate: () => never } : { limits };
  const { port } = await runGrpcServer(options);
  expect(await staysOpen(await useRawClient(port), few)).toBe(true);
  expect(await staysOpen(await useRawClient(port), many)).toBe(false);
});

test('an unauthenticated connection whose calls are rejected before their messages are complete stays open', async () => {
  const { port } = await runGrpcServer({ limits });
  const rejected: SentFrames = { frames: (id) => [beginFrame(id)], count: tooManyPenalties };
  expect(await staysOpen(await useRawClient(port), rejected)).toBe(true);
});

const halfOfPenalties = { frames: reset, count: penaltyLimits.perSecond / 2 };

test('resets on unauthenticated connections are counted per network, and calls from the network still succeed', async () => {
  const { port } = await runGrpcServer({ limits });
  const authenticated = useSession(port);
  await sendCall(authenticated, ordinaryCall('before'));
  const attackers = Array.from({ length: 20 }, async () => staysOpen(await useRawClient(port), halfOfPenalties));
  expect(await Promise.all(attackers)).toContain(false);
  const responses = [authenticated, useSession(port)].map((session) => sendCall(session, ordinaryCall('after')));
  for (const { trailers } of await Promise.all(responses)) expect(trailers['grpc-status']).toBe('0');
});

test('resets on connections from a trusted proxy are not counted', async () => {
  const { port } = await runGrpcServer({ limits, trustProxy: () => true });
  const opened = Array.from({ length: 20 }, async () => staysOpen(await useRawClient(port), halfOfPenalties));
  expect(await Promise.all(opened)).not.toContain(false);
});

/** Sends the frames of two calls, on streams 1 and 3. Returns the first frame of each response. */
async function responsesTo(...sent: readonly Uint8Array[]): Promise<(ReceivedFrame | undefined)[]> {
  const { port } = await runGrpcServer({ limits });
  const client = await useRawClient(port);
  client.socket.write(Buffer.concat([clientPreface, ...sent]));
  return Promise.all([1, 3].map((id) => client.firstFrame(({ streamId }) => streamId === id)));
}

/** The size of a header list as RFC 9113, 6.5.2 defines it. */
const headerListSize = (list: Fields) =>
  Object.entries(list).reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);

test('a call with too much metadata gets an error with details, one with far too much is reset, and other calls continue', async () => {
  const { entered, release, store } = blockedStore();
  const server = await runGrpcServer({ store });
  const session = useSession(server.port);
  const otherCall = sendCall(session, ordinaryCall('other'));
  await entered;
  const callWith = (metadata: Fields) =>
    sendCall(session, { ...ordinaryCall('large'), headers: { ...callHeaders, ...metadata } });
  const entries = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, '']));
  for (const metadata of [
    { x: '0'.repeat(metadataBytesMax) },
    { x: '0'.repeat(50_000) },
    entries(metadataEntriesMax),
    entries(0.8 * maxHeaderListPairs),
  ]) {
    const { trailers, closed } = await callWith(metadata);
    expect([trailers['grpc-status'], closed]).toEqual(['8', 0]);
    expect(trailers).toHaveProperty('grpc-status-details-bin');
  }
  for (const metadata of [{ x: '0'.repeat(maxHeaderListSize) }, entries(maxHeaderListPairs + 1)]) {
    const resets = [constants.NGHTTP2_ENHANCE_YOUR_CALM, constants.NGHTTP2_REFUSED_STREAM];
    expect(resets).toContain((await callWith(metadata)).closed);
  }
  release();
  expect((await otherCall).trailers['grpc-status']).toBe('0');
});

test('metadata of exactly the limit is not rejected for its size, whether or not the settings are acknowledged', async () => {
  const length = metadataBytesMax - headerListSize({ ...requestFields, x: '' });
  for (const ack of [[http2Frame(frameTypes.settings, flags.ack, 0)], []]) {
    const callOf = (streamId: number, x: string) => headersFrame(streamId, { ...requestFields, x });
    const responses = await responsesTo(...ack, callOf(1, 'y'.repeat(length)), callOf(3, 'y'.repeat(length + 1)));
    // Neither call has credentials or a body, so both are rejected, but only the second one is rejected for its size.
    expect(responses.map((response) => [response?.type, response?.payload.length])).toEqual([
      [frameTypes.headers, expect.any(Number)],
      [frameTypes.headers, expect.any(Number)],
    ]);
    expect(responses[0]?.payload).not.toEqual(responses[1]?.payload);
  }
});
