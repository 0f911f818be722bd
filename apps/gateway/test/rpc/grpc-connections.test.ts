import { once } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  clientPreface,
  dataFrame,
  frameTypes,
  pingFrame,
  settingsFrame,
  uint32,
} from '../../../../tools/http2-frames.ts';
import { http2Limits } from '../../src/limits.ts';
import { callHeaders, lengthPrefixed, orderData, ordinaryCall, sendCall } from '../helpers/grpc/grpc-call.ts';
import {
  blockedStore,
  type RunningServer,
  runGrpcServer,
  type ServerOptions,
  useRawClient,
  useSession,
} from '../helpers/grpc/grpc-servers.ts';
import {
  callFields,
  callFrames,
  headersFrame,
  isFrame,
  openRawClient,
  type RawClient,
  readByServer,
} from '../helpers/grpc/raw-client.ts';

const noTimeoutMs = 1_000_000;
const { unusedTimeoutMs, idleTimeoutMs, streamTimeoutMs } = http2Limits;

/** Short, because the clients of a test close their connections only when it has finished. */
const limits: ServerOptions['limits'] = { goawayTimeoutMs: 100, drainTimeoutMs: 100 };

const noError = uint32(0);

// Tests control the clock that measures the time of connections and streams.
beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

/** Advances the clock after the server has read everything that the client wrote. */
async function pass(ms: number, client: RawClient): Promise<void> {
  await readByServer(client);
  vi.advanceTimersByTime(ms);
}

async function withClient(
  changedLimits: ServerOptions['limits'],
  body: (client: RawClient, server: RunningServer) => Promise<void>,
): Promise<void> {
  const server = await runGrpcServer({ limits: { ...limits, ...changedLimits } });
  const client = await useRawClient(server.port);
  await body(client, server);
  expect(server.errors).toEqual([]);
}

test('a connection without calls may stay open for at least 60 s, and an idle one for 5 minutes', () => {
  expect(unusedTimeoutMs).toBeGreaterThanOrEqual(60_000);
  expect(idleTimeoutMs).toBe(300_000);
});

test.each([
  ['made no call', unusedTimeoutMs, [], 0],
  ['made one call and no more', idleTimeoutMs, [callFrames(1, 'first')], 1],
])(
  'after its timeout, closes a connection that %s, even if it sends PINGs',
  async (_, timeoutMs, calls, lastStream) => {
    await withClient({}, async (client) => {
      client.socket.write(Buffer.concat([clientPreface, ...calls]));
      if (lastStream === 1) await client.firstFrame(isFrame(frameTypes.data, 1));
      await pass(timeoutMs - http2Limits.checkEveryMs, client);
      expect(await readByServer(client)).toBe(true);
      expect(client.frames.some(isFrame(frameTypes.goAway, 0))).toBe(false);
      await pass(2 * http2Limits.checkEveryMs, client);
      const goaway = await client.firstFrame(isFrame(frameTypes.goAway, 0));
      expect(goaway?.payload).toEqual(Buffer.concat([uint32(lastStream), noError]));
      await client.closed;
    });
  },
);

test('a full port closes an idle unauthenticated connection with GOAWAY, and keeps an authenticated one', async () => {
  await withClient({ connectionsMax: 2 }, async (authenticated, { port }) => {
    authenticated.socket.write(Buffer.concat([clientPreface, callFrames(1, 'first')]));
    await authenticated.firstFrame(isFrame(frameTypes.headers, 1));
    const idle = await useRawClient(port);
    idle.socket.write(Buffer.concat([clientPreface, headersFrame(1)]));
    await idle.firstFrame(isFrame(frameTypes.headers, 1));
    await useRawClient(port);
    const goaway = await idle.firstFrame(isFrame(frameTypes.goAway, 0));
    expect(goaway?.payload).toEqual(Buffer.concat([uint32(1), noError]));
    await idle.closed;
    authenticated.socket.write(callFrames(3, 'second'));
    expect(await authenticated.firstFrame(isFrame(frameTypes.data, 3))).toBeDefined();
  });
});

