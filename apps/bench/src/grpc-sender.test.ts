import { createServer, type Http2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { fromBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@gateway/contract/gateway/v1/order_service_pb';
import { expect, test } from 'vitest';
import { sendGrpcLoad } from './grpc-sender.ts';

/** A server that Node.js made, so that the frames written by hand are read by someone else. */
async function listen(
  onOrder: (orderId: string, headers: IncomingHttpHeaders) => string,
  delayMs = 0,
): Promise<{ server: Http2Server; port: number }> {
  const server = createServer();
  server.on('session', (session) => session.on('error', () => {}).on('stream', answer));
  const answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => {});
    const pieces: Uint8Array[] = [];
    stream.on('data', (piece: Uint8Array) => pieces.push(piece));
    stream.on('end', () => {
      const { orderId } = fromBinary(CreateOrderRequestSchema, Buffer.concat(pieces).subarray(5));
      const status = onOrder(orderId ?? '', headers);
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': status }));
      setTimeout(() => {
        if (stream.destroyed) return;
        stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.end(Buffer.alloc(5));
      }, delayMs);
    });
  };
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return { server, port: typeof address === 'object' && address !== null ? address.port : 0 };
}

const options = { concurrency: 8, seconds: 1, run: 'run-1', credentials: { clientId: 'app_1', clientSecret: 'sk_1' } };

test('sends every call as a new order, with the credentials, and counts answers and failures', async () => {
  const seen: string[] = [];
  const headersSeen = new Set<string>();
  const { server, port } = await listen((orderId, headers) => {
    seen.push(orderId);
    headersSeen.add(JSON.stringify(headers));
    return seen.length % 5 !== 0 ? '0' : '3';
  });
  const result = await sendGrpcLoad({ ...options, port });
  server.close();
  // The same from the first call, whose headers fill the server's table, to the last, whose headers are places in it.
  expect([...headersSeen].map((headers) => JSON.parse(headers))).toEqual([
    {
      ':authority': `127.0.0.1:${port}`,
      ':method': 'POST',
      ':path': '/gateway.v1.OrderService/CreateOrder',
      ':scheme': 'http',
      'x-client-id': 'app_1',
      'x-client-secret': 'sk_1',
      'grpc-accept-encoding': 'identity,deflate,gzip',
      'accept-encoding': 'identity',
      'grpc-timeout': '5000m',
      'user-agent': 'grpc-node-js/1.14.7',
      'content-type': 'application/grpc',
      te: 'trailers',
    },
  ]);
  expect(result.answers).toBeGreaterThan(0);
  expect(result.failed).toBeGreaterThan(0);
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen[0]).toBe('run-1-0000000001');
  expect(seen.length).toBeGreaterThanOrEqual(result.answers + result.failed);
});

test('sends one order over and over where replays are asked for, and no more calls than the rate', async () => {
  const seen: string[] = [];
  const { server, port } = await listen((orderId) => {
    seen.push(orderId);
    return '0';
  });
  const startedAt = performance.now();
  const result = await sendGrpcLoad({ ...options, port, rate: 50, replays: true });
  const seconds = (performance.now() - startedAt) / 1_000;
  server.close();
  expect(new Set(seen)).toEqual(new Set(['run-1-0000000000']));
  expect(result.answers).toBeGreaterThan(0);
  expect(result.answers).toBeLessThanOrEqual(60);
  // The calls before it counts are as many as in its first one and a half seconds.
  expect(seen.length).toBeGreaterThan(result.answers);
  expect(seen.length).toBeLessThanOrEqual(Math.ceil(50 * seconds) + 1);
});

test('on a schedule, counts the calls that are under way at its end too', async () => {
  const { server, port } = await listen(() => '0', 600);
  const result = await sendGrpcLoad({ ...options, port, rate: 50 });
  server.close();
  // More than half of the calls of its second are answered after it.
  expect(result.answers).toBeGreaterThan(40);
  expect(result.failed).toBe(0);
});
