import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { compressionGzip, createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { type ChannelOptions, Client, compressionAlgorithms, credentials, Metadata } from '@grpc/grpc-js';
import {
  type CreateOrderRequest,
  CreateOrderRequestSchema,
  CreateOrderResponseSchema,
  OrderService,
} from '@order-gateway/contract/gateway/v1/order_service_pb';
import { ErrorInfoSchema } from '@order-gateway/contract/google/rpc/error_details_pb';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { expect, onTestFinished, test } from 'vitest';
import { http2Limits, messageBytesMax } from '../../src/limits.ts';
import { callHeaders, createOrderPath, lengthPrefixed, orderData, sendCall } from '../helpers/grpc/grpc-call.ts';
import { runGrpcServer, useSession } from '../helpers/grpc/grpc-servers.ts';
import { orderMessage } from '../helpers/send-order.ts';

const { 'content-type': _protocol, ...credentialFields } = callHeaders;

interface CallResult {
  readonly code: number;
  readonly isReplayed: boolean;
  /** A text that contains the error code, or the order's id. */
  readonly text: string;
}

interface CallOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

interface StockClient {
  createOrder(message: CreateOrderRequest, options?: CallOptions): Promise<CallResult>;
  close(): void;
}

function grpcJs(port: number, options: ChannelOptions = {}): StockClient {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), options);
  return {
    close: () => client.close(),
    createOrder: (message, { timeoutMs, signal } = {}) =>
      new Promise((resolve) => {
        let isReplayed = false;
        const metadata = new Metadata();
        for (const [name, value] of Object.entries(credentialFields)) metadata.set(name, String(value));
        const call = client.makeUnaryRequest(
          createOrderPath,
          (request: CreateOrderRequest) => Buffer.from(toBinary(CreateOrderRequestSchema, request)),
          (bytes: Buffer) => fromBinary(CreateOrderResponseSchema, bytes),
          message,
          metadata,
          timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
          (error, response) => {
            const text = String(error?.metadata?.get('grpc-status-details-bin')[0] ?? response?.orderId ?? '');
            resolve({ code: error?.code ?? 0, isReplayed, text });
          },
        );
        call.on('metadata', (header) => {
          isReplayed = header.get('idempotent-replayed')[0] === 'true';
        });
        signal?.addEventListener('abort', () => call.cancel());
      }),
  };
}

function connectNode(port: number, sendCompression?: typeof compressionGzip): StockClient {
  const baseUrl = `http://127.0.0.1:${port}`;
  const sessionManager = new Http2SessionManager(baseUrl);
  const compression = sendCompression === undefined ? {} : { sendCompression, compressMinBytes: 1 };
  const client = createClient(OrderService, createGrpcTransport({ baseUrl, sessionManager, ...compression }));
  return {
    close: () => sessionManager.abort(),
    async createOrder(message, options) {
      let isReplayed = false;
      const onHeader = (header: Headers) => {
        isReplayed = header.get('idempotent-replayed') === 'true';
      };
      try {
        const { orderId } = await client.createOrder(message, { headers: credentialFields, onHeader, ...options });
        return { code: 0, isReplayed, text: orderId };
      } catch (reason) {
        const error = ConnectError.from(reason);
        return { code: error.code, isReplayed, text: error.findDetails(ErrorInfoSchema)[0]?.metadata.code ?? '' };
      }
    },
  };
}

const pings = { 'grpc.keepalive_time_ms': 20, 'grpc.keepalive_permit_without_calls': 1 };
const gzip = { 'grpc.default_compression_algorithm': compressionAlgorithms.gzip };

const clients: readonly (readonly [name: string, open: (port: number) => StockClient])[] = [
  ['grpc-js', (port) => grpcJs(port, pings)],
  ['grpc-js with gzip', (port) => grpcJs(port, { ...pings, ...gzip })],
  ['connect-node', (port) => connectNode(port)],
  ['connect-node with gzip', (port) => connectNode(port, compressionGzip)],
];

/** Returns a message of exactly this size, with an order_note that is far too long. */
function messageOf(bytes: number): CreateOrderRequest {
  const note = (length: number) => create(CreateOrderRequestSchema, { orderNote: 'x'.repeat(length) });
  const overhead = toBinary(CreateOrderRequestSchema, note(bytes)).length - bytes;
  return note(bytes - overhead);
}