test('a full port does not close a connection with a call in flight', async () => {
  const authenticating = Promise.withResolvers<void>();
  const never = Promise.withResolvers<never>();
  const authenticate = () => {
    authenticating.resolve();
    return never.promise;
  };
  const server = await runGrpcServer({ authenticate, limits: { ...limits, connectionsMax: 1 } });
  const busy = await useRawClient(server.port);
  busy.socket.write(Buffer.concat([clientPreface, callFrames(1, 'first')]));
  await authenticating.promise;
  const next = await useRawClient(server.port);
  await next.closed;
  expect(busy.socket.readableEnded).toBe(false);
});

test('sends GOAWAY before it closes a connection, so that the client has time to close it first', async () => {
  await withClient({ goawayTimeoutMs: noTimeoutMs }, async (client) => {
    client.socket.write(clientPreface);
    await pass(2 * unusedTimeoutMs, client);
    expect(await client.firstFrame(isFrame(frameTypes.goAway, 0))).toBeDefined();
    expect(client.socket.readableEnded).toBe(false);
  });
});

test('keeps a connection open for a call that started before the timeout', async () => {
  await withClient({ streamTimeoutMs: noTimeoutMs }, async (client) => {
    client.socket.write(Buffer.concat([clientPreface, headersFrame(1, callFields, 0)]));
    await pass(1.5 * unusedTimeoutMs, client);
    client.socket.write(dataFrame(1, lengthPrefixed(orderData('late'))));
    expect(await client.firstFrame(isFrame(frameTypes.headers, 1))).toBeDefined();
  });
});

test('resets a call whose message arrives too slowly, and later closes its connection', async () => {
  await withClient({}, async (client) => {
    client.socket.write(Buffer.concat([clientPreface, callFrames(1, 'first'), headersFrame(3, callFields, 0)]));
    await client.firstFrame(isFrame(frameTypes.data, 1));
    for (let elapsedMs = 0; elapsedMs <= streamTimeoutMs; elapsedMs += 1_000) {
      client.socket.write(dataFrame(3, Buffer.alloc(1), 0));
      await pass(1_000, client);
    }
    const reset = await client.firstFrame(isFrame(frameTypes.reset, 3));
    expect(reset?.payload.readUInt32BE(0)).toBe(8);
    await pass(idleTimeoutMs, client);
    await client.closed;
  });
});

test('closes a connection that always has a call in flight but never completes one', async () => {
  await withClient({}, async (client) => {
    client.socket.write(clientPreface);
    for (let elapsedMs = 0; elapsedMs <= unusedTimeoutMs + streamTimeoutMs; elapsedMs += streamTimeoutMs / 2) {
      client.socket.write(headersFrame(1 + (4 * elapsedMs) / streamTimeoutMs, callFields, 0));
      await pass(streamTimeoutMs / 2, client);
    }
    await client.closed;
  });
});

test('resets a call whose client does not accept the response', async () => {
  await withClient({}, async (client, server) => {
    client.socket.write(Buffer.concat([clientPreface, settingsFrame([[4, 0]]), callFrames(1, 'first')]));
    await client.firstFrame(isFrame(frameTypes.headers, 1));
    await pass(2 * streamTimeoutMs, client);
    const reset = await client.firstFrame(isFrame(frameTypes.reset, 1));
    expect(reset?.payload.readUInt32BE(0)).toBe(8);
    await expect.poll(() => server.calls.length).toBe(1);
  });
});

test('closes a connection whose client does not read', async () => {
  await withClient({}, async (client, server) => {
    client.socket.pause();
    // The responses to these calls fill the socket buffers.
    const calls = Array.from({ length: 20_000 }, (_, index) => headersFrame(2 * index + 1, callFields));
    client.socket.write(Buffer.concat([clientPreface, ...calls]));
    let isClosed = false;
    client.socket.once('close', () => {
      isClosed = true;
    });
    // The client does not read, so only a write detects that the connection has ended.
    const closed = () => {
      vi.advanceTimersByTime(streamTimeoutMs / 2);
      if (client.socket.writable) client.socket.write(pingFrame());
      return isClosed;
    };
    await expect.poll(closed).toBe(true);
    expect(server.calls.length).toBeLessThan(calls.length);
  });
});

