import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { http2Limits } from '../../src/limits.ts';
import { callHeaders, frame, ordinaryCall, sendCall } from '../helpers/grpc/grpc-call.ts';
import {
  blockedStore,
  type RunningServer,
  runGrpcServer,
  type ServerOptions,
  useRawClient,
  useSession,
  whileCallsGoOn,
} from '../helpers/grpc/grpc-servers.ts';
import {
  callFields,
  callFrames,
  clientPreface,
  dataFrame,
  frameTypes,
  headersFrame,
  isFrame,
  openRawClient,
  pingFrame,
  type RawClient,
  settingsFrame,
  uint32,
} from '../helpers/grpc/http2-frames.ts';

const never = 1_000_000;

/** Only the limits named by a test are short. */
const patient: ServerOptions['limits'] = {
  unusedTimeoutMs: never,
  idleTimeoutMs: never,
  streamTimeoutMs: never,
  goawayTimeoutMs: 100,
  checkEveryMs: 20,
  drainTimeoutMs: never,
};

const noError = uint32(0);

async function withClient(
  limits: ServerOptions['limits'],
  body: (client: RawClient, server: RunningServer) => Promise<void>,
): Promise<void> {
  const server = await runGrpcServer({ limits: { ...patient, drainTimeoutMs: 100, ...limits } });
  const client = await useRawClient(server.port);
  await body(client, server);
  expect(server.errors).toEqual([]);
}

/** Writes repeatedly, so that a connection is never silent. Returns the function that stops it. */
function keepWriting({ socket }: RawClient, bytes: Uint8Array): () => void {
  const timer = setInterval(() => socket.write(bytes), 20);
  return () => clearInterval(timer);
}

test('an unused connection may stay open for 60 s, an idle one for 5 minutes', () => {
  expect(http2Limits.unusedTimeoutMs).toBeGreaterThanOrEqual(60_000);
  expect(http2Limits.idleTimeoutMs).toBe(300_000);
});

test.each([
  ['made no call', { unusedTimeoutMs: 300 }, [], 0],
  ['made a call and makes no more', { idleTimeoutMs: 300 }, [callFrames(1, 'first')], 1],
])('closes a connection that %s after its time, whatever it pings', async (_, limits, calls, lastStream) => {
  const start = performance.now();
  await withClient(limits, async (client) => {
    client.socket.write(Buffer.concat([clientPreface, ...calls]));
    const stop = keepWriting(client, pingFrame());
    const goaway = await client.frame(isFrame(frameTypes.goAway, 0));
    expect(goaway?.payload).toEqual(Buffer.concat([uint32(lastStream), noError]));
    await client.closed;
    stop();
    expect(performance.now() - start).toBeGreaterThanOrEqual(300);
  });
});

test('a full port closes an idle connection with GOAWAY, an authenticated one last', async () => {
  await withClient({ connectionsMax: 2 }, async (known, { port }) => {
    known.socket.write(Buffer.concat([clientPreface, callFrames(1, 'first')]));
    await known.frame(isFrame(frameTypes.headers, 1));
    const idle = await useRawClient(port);
    idle.socket.write(Buffer.concat([clientPreface, headersFrame(1)]));
    await idle.frame(isFrame(frameTypes.headers, 1));
    await useRawClient(port);
    const goaway = await idle.frame(isFrame(frameTypes.goAway, 0));
    expect(goaway?.payload).toEqual(Buffer.concat([uint32(1), noError]));
    await idle.closed;
    known.socket.write(callFrames(3, 'second'));
    expect(await known.frame(isFrame(frameTypes.data, 3))).toBeDefined();
  });
});

test('a full port closes no connection with a call in flight', async () => {
  const authenticating = Promise.withResolvers<void>();
  const never = Promise.withResolvers<never>();
  const authenticate = () => {
    authenticating.resolve();
    return never.promise;
  };
  const server = await runGrpcServer({ authenticate, limits: { ...patient, connectionsMax: 1, drainTimeoutMs: 100 } });
  const busy = await useRawClient(server.port);
  busy.socket.write(Buffer.concat([clientPreface, callFrames(1, 'first')]));
  await authenticating.promise;
  const next = await useRawClient(server.port);
  await next.closed;
  expect(busy.socket.readableEnded).toBe(false);
});

test('sends GOAWAY before it closes a connection, so that the client has time to close it', async () => {
  await withClient({ unusedTimeoutMs: 100, goawayTimeoutMs: never }, async (client) => {
    client.socket.write(clientPreface);
    expect(await client.frame(isFrame(frameTypes.goAway, 0))).toBeDefined();
    expect(client.socket.readableEnded).toBe(false);
  });
});

test('keeps a connection open for a call that began before its timeout', async () => {
  // Long enough for a busy machine to read the first frames in time.
  const unusedTimeoutMs = 500;
  await withClient({ unusedTimeoutMs }, async (client) => {
    const frames = callFrames(1, 'late');
    client.socket.write(Buffer.concat([clientPreface, frames.subarray(0, -1)]));
    await sleep(1.5 * unusedTimeoutMs);
    client.socket.write(frames.subarray(-1));
    expect(await client.frame(isFrame(frameTypes.data, 1))).toBeDefined();
  });
});

