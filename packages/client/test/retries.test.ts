import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { afterEach, expect, test } from 'vitest';
import { type ClientOptions, createClient, GatewayError, GatewayNetworkError } from '../src/index.ts';

const { order_checksum, ...order } = validOrderInput({ service_type: 'DIGITAL' as const });
const created = { service_order_id: 7, order_id: order.order_id };

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Starts a server that handles requests with `handlers` in turn. Returns its client and the requests it received. */
async function clientOf(handlers: readonly Handler[], options: Partial<ClientOptions> = {}) {
  const requests: { body: string }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    requests.push({ body: Buffer.concat(chunks).toString() });
    handlers[requests.length - 1]?.(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { client: createClient({ baseUrl, clientId: 'app_1', clientSecret: 'sk_1', ...options }), requests };
}

const drop: Handler = ({ socket }) => socket.destroy();
const succeed: Handler = (_, response) => response.writeHead(201).end(JSON.stringify(created));
const fail =
  (status: number): Handler =>
  (_, response) =>
    response.writeHead(status).end(JSON.stringify({ code: 'unavailable' }));
const endEarly: Handler = ({ socket }, response) => {
  response.writeHead(201, { 'content-length': '100' }).write('{"service_order_id":');
  setImmediate(() => socket.destroy());
};

test('createOrder succeeds after a dropped connection, 503, an incomplete response and 429', async () => {
  const { client, requests } = await clientOf([drop, fail(503), endEarly, fail(429), succeed]);
  expect(await client.createOrder(order)).toEqual(created);
  expect(new Set(requests.map(({ body }) => body)).size).toBe(1);
  expect(requests).toHaveLength(5);
});

test('a request to a server that does not respond is abandoned after timeoutMs', async () => {
  // Only the first attempt has a time limit, because a slow machine could exceed it in the second one.
  const limitFirstAttempt: typeof fetch = (url, init) =>
    fetch(url, requests.length === 0 ? init : { ...init, signal: null });
  const { client, requests } = await clientOf([() => {}, succeed], { timeoutMs: 200, fetch: limitFirstAttempt });
  expect(await client.createOrder(order)).toEqual(created);
  expect(requests).toHaveLength(2);
});

test('a response whose body does not end is abandoned after timeoutMs', async () => {
  const beginResponse: Handler = (_, response) => response.writeHead(201).write('{');
  const { client } = await clientOf([beginResponse], { timeoutMs: 200, retries: 0 });
  await expect(client.createOrder(order)).rejects.toThrow(GatewayNetworkError);
});

test('a refused connection is reported as a GatewayNetworkError with the reason', async () => {
  const { client } = await clientOf([], { retries: 0 });
  await closing.pop()?.();
  const error = await client.createOrder(order).catch((cause) => cause);
  expect(error).toBeInstanceOf(GatewayNetworkError);
  expect(error.message).toMatch(/^No response from the gateway: .*ECONNREFUSED/);
});

test('the client does not follow a redirect, which would leak the secret', async () => {
  const { client, requests } = await clientOf([
    ({ headers }, response) => response.writeHead(307, { location: `http://${headers.host}/elsewhere` }).end(),
    succeed,
  ]);
  const error = await client.createOrder(order).catch((cause) => cause);
  expect(error).toBeInstanceOf(GatewayError);
  expect([error.status, error.code, requests.length]).toEqual([307, 'unknown', 1]);
});