test('closes 1,000 silent, idle, slow and malformed connections while ordinary calls succeed', async () => {
  const { port, errors } = await runGrpcServer({ limits });
  const open = (count: number, sent: readonly Uint8Array[], repeated: Uint8Array) =>
    Array.from({ length: count }, async () => {
      const client = await openRawClient(port);
      for (const bytes of sent) client.socket.write(bytes);
      return { ...client, repeated };
    });
  const nothing = Buffer.alloc(0);
  const headers = headersFrame(1, callFields, 0);
  const prefix = dataFrame(1, lengthPrefixed(Buffer.alloc(1), { length: 60_000 }), 0);
  const clients = await Promise.all([
    ...open(200, [], nothing),
    ...open(100, [clientPreface.subarray(0, 10)], nothing),
    ...open(200, [clientPreface], pingFrame()),
    ...open(200, [clientPreface, callFrames(1, 'idle')], pingFrame()),
    ...open(200, [clientPreface, headers, prefix], dataFrame(1, Buffer.alloc(1), 0)),
    ...open(100, [Buffer.from('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n')], nothing),
  ]);
  const pending = new Set(clients);
  for (const client of clients) {
    void client.closed.then(() => {
      pending.delete(client);
      client.socket.destroy();
    });
  }
  const session = useSession(port);
  const statusWhileOpen = async () => {
    const { trailers } = await sendCall(session, ordinaryCall('beside'));
    for (const { socket, repeated } of pending) if (socket.writable) socket.write(repeated);
    vi.advanceTimersByTime(streamTimeoutMs / 2);
    return trailers['grpc-status'];
  };
  while (pending.size > 0) expect(await statusWhileOpen()).toBe('0');
  expect(errors).toEqual([]);
});

test('a server that is closed sends GOAWAY and lets the calls in flight finish', async () => {
  const { store, entered, release } = blockedStore();
  const server = await runGrpcServer({ limits: { drainTimeoutMs: noTimeoutMs }, store });
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

test('a server that is closed responds to a call that is still arriving, and then sends GOAWAY', async () => {
  const server = await runGrpcServer({ limits: { idleDrainMs: noTimeoutMs, drainTimeoutMs: noTimeoutMs } });
  const client = await useRawClient(server.port);
  client.socket.write(Buffer.concat([clientPreface, callFrames(1, 'first')]));
  await client.firstFrame(isFrame(frameTypes.data, 1));
  await readByServer(client);
  const closed = server.close();
  client.socket.write(callFrames(3, 'second'));
  expect(await client.firstFrame(isFrame(frameTypes.data, 3))).toBeDefined();
  const goaway = await client.firstFrame(isFrame(frameTypes.goAway, 0));
  expect(goaway?.payload).toEqual(Buffer.concat([uint32(3), noError]));
  client.socket.end();
  await closed;
});

test('a server that is closed ends unfinished calls and open connections after the drain timeout', async () => {
  const drainTimeoutMs = 300;
  const { store } = blockedStore();
  const server = await runGrpcServer({ store, limits: { drainTimeoutMs } });
  const silent = await useRawClient(server.port);
  const idle = await useRawClient(server.port);
  idle.socket.write(clientPreface);
  await idle.firstFrame(isFrame(frameTypes.settings, 0));
  const session = useSession(server.port);
  const call = sendCall(session, { ...ordinaryCall('endless'), headers: callHeaders });
  const unfinished = sendCall(session, { headers: callHeaders, chunks: [Buffer.alloc(1)], ends: false });
  await once(session, 'remoteSettings');
  const start = Date.now();
  await Promise.all([server.close(), server.close()]);
  expect(Date.now() - start).toBeGreaterThanOrEqual(drainTimeoutMs - 1);
  await Promise.all([call, unfinished, silent.closed, idle.closed]);
});
