import { constants } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { clientPreface, frameTypes, resetFrame } from '../../../../tools/http2-frames.ts';
import { http2Limits } from '../../src/limits.ts';
import {
  callHeaders,
  createOrderPath,
  lengthPrefixed,
  orderData,
  ordinaryCall,
  sendCall,
} from '../helpers/grpc/grpc-call.ts';
import {
  blockedStore,
  runGrpcServer,
  useRawClient,
  useSession,
  whileAnotherClientCalls,
} from '../helpers/grpc/grpc-servers.ts';
import { callFields, callFrames, headersFrame, isFrame } from '../helpers/grpc/raw-client.ts';

test('a client that cancels all its other calls at the same time keeps its connection, and its last call succeeds', async () => {
  const server = await runGrpcServer();
  const session = useSession(server.port);
  const cancelled = { ...ordinaryCall('waited-for'), ends: false, cancels: true };
  const calls = Array.from({ length: http2Limits.maxConcurrentStreams }, () => sendCall(session, cancelled));
  const pending = sendCall(session, ordinaryCall('waited-for'));
  await Promise.all(calls);
  expect((await pending).trailers['grpc-status']).toBe('0');
  const next = await sendCall(session, ordinaryCall('waited-for'));
  expect([next.trailers['grpc-status'], next.headers['idempotent-replayed']]).toEqual(['0', 'true']);
});

test('a client that cancels 30 of its 130 calls per second for 10 s keeps its connection', async () => {
  await whileAnotherClientCalls({}, async ({ port }) => {
    const session = useSession(port);
    const statuses: Promise<unknown>[] = [];
    const pace = { cancelled: 3, completed: 10 };
    // One step every 100 ms. On a slow machine the rate is lower, never higher.
    for (let step = 0; step < 100; step += 1) {
      for (let call = 0; call < pace.cancelled; call += 1) {
        void sendCall(session, { ...ordinaryCall(`cancelled-${step}-${call}`), cancels: true });
      }
      for (let call = 0; call < pace.completed; call += 1) {
        statuses.push(
          sendCall(session, ordinaryCall(`order-${step}-${call}`)).then(({ trailers }) => trailers['grpc-status']),
        );
      }
      await sleep(100);
    }
    expect(new Set(await Promise.all(statuses))).toEqual(new Set(['0']));
    expect(session.closed).toBe(false);
  });
});

test('logs a cancelled call as cancelled, does not create its order, and handles the next call', async () => {
  const server = await runGrpcServer();
  const client = await useRawClient(server.port);
  // The reset arrives together with the complete call.
  const cancelled = [callFrames(1, 'cancelled'), resetFrame(1), headersFrame(3, callFields, 0), resetFrame(3)];
  client.socket.write(Buffer.concat([clientPreface, ...cancelled, callFrames(5, 'next')]));
  await client.firstFrame(isFrame(frameTypes.data, 5));
  client.socket.write(callFrames(7, 'cancelled'));
  await client.firstFrame(isFrame(frameTypes.data, 7));
  const codes = () => server.calls.map(({ code }) => code).sort();
  await expect.poll(codes).toEqual(['cancelled', 'cancelled', 'created', 'created']);
});

test.each([true, false])(
  'a call that is cancelled while the store is working ends without an error (fast path: %s)',
  async (hasFastPath) => {
    const consoleError = vi.spyOn(console, 'error');
    onTestFinished(() => consoleError.mockRestore());
    const { store, entered, release } = blockedStore();
    const server = await runGrpcServer({ hasFastPath, store });
    const session = useSession(server.port);
    const stream = session.request({ ':method': 'POST', ':path': createOrderPath, ...callHeaders });
    stream.on('error', () => {});
    stream.end(lengthPrefixed(orderData('cancelled')));
    await entered;
    stream.close(constants.NGHTTP2_CANCEL);
    // The server logs the call when its stream has closed.
    await expect.poll(() => server.calls.length).toBe(1);
    release();
    const next = await sendCall(session, ordinaryCall('cancelled'));
    expect([next.trailers['grpc-status'], next.headers['idempotent-replayed']]).toEqual(['0', 'true']);
    expect(server.calls.map(({ code }) => code)).toEqual(['cancelled', 'replayed']);
    expect(server.errors).toEqual([]);
    expect(consoleError).not.toHaveBeenCalled();
  },
);