test.each(clients)(
  '%s receives orders, replays and error details, even for the largest messages and for many calls at once',
  async (_name, open) => {
    const server = await runGrpcServer();
    const client = open(server.port);
    onTestFinished(client.close);
    expect(await client.createOrder(orderMessage('one'))).toEqual({ code: 0, isReplayed: false, text: 'one' });
    // Long enough for several keepalive PINGs of grpc-js.
    await sleep(200);
    expect(await client.createOrder(orderMessage('one'))).toEqual({ code: 0, isReplayed: true, text: 'one' });
    const invalid = await client.createOrder({ ...orderMessage('two'), orderAmount: 10.001 });
    expect(invalid).toMatchObject({ code: Code.InvalidArgument, text: expect.stringContaining('invalid_order') });
    const conflict = await client.createOrder({ ...orderMessage('one'), orderNote: 'changed' });
    expect(conflict).toMatchObject({ code: Code.AlreadyExists, text: expect.stringContaining('order_id_conflict') });
    const largest = await client.createOrder(messageOf(messageBytesMax));
    expect(largest).toMatchObject({ code: Code.InvalidArgument, text: expect.stringContaining('invalid_order') });
    const tooLarge = await client.createOrder(messageOf(messageBytesMax + 1));
    expect(tooLarge).toMatchObject({ code: Code.ResourceExhausted, text: expect.stringContaining('body_too_large') });
    // More calls than a connection may have in flight, but few enough for a slow machine.
    const many = await Promise.all(
      Array.from({ length: http2Limits.maxConcurrentStreams + 50 }, (_, index) =>
        client.createOrder(orderMessage(`many-${index}`)),
      ),
    );
    expect(new Set(many.map(({ code }) => code))).toEqual(new Set([0]));
  },
);

test.each(clients)('%s can set a deadline for a call, and can cancel a call', async (_name, open) => {
  const entered: string[] = [];
  const server = await runGrpcServer({
    store: {
      ...createInMemoryOrderStore(),
      async create({ fields }, timeoutMs) {
        entered.push(fields.order_id);
        await sleep(timeoutMs);
        return { kind: 'deadline_exceeded' };
      },
    },
  });
  const client = open(server.port);
  onTestFinished(client.close);
  const late = await client.createOrder(orderMessage('late'), { timeoutMs: 200 });
  expect(late.code).toBe(Code.DeadlineExceeded);
  const abort = new AbortController();
  const cancelled = client.createOrder(orderMessage('cancelled'), { signal: abort.signal });
  await expect.poll(() => entered).toContain('cancelled');
  abort.abort();
  expect((await cancelled).code).toBe(Code.Canceled);
  await expect.poll(() => server.calls.map(({ code }) => code)).toContain('cancelled');
});

test('grpc-js with proto/service_config.json makes at most four attempts if a call is UNAVAILABLE', async () => {
  const memory = createInMemoryOrderStore();
  const attempts: string[] = [];
  const attemptsOf = (orderId: string) => attempts.filter((id) => id === orderId).length;
  const failuresOf: Readonly<Record<string, number>> = { recovers: 2, fails: 100 };
  const server = await runGrpcServer({
    store: {
      ...memory,
      create(order, timeoutMs) {
        const { order_id } = order.fields;
        attempts.push(order_id);
        const isFailing = attemptsOf(order_id) <= (failuresOf[order_id] ?? 0);
        return isFailing ? Promise.resolve({ kind: 'unavailable' }) : memory.create(order, timeoutMs);
      },
    },
  });
  const config = await readFile(new URL('../../../../proto/service_config.json', import.meta.url), 'utf8');
  const client = grpcJs(server.port, { 'grpc.service_config': config });
  onTestFinished(client.close);
  expect(await client.createOrder(orderMessage('recovers'))).toEqual({ code: 0, isReplayed: false, text: 'recovers' });
  expect((await client.createOrder(orderMessage('fails'))).code).toBe(Code.Unavailable);
  expect((await client.createOrder({ ...orderMessage('rejected'), orderAmount: 10.001 })).code).toBe(
    Code.InvalidArgument,
  );
  expect([attemptsOf('recovers'), attemptsOf('fails')]).toEqual([3, 4]);
  await expect.poll(() => server.calls.length).toBe(8);
});

test('accepts the headers that grpcurl, proxies and tracing add', async () => {
  const server = await runGrpcServer();
  const session = useSession(server.port);
  const headers = {
    ...callHeaders,
    'content-type': 'application/grpc+proto',
    'user-agent': 'grpcurl/1.9.3 grpc-go/1.69.0',
    te: 'trailers',
    'grpc-accept-encoding': 'gzip,deflate,identity',
    'grpc-encoding': 'identity',
    'grpc-timeout': '99999999H',
    'grpc-trace-bin': 'AAAREiM0RVZneImaq7zN3u8',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    'x-forwarded-for': '192.0.2.1, 192.0.2.2',
    'x-envoy-expected-rq-timeout-ms': '15000',
    ...Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`x-more-${index}`, 'v'.repeat(100)])),
  };
  const { trailers } = await sendCall(session, { headers, chunks: [lengthPrefixed(orderData('odd'))], ends: true });
  expect(trailers['grpc-status']).toBe('0');
  await expect.poll(() => server.calls).toMatchObject([{ code: 'created' }]);
});
