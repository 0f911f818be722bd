import { once } from 'node:events';
import { constants } from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  type ClientReadableStream,
  credentials,
  makeClientConstructor,
  type ServiceError,
  type StatusObject,
} from '@grpc/grpc-js';
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
} from '@order-gateway/contract/health/v1/health_pb';
import { service as healthDefinition } from 'grpc-health-check';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { clientPreface, frameTypes } from '../../../../tools/http2-frames.ts';
import { http2Limits } from '../../src/limits.ts';
import { createReadiness } from '../../src/runtime/start/readiness.ts';
import { lengthPrefixed, ordinaryCall, sendCall } from '../helpers/grpc/grpc-call.ts';
import { runGrpcServer, type ServerOptions, useRawClient, useSession } from '../helpers/grpc/grpc-servers.ts';
import { grpcTls } from '../helpers/grpc/grpc-tls.ts';
import { headersFrame, isFrame, requestFields } from '../helpers/grpc/raw-client.ts';
import { grpcClient } from '../helpers/grpc/rpc-clients.ts';
import { createMemoryLogger } from '../helpers/memory-logger.ts';

type HealthStatus = { readonly status: string };

/** The health client that grpc-js users have. */
const StockClient = makeClientConstructor(healthDefinition, 'grpc.health.v1.Health');

let isReachable = true;
beforeEach(() => {
  isReachable = true;
});

async function serve(options: ServerOptions = {}) {
  const check = async () => {
    if (!isReachable) throw new Error('the database is unavailable');
    return { clockOffsetMs: 0, servedRatio: 1 };
  };
  const readiness = createReadiness({ check, logger: createMemoryLogger().logger }, { checkEveryMs: 10 });
  const running = await runGrpcServer({ readiness, ...options });
  // grpc-js can't use TLS with an IP address as its target on Node.js 26.
  const stock = new StockClient(
    `localhost:${running.port}`,
    grpcTls ? credentials.createSsl(Buffer.from(grpcTls.ca)) : credentials.createInsecure(),
  );
  onTestFinished(() => stock.close());
  return {
    ...running,
    readiness,
    check: (service: string) =>
      new Promise<string>((resolve) => {
        stock.check?.({ service }, (error: ServiceError | null, response: HealthStatus) =>
          resolve(error === null ? response.status : String(error.code)),
        );
      }),
    list: () =>
      new Promise<Record<string, HealthStatus>>((resolve, reject) => {
        stock.list?.({}, (error: ServiceError | null, response: { statuses: Record<string, HealthStatus> }) =>
          error === null ? resolve(response.statuses) : reject(error),
        );
      }),
    watch(service: string) {
      const stream: ClientReadableStream<HealthStatus> = stock.watch?.({ service });
      const seen: string[] = [];
      stream.on('data', ({ status }: HealthStatus) => seen.push(status));
      stream.on('status', ({ code }: StatusObject) => seen.push(`status ${code}`));
      stream.on('error', () => {});
      return { seen, cancel: () => stream.cancel() };
    },
  };
}

const names = [
  '',
  'gateway.v1.OrderService',
  'gateway.v1.EventService',
  'gateway.v1.WebhookService',
  'gateway.v1.CredentialsService',
  'gateway.v1.BrandService',
  'gateway.v1.CheckoutService',
];

test('a stock client checks the process and each service without credentials, and no call is logged', async () => {
  const { check, list, calls } = await serve();
  for (const name of names) expect(await check(name)).toBe('SERVING');
  expect(await check('gateway.v1.Other')).toBe('5');
  expect(Object.entries(await list()).map(([name, { status }]) => [name, status])).toEqual(
    names.map((name) => [name, 'SERVING']),
  );
  isReachable = false;
  for (const name of names) await expect.poll(() => check(name)).toBe('NOT_SERVING');
  expect(calls).toEqual([]);
});

test('a watch receives each change, including the drain, and ends when the port closes', async () => {
  const { watch, check, readiness, close, calls, errors } = await serve();
  const watches = names.map(watch);
  const unknown = watch('gateway.v1.Other');
  for (const { seen } of watches) await expect.poll(() => seen).toEqual(['SERVING']);
  await expect.poll(() => unknown.seen).toEqual(['SERVICE_UNKNOWN']);
  isReachable = false;
  for (const { seen } of watches) await expect.poll(() => seen).toEqual(['SERVING', 'NOT_SERVING']);
  isReachable = true;
  for (const { seen } of watches) await expect.poll(() => seen.at(-1)).toEqual('SERVING');
  readiness.drain();
  for (const { seen } of watches)
    await expect.poll(() => seen).toEqual(['SERVING', 'NOT_SERVING', 'SERVING', 'NOT_SERVING']);
  expect(await check('')).toBe('NOT_SERVING');
  await close();
  for (const { seen } of [...watches, unknown]) await expect.poll(() => seen.at(-1)).toBe('status 0');
  expect([calls, errors]).toEqual([[], []]);
});

