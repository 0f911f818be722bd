import { EventEmitter, once } from 'node:events';
import type { ClientHttp2Session, Http2Server } from 'node:http2';
import { expect, onTestFinished, test, vi } from 'vitest';
import { http2Limits } from '../../src/limits.ts';
import { shareStreams } from '../../src/rpc/stream-limit.ts';
import { ordinaryCall, sendCall } from '../helpers/grpc/grpc-call.ts';
import { runGrpcServer, useSession } from '../helpers/grpc/grpc-servers.ts';

const limitsOf = (sessions: readonly ClientHttp2Session[]) =>
  new Set(sessions.map(({ remoteSettings }) => remoteSettings.maxConcurrentStreams));

test('authenticated connections share the limit of calls in flight, and their shares grow when connections end', async () => {
  const limits = { maxConcurrentStreams: 100, streamsOfAllSessions: 128, concurrentStreamsMin: 16 };
  const server = await runGrpcServer({ limits });
  // A successful call makes a connection authenticated.
  const openAuthenticated = async (count: number) => {
    const opened = Array.from({ length: count }, () => useSession(server.port));
    await Promise.all(opened.map((session, index) => sendCall(session, ordinaryCall(`client-${count}-${index}`))));
    return opened;
  };

  const sessions = await openAuthenticated(1);
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([100]));
  sessions.push(...(await openAuthenticated(1)));
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([64]));
  sessions.push(...(await openAuthenticated(1)));
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([32]));
  sessions.push(...(await openAuthenticated(30)));
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([16]));
  // A client that makes more calls at once queues them, and all succeed.
  const [first] = sessions;
  const calls = Array.from({ length: 200 }, (_, index) => first && sendCall(first, ordinaryCall(`order-${index}`)));
  const statuses = (await Promise.all(calls)).map((response) => response?.trailers['grpc-status']);
  expect(new Set(statuses)).toEqual(new Set(['0']));
  for (const session of sessions.splice(1)) session.close();
  await expect.poll(() => limitsOf(sessions)).toEqual(new Set([100]));
});

test('unauthenticated connections share a separate limit, but the first limit of a connection counts all connections', async () => {
  const server = await runGrpcServer({ limits: { streamsOfAllSessions: 128, concurrentStreamsMin: 16 } });
  const client = useSession(server.port);
  await sendCall(client, ordinaryCall('client'));
  const unauthenticated: ClientHttp2Session[] = [];
  const share = (connections: number) => Math.max(1, 2 ** Math.floor(Math.log2(128 / connections)));
  for (let count = 1; count <= 130; count += 1) {
    const session = useSession(server.port);
    unauthenticated.push(session);
    const [settings] = await once(session, 'remoteSettings');
    expect(settings.maxConcurrentStreams).toBe(share(count + 1));
  }
  await expect.poll(() => limitsOf(unauthenticated)).toEqual(new Set([1]));
  expect(client.remoteSettings.maxConcurrentStreams).toBe(128);
  for (const session of unauthenticated.splice(1)) session.close();
  await expect.poll(() => limitsOf(unauthenticated)).toEqual(new Set([16]));
});

test('an unauthenticated connection still counts for a while after it closed, so that reconnecting gains nothing', () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const updateSettings = vi.fn<Http2Server['updateSettings']>();
  const server = Object.assign(new EventEmitter(), { updateSettings });
  shareStreams(server as unknown as Http2Server, {
    ...http2Limits,
    maxConcurrentStreams: 128,
    streamsOfAllSessions: 128,
  });
  const session = Object.assign(new EventEmitter(), { localSettings: {}, settings() {} });
  server.emit('session', session);
  session.emit('close');
  vi.advanceTimersByTime(http2Limits.unauthenticatedCountsMs - 1);
  expect(updateSettings).toHaveBeenLastCalledWith({ maxConcurrentStreams: 64 });
  vi.advanceTimersByTime(1);
  expect(updateSettings).toHaveBeenLastCalledWith({ maxConcurrentStreams: 128 });
});

test('all calls that a client sends before it receives the limit of concurrent streams succeed', async () => {
  const server = await runGrpcServer();
  // Until a client has received the settings, nghttp2 assumes a limit of 100.
  const bursts = Array.from({ length: 10 }, (_, index) => {
    const session = useSession(server.port);
    const calls = Array.from({ length: 100 }, (_, call) => sendCall(session, ordinaryCall(`burst-${index}-${call}`)));
    return Promise.all(calls);
  });
  const statuses = (await Promise.all(bursts)).flat().map(({ trailers }) => trailers['grpc-status']);
  expect(new Set(statuses)).toEqual(new Set(['0']));
});
