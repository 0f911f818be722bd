import { create, toBinary } from '@bufbuild/protobuf';
import { CreateOrderRequestSchema } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { expect, test } from 'vitest';
import {
  clientPreface,
  dataFrame,
  flags,
  frameTypes,
  headerBlock,
  http2Frame,
} from '../../../../tools/http2-frames.ts';
import { callHeaders, lengthPrefixed, orderData, sendCall } from '../helpers/grpc/grpc-call.ts';
import { runGrpcServer, useRawClient, useSession } from '../helpers/grpc/grpc-servers.ts';
import { callFields } from '../helpers/grpc/raw-client.ts';
import { orderMessage } from '../helpers/send-order.ts';

const sizeOf = (trailers: object) =>
  Object.entries(trailers).reduce((sum, [name, value]) => sum + name.length + String(value).length, 0);

test('the error for any order fits into the 8 KB of trailers that clients accept', async () => {
  const server = await runGrpcServer();
  const session = useSession(server.port);
  const order = {
    ...orderMessage('long'),
    orderNote: '\u{1F4DA}'.repeat(1_000),
    customerName: '\u{1F4DA}'.repeat(255),
    orderChecksum: 'v1=bad',
  };
  const data = toBinary(CreateOrderRequestSchema, create(CreateOrderRequestSchema, order));
  const { trailers } = await sendCall(session, { headers: callHeaders, chunks: [lengthPrefixed(data)], ends: true });
  expect(trailers['grpc-status']).toBe('3');
  expect(sizeOf(trailers)).toBeLessThan(8_192);
  const message = decodeURIComponent(String(trailers['grpc-message']));
  expect(message).toMatch(/\u{1F4DA} \.\.\. \(truncated from \d+ bytes; POST \/order returns the complete text\)$/u);
});

test('the error for an order with thousands of invalid metadata keys fits too', async () => {
  const server = await runGrpcServer();
  const session = useSession(server.port);
  const metadata = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`key${index}`, ' ']));
  const order = create(CreateOrderRequestSchema, { ...orderMessage('metadata'), metadata });
  const chunks = [lengthPrefixed(toBinary(CreateOrderRequestSchema, order))];
  const { trailers } = await sendCall(session, { headers: callHeaders, chunks, ends: true });
  expect(trailers['grpc-status']).toBe('3');
  expect(trailers['grpc-message']).toMatch(/^metadata must have at most 20 keys; metadata\.key0 /);
  expect(sizeOf(trailers)).toBeLessThan(8_192);
});

test('every rejection has an x-request-id, and is logged with it', async () => {
  const server = await runGrpcServer();
  const session = useSession(server.port);
  const rejected: [Record<string, string>, number, string?][] = [
    [{ ':path': '/gateway.v1.OrderService/Nothing', 'content-type': 'application/grpc' }, 200, '12'],
    [{ ':path': '/grpc.health.v1.Health/Nothing', 'content-type': 'application/grpc+proto' }, 200, '12'],
    [{ ':path': '/gateway.v1.OrderService/Nothing', 'content-type': 'application/grpc-web' }, 404],
    [{ 'content-type': 'text/plain' }, 415],
    [{ 'content-type': 'application/grpc+json' }, 415],
    [{ 'content-type': 'application/json' }, 415],
    [{ 'content-type': 'application/grpc-web' }, 415],
    [{ ':method': 'PUT', 'content-type': 'application/grpc' }, 405],
    [{ ':path': '/', 'content-type': 'application/grpc', expect: 'anything' }, 200, '12'],
    // If queries were ignored, this call would bypass the limits of its method.
    [{ ':path': '/grpc.health.v1.Health/Watch?x', 'content-type': 'application/grpc' }, 200, '12'],
  ];
  const expected: string[] = [];
  for (const [sent, status, code] of rejected) {
    const { headers, trailers } = await sendCall(session, { headers: sent, chunks: [], ends: true });
    const { ':status': httpStatus, 'x-request-id': requestId, allow } = headers;
    expect([httpStatus, requestId, trailers['grpc-status']]).toEqual([status, '7'.repeat(16), code]);
    expect(allow).toBe(status === 405 ? 'POST' : undefined);
    const withId = { ...sent, 'x-request-id': 'shop-1' };
    const echoed = await sendCall(session, { headers: withId, chunks: [], ends: true });
    expect(echoed.headers['x-request-id']).toBe('shop-1');
    expected.push('7'.repeat(16), 'shop-1');
    await expect.poll(() => server.calls.map(({ request_id }) => request_id)).toEqual(expected);
  }
  const logged = new Set(server.calls.map(({ code }) => code));
  expect(logged).toEqual(new Set(['not_found', 'unsupported_media_type', 'method_not_allowed']));
});

// A proxy may have used the second header.
test('rejects a second Content-Type header with another media type', async () => {
  const server = await runGrpcServer();
  const { socket } = await useRawClient(server.port);
  const call = (streamId: number, contentType: string) => [
    http2Frame(
      frameTypes.headers,
      flags.endHeaders,
      streamId,
      Buffer.concat([headerBlock(callFields), headerBlock({ 'content-type': contentType })]),
    ),
    dataFrame(streamId, lengthPrefixed(orderData('second'))),
  ];
  socket.write(Buffer.concat([clientPreface, ...call(1, 'application/grpc')]));
  await expect.poll(() => server.calls.map(({ code }) => code)).toEqual(['created']);
  socket.write(Buffer.concat(call(3, 'text/plain')));
  await expect.poll(() => server.calls.map(({ code }) => code)).toEqual(['created', 'unsupported_media_type']);
});