test('a watch may exceed the time limit of calls, but does not keep an idle connection open', async () => {
  vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const { watch, check } = await serve();
  const { seen } = watch('');
  await expect.poll(() => seen).toEqual(['SERVING']);
  vi.advanceTimersByTime(2 * http2Limits.streamTimeoutMs);
  // Uses the watch's connection.
  expect(await check('')).toBe('SERVING');
  expect(seen).toEqual(['SERVING']);
  vi.advanceTimersByTime(2 * http2Limits.idleTimeoutMs);
  await expect.poll(() => seen.length).toBe(2);
});

test('a watch whose request never ends is reset like any other call', async () => {
  const { port } = await serve({ limits: { streamTimeoutMs: 100, checkEveryMs: 20 } });
  const client = await useRawClient(port);
  const fields = { ...requestFields, ':path': '/grpc.health.v1.Health/Watch' };
  client.socket.write(
    Buffer.concat([
      clientPreface,
      headersFrame(1, fields, 0),
      headersFrame(3, { ...fields, 'content-type': 'text/plain' }, 0),
    ]),
  );
  for (const streamId of [1, 3]) expect(await client.firstFrame(isFrame(frameTypes.reset, streamId))).toBeDefined();
});

const watchCall = {
  headers: { ':path': '/grpc.health.v1.Health/Watch', 'content-type': 'application/grpc' },
  chunks: [lengthPrefixed(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, {})))],
  ends: true,
};

/** Starts a watch on a separate connection. Returns its stream when it has received a response or has closed. */
async function watchAlone(port: number, isAuthenticated = false) {
  const session = useSession(port);
  if (isAuthenticated) expect((await sendCall(session, ordinaryCall('known'))).trailers['grpc-status']).toBe('0');
  const stream = session.request({ ':method': 'POST', ...watchCall.headers });
  stream.on('error', () => {});
  for (const chunk of watchCall.chunks) stream.write(chunk);
  stream.end();
  await new Promise((resolve) => stream.once('data', resolve).once('close', resolve));
  return stream;
}

test('above the limit for all watches together, a new watch ends the oldest unauthenticated one', async () => {
  const { port } = await serve({ limits: { streamingCallsMax: 3 } });
  const watches = [await watchAlone(port, true), await watchAlone(port), await watchAlone(port)];
  const isOpen = () => watches.map(({ closed }) => !closed);
  expect(isOpen()).toEqual([true, true, true]);
  watches.push(await watchAlone(port));
  await expect.poll(isOpen).toEqual([true, false, true, true]);
  expect(watches[1]?.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  watches.push(await watchAlone(port, true), await watchAlone(port, true));
  await expect.poll(isOpen).toEqual([true, false, false, false, true, true]);
  watches.push(await watchAlone(port));
  await expect.poll(isOpen).toEqual([true, false, false, false, true, true, false]);
});

test('watches above the limit for one connection are rejected, and no other call ends', async () => {
  const { port, watch } = await serve({ limits: { streamingCallsPerConnection: 3 } });
  const watches = ['', '', ''].map(watch);
  for (const { seen } of watches) await expect.poll(() => seen).toEqual(['SERVING']);
  const tooMany = watch('');
  // RESOURCE_EXHAUSTED
  await expect.poll(() => tooMany.seen).toEqual(['status 8']);
  const session = useSession(port);
  expect((await sendCall(session, ordinaryCall('beside'))).trailers['grpc-status']).toBe('0');
  watches[0]?.cancel();
  await expect.poll(() => watches[0]?.seen.at(-1)).toBe('status 1');
  const nextWatch = watch('');
  await expect.poll(() => nextWatch.seen).toEqual(['SERVING']);
  expect(watches[1]?.seen).toEqual(['SERVING']);
});

test('cancelled watches no longer count towards the limit', async () => {
  const { port } = await serve();
  const session = useSession(port);
  await once(session, 'connect');
  for (let round = 0; round < 100; round += 1) await sendCall(session, { ...watchCall, cancels: true });
  const grpcUrl = `${grpcTls ? 'https' : 'http'}://127.0.0.1:${port}`;
  const client = grpcClient(Health, { grpcUrl }, { ca: grpcTls?.ca });
  const ending = new AbortController();
  const watches = Array.from({ length: 8 }, async () => {
    for await (const { status } of client.watch({}, { signal: ending.signal })) return status;
  });
  expect(new Set(await Promise.all(watches))).toEqual(new Set([HealthCheckResponse_ServingStatus.SERVING]));
  ending.abort();
});
