import { once } from 'node:events';
import { sensitiveHeaders } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Code } from '@connectrpc/connect';
import type { EventFeed } from '@order-gateway/domain/events';
import type { OrderStore } from '@order-gateway/domain/orders';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { expect, test, vi } from 'vitest';
import { clientPreface, dataFrame, flags, frameTypes, pingFrame } from '../../../../tools/http2-frames.ts';
import type { CallsDeps } from '../../src/calls/receive.ts';
import { messageBytesMax } from '../../src/limits.ts';
import { merchant } from '../helpers/fixed-deps.ts';
import { callHeaders, createOrderPath, lengthPrefixed, ordinaryCall, sendCall } from '../helpers/grpc/grpc-call.ts';
import { runGrpcServer, useRawClient, useSession, whileAnotherClientCalls } from '../helpers/grpc/grpc-servers.ts';
import { callFrames, headersFrame, isFrame } from '../helpers/grpc/raw-client.ts';

/** The prefix of a message of the maximum size, without the message. */
const announcement = [lengthPrefixed(Buffer.alloc(0), { length: messageBytesMax })];

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

// Node.js clients that connect to an IPv6 address send it without brackets.
test('handles a call normally if its authority is not a valid host', async () => {
  await whileAnotherClientCalls({}, async ({ port }) => {
    const session = useSession(port);
    for (const authority of ['::1:9090', '[']) {
      for (const encoding of ['identity', 'gzip']) {
        const headers = { ...callHeaders, ':authority': authority, 'grpc-encoding': encoding };
        const { trailers } = await sendCall(session, {
          headers,
          chunks: [lengthPrefixed(Buffer.alloc(0))],
          ends: true,
        });
        expect([authority, encoding, trailers['grpc-status']]).toEqual([authority, encoding, '3']);
      }
    }
  });
});

test('does not add the request id, which never repeats, to the header table of the connection', async () => {
  const server = await runGrpcServer();
  const call = useSession(server.port).request({ ':method': 'POST', ':path': createOrderPath, ...callHeaders });
  for (const chunk of ordinaryCall('any').chunks) call.end(chunk);
  const [headers] = await once(call, 'response');
  expect(headers[sensitiveHeaders]).toEqual(['x-request-id']);
});

test('responds with DEADLINE_EXCEEDED if the deadline passes while the store is working', async () => {
  const store: OrderStore & EventFeed = {
    ...createInMemoryOrderStore(),
    async create(_order, timeoutMs) {
      await sleep(timeoutMs);
      return { kind: 'deadline_exceeded' };
    },
  };
  const server = await runGrpcServer({ store });
  const session = useSession(server.port);
  const timed = { ...callHeaders, 'grpc-timeout': '50m' };
  const late = await sendCall(session, { ...ordinaryCall('late'), headers: timed });
  expect(late.trailers['grpc-status']).toBe(String(Code.DeadlineExceeded));
  await expect.poll(() => server.calls.map(({ code }) => code)).toEqual(['client_timeout']);
});

test('buffers no more than the bytes of a message when each byte arrives in a separate frame', async () => {
  const never = new Promise<never>(() => {});
  const authenticate = vi
    .fn<CallsDeps['authenticate']>(() => never)
    .mockResolvedValueOnce({ ok: true, value: merchant });
  const server = await runGrpcServer({ authenticate });
  const client = await useRawClient(server.port);
  // An unauthenticated connection would be closed for sending such frames.
  client.socket.write(Buffer.concat([clientPreface, callFrames(1, 'first')]));
  await client.firstFrame(isFrame(frameTypes.data, 1));
  // Padding is returned to the flow-control window immediately, but stays in memory if the byte is stored as part of
  // its frame.
  const padded = dataFrame(3, Buffer.from([10, ...Buffer.alloc(11)]), flags.padded);
  collectGarbage();
  const before = process.memoryUsage();
  const [frames, framesPerWindow] = [60_000, 3_000];
  client.socket.write(headersFrame(3, undefined, 0));
  for (let windows = 1; windows <= frames / framesPerWindow; windows += 1) {
    client.socket.write(Buffer.concat([...Array(framesPerWindow).fill(padded), pingFrame()]));
    await expect.poll(() => client.frames.filter(isFrame(frameTypes.ping, 0)).length).toBe(windows);
  }
  const bytesPerFrame = () => {
    collectGarbage();
    const after = process.memoryUsage();
    return (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / frames;
  };
  await expect.poll(bytesPerFrame).toBeLessThan(20);
});

test('authenticates a call only once, even if Connect handles it', async () => {
  let authenticated = 0;
  const server = await runGrpcServer({
    async authenticate() {
      authenticated += 1;
      return { ok: true, value: merchant };
    },
  });
  const session = useSession(server.port);
  await sendCall(session, { headers: callHeaders, chunks: [Buffer.alloc(3)], ends: true });
  expect(authenticated).toBe(1);
});

test.each([
  ['on the fast path', {}],
  ['in compressed gRPC', { 'grpc-encoding': 'gzip' }],
])('a message %s that is announced but not sent allocates no buffer', async (_, metadata) => {
  const server = await runGrpcServer();
  const session = useSession(server.port);
  await sendCall(session, ordinaryCall('first'));
  const before = process.memoryUsage().arrayBuffers;
  const count = 200;
  const announced = { headers: { ...callHeaders, ...metadata }, chunks: announcement, ends: false };
  const calls = Array.from({ length: count }, () => sendCall(session, announced));
  // The server acknowledges a PING after it has read everything sent before it.
  await promisify(session.ping.bind(session))();
  // A quarter of the announced bytes is far more than 200 calls need.
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan((count * messageBytesMax) / 4);
  session.destroy();
  await Promise.all(calls);
  await expect.poll(() => server.calls.filter(({ code }) => code === 'cancelled').length).toBe(count);
});
