import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  GetOrderRequestSchema,
  GetOrderResponseSchema,
  OrderService,
} from '@order-gateway/contract/gateway/v1/order_service_pb';
import { methods } from '@order-gateway/contract/operations';
import { beforeAll, expect, test } from 'vitest';
import { messageBytesMax } from '../../src/limits.ts';
import { httpGetClients } from '../helpers/grpc/rpc-clients.ts';
import { exchange } from '../helpers/raw-http.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { createOrder } from '../helpers/send-order.ts';

const gateway = useGateway();
const orderId = 'get-with-spaces & ünïcode';
const byId = JSON.stringify({ order_id: orderId });
const inProtobuf = toBinary(
  GetOrderRequestSchema,
  create(GetOrderRequestSchema, { order: { case: 'orderId', value: orderId } }),
);

beforeAll(async () => void (await createOrder(gateway, orderId)));

const getOrderPath = '/gateway.v1.OrderService/GetOrder';

function sendGet(query: string | Record<string, string>, init: RequestInit = {}, path = getOrderPath) {
  return fetch(`${gateway.url}${path}?${new URLSearchParams(query)}`, { headers: gateway.headers, ...init });
}

test('clients with useHttpGet look up and list orders, with each encoding and compression', async () => {
  for (const { name, client } of httpGetClients(OrderService, gateway)) {
    const callsBefore = gateway.calls.length;
    const { order } = await client.getOrder({ order: { case: 'orderId', value: orderId } }, gateway);
    expect(order, name).toMatchObject({ orderId, orderStatus: expect.any(Number) });
    const { orders } = await client.listOrders({ limit: 1 }, gateway);
    expect(orders, name).toHaveLength(1);
    await expect
      .poll(() => gateway.calls.slice(callsBefore))
      .toMatchObject([
        { protocol: 'connect', operation: 'GetOrder', code: 'ok' },
        { protocol: 'connect', operation: 'ListOrders', code: 'ok' },
      ]);
  }
});

test.each<[string, Record<string, string>]>([
  ['JSON', { encoding: 'json', message: byId }],
  ['JSON in base64', { encoding: 'json', base64: '1', message: Buffer.from(byId).toString('base64') }],
  ['JSON in base64url', { encoding: 'json', base64: '1', message: Buffer.from(byId).toString('base64url') }],
  ['JSON in gzip', { encoding: 'json', base64: '1', compression: 'gzip', message: base64(gzipSync(byId)) }],
  ['Protobuf', { encoding: 'proto', base64: '1', message: base64(inProtobuf) }],
  ['no compression', { encoding: 'json', compression: 'identity', message: byId }],
])('GET returns the order: %s', async (_, query) => {
  for (const version of [{}, { connect: 'v1' }]) {
    const response = await sendGet({ ...version, ...query });
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(response.headers.get('content-type')).toBe(`application/${query.encoding}`);
    if (query.encoding === 'json') expect(await response.json()).toMatchObject({ order: { order_id: orderId } });
    else expect(fromBinary(GetOrderResponseSchema, await response.bytes())).toMatchObject({ order: { orderId } });
  }
});

test.each<[string, string | Record<string, string>, number, string]>([
  ['an unknown order', { encoding: 'json', message: '{"order_id":"not-there"}' }, 404, 'not_found'],
  ['no query', '', 415, 'unsupported_media_type'],
  ['no encoding', { message: byId }, 415, 'unsupported_media_type'],
  ['an unknown encoding', { encoding: 'xml', message: byId }, 415, 'unsupported_media_type'],
  ['a gRPC-Web encoding', { encoding: 'grpc-web', message: byId }, 415, 'unsupported_media_type'],
  ['no message', { encoding: 'proto' }, 400, 'invalid_argument'],
  ['two messages', 'encoding=json&message=%7B%7D&message=%7B%7D', 400, 'invalid_argument'],
  ['invalid base64', { encoding: 'json', base64: '1', message: '{"order_id":"a"}' }, 400, 'invalid_argument'],
  ['invalid JSON', { encoding: 'json', message: '{' }, 400, 'invalid_argument'],
  ['a duplicate key', { encoding: 'json', message: '{"order_id":"a","order_id":"b"}' }, 400, 'invalid_argument'],
  ['invalid Protobuf', { encoding: 'proto', base64: '1', message: base64([0xff]) }, 400, 'invalid_argument'],
  ['an unknown compression', { encoding: 'json', compression: 'zstd', message: byId }, 501, 'unimplemented'],
  [
    'a message that exceeds the limit after decompression',
    { encoding: 'json', base64: '1', compression: 'gzip', message: base64(gzipSync(' '.repeat(messageBytesMax + 1))) },
    429,
    'resource_exhausted',
  ],
])('GET with %s is rejected, and the response is not cached', async (_, query, status, code) => {
  const response = await sendGet(query);
  expect([response.status, response.headers.get('cache-control')]).toEqual([status, 'no-store']);
  expect(await response.json()).toMatchObject({ code });
  expect(gateway.errors).toEqual([]);
});

test('credentials are read only from headers', async () => {
  const credentials = {
    'x-client-id': gateway.credentials.clientId,
    'x-client-secret': gateway.credentials.clientSecret,
  };
  const response = await sendGet({ ...credentials, encoding: 'json', message: byId }, { headers: {} });
  expect([response.status, response.headers.get('cache-control')]).toEqual([401, 'no-store']);
  expect(response.headers.get('www-authenticate')).toBe('ClientSecret');
});

test('the body of a GET is ignored, and the connection serves the next request', async () => {
  const head = [`GET ${getOrderPath}?encoding=json&message=${encodeURIComponent(byId)} HTTP/1.1`, 'host: x'];
  const headLines = [...head, ...Object.entries(gateway.headers).map(([name, value]) => `${name}: ${value}`)];
  const withBody = [...headLines, 'content-type: application/grpc-web', 'content-length: 5', '', 'xxxxx'].join('\r\n');
  const responses = await exchange(gateway, `${withBody}${[...headLines, 'connection: close', '', ''].join('\r\n')}`);
  expect(responses.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
});

test.each(Object.values(methods))('$name allows GET only if it has no side effects', async ({ name, parent }) => {
  const isRead = /^(Get|List|Resolve)/.test(name);
  const path = `/${parent.typeName}/${name}`;
  const allow = isRead ? 'GET, POST' : 'POST';
  const query = { encoding: 'json', message: '{}' };
  for (const method of ['GET', 'HEAD', 'PUT', 'OPTIONS', 'PROPFIND', 'QUERY']) {
    const response = await sendGet(query, { method }, path);
    if (method === 'GET') expect(response.headers.get('cache-control')).toBe('no-store');
    if (isRead && method === 'GET') expect(response.status).toBeOneOf([200, 400, 403, 404]);
    else expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, allow]);
  }
});

function base64(bytes: Uint8Array | number[]) {
  return Buffer.from(bytes).toString('base64url');
}