test('resets a call that trickles, and closes its connection though one call was complete', async () => {
  await withClient({ streamTimeoutMs: 200, idleTimeoutMs: 300 }, async (client) => {
    client.socket.write(Buffer.concat([clientPreface, callFrames(1, 'first'), headersFrame(3, callFields, 0)]));
    const stop = keepWriting(client, dataFrame(3, Buffer.alloc(1), 0));
    const reset = await client.frame(isFrame(frameTypes.reset, 3));
    expect(reset?.payload.readUInt32BE(0)).toBe(8);
    await client.closed;
    stop();
  });
});

test('closes a connection that always has a call open, none of which it completes', async () => {
  await withClient({ streamTimeoutMs: 200, unusedTimeoutMs: 300 }, async (client) => {
    client.socket.write(clientPreface);
    let streamId = 1;
    const openNext = () => {
      client.socket.write(headersFrame(streamId, callFields, 0));
      streamId += 2;
    };
    openNext();
    const timer = setInterval(openNext, 50);
    await client.closed;
    clearInterval(timer);
  });
});

test('resets a call whose client takes no response', async () => {
  await withClient({ streamTimeoutMs: 200 }, async (client) => {
    client.socket.write(Buffer.concat([clientPreface, settingsFrame([[4, 0]]), callFrames(1, 'first')]));
    const reset = await client.frame(isFrame(frameTypes.reset, 1));
    expect(reset?.payload.readUInt32BE(0)).toBe(8);
  });
});

test('closes a connection whose client reads nothing', async () => {
  await withClient({ streamTimeoutMs: 500 }, async (client, server) => {
    client.socket.pause();
    // Their responses fill the system's buffers.
    const calls = Array.from({ length: 20_000 }, (_, index) => headersFrame(2 * index + 1, callFields));
    client.socket.write(Buffer.concat([clientPreface, ...calls]));
    const closed = new Promise((resolve) => client.socket.once('close', resolve));
    const stop = keepWriting(client, pingFrame());
    await closed;
    stop();
    expect(server.calls.length).toBeLessThan(calls.length);
  });
});

test('closes 1,000 silent, idle, trickling and malformed connections while ordinary calls succeed', async () => {
  // Longer than a busy machine delays one of the ordinary calls.
  const limits = { unusedTimeoutMs: 3_000, idleTimeoutMs: 6_000, streamTimeoutMs: 3_000, checkEveryMs: 100 };
  await whileCallsGoOn({ limits }, async ({ port }) => {
    const open = (count: number, sent: readonly Uint8Array[], again: Uint8Array) =>
      Array.from({ length: count }, async () => {
        const client = await openRawClient(port);
        for (const bytes of sent) client.socket.write(bytes);
        const timer = setInterval(() => client.socket.writable && client.socket.write(again), 250);
        await client.closed;
        clearInterval(timer);
        client.socket.destroy();
        return 'closed';
      });
    const nothing = Buffer.alloc(0);
    const begun = headersFrame(1, callFields, 0);
    const prefix = dataFrame(1, frame(Buffer.alloc(1), { length: 60_000 }), 0);
    const all = await Promise.all([
      ...open(200, [], nothing),
      ...open(100, [clientPreface.subarray(0, 10)], nothing),
      ...open(200, [clientPreface], pingFrame()),
      ...open(200, [clientPreface, callFrames(1, 'idle')], pingFrame()),
      ...open(200, [clientPreface, begun, prefix], dataFrame(1, Buffer.alloc(1), 0)),
      ...open(100, [Buffer.from('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')], nothing),
    ]);
    expect(all).toEqual(Array(1_000).fill('closed'));
  });
});

test('sends GOAWAY when it is closed, and lets the calls in flight finish', async () => {
  const { store, entered, release } = blockedStore();
  const server = await runGrpcServer({ limits: patient, store });
  const session = useSession(server.port);
  const idle = useSession(server.port);
  const goaways = Promise.all([once(session, 'goaway'), once(idle, 'goaway')]);
  await once(idle, 'remoteSettings');
  const call = sendCall(session, ordinaryCall('in flight'));
  await entered;
  const closed = server.close();
  expect((await goaways).map(([code]) => code)).toEqual([0, 0]);
  release();
  expect((await call).trailers['grpc-status']).toBe('0');
  await closed;
  expect([session.destroyed, idle.destroyed]).toEqual([true, true]);
});

test('cuts off calls that do not finish and clients that do not disconnect within the drain time', async () => {
  const drainTimeoutMs = 300;
  const { store } = blockedStore();
  const server = await runGrpcServer({ store, limits: { ...patient, drainTimeoutMs } });
  const silent = await useRawClient(server.port);
  const idle = await useRawClient(server.port);
  idle.socket.write(clientPreface);
  await idle.frame(isFrame(frameTypes.settings, 0));
  const session = useSession(server.port);
  const call = sendCall(session, { ...ordinaryCall('endless'), headers: callHeaders });
  const unfinished = sendCall(session, { headers: callHeaders, chunks: [Buffer.alloc(1)], ends: false });
  await once(session, 'remoteSettings');
  await sleep(0);
  const start = performance.now();
  await Promise.all([server.close(), server.close()]);
  expect(performance.now() - start).toBeGreaterThanOrEqual(drainTimeoutMs - 1);
  await Promise.all([call, unfinished, silent.closed, idle.closed]);
});
