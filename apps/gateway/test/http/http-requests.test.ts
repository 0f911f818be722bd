import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { callTimeoutMs, messageBytesMax } from '../../src/limits.ts';
import { createOrderPath } from '../helpers/grpc/grpc-call.ts';
import { exchange, firstBytes, orderRequest, postHead, statusesOf, textOf } from '../helpers/raw-http.ts';
import { runGateway, useGateway } from '../helpers/running-gateway.ts';
import { createOrder, postOrder } from '../helpers/send-order.ts';

const gateway = useGateway();

const oneByteHead = 'POST /order HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n';

test.each([
  ['an invalid request line', 'GARBAGE\r\n\r\n', 400, 'malformed_request'],
  ['an unknown method', 'FLY /order HTTP/1.1\r\nhost: x\r\n\r\n', 405, 'method_not_allowed'],
  ['an unknown method of an unknown path', 'FLY /other HTTP/1.1\r\nhost: x\r\n\r\n', 404, 'not_found'],
  ['a TLS hello', Buffer.from('16030100c8010000c40303', 'hex'), 400, 'malformed_request'],
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'malformed_request'],
  ['no host', 'GET /order HTTP/1.1\r\n\r\n', 400, 'malformed_request'],
  ['two hosts', 'GET /health/live HTTP/1.1\r\nhost: x\r\nHost: x\r\n\r\n', 400, 'malformed_request'],
  ['a host with a space', 'GET /health/live HTTP/1.1\r\nhost: not a host\r\n\r\n', 400, 'malformed_request'],
  ['a host of two names', 'GET /health/live HTTP/1.1\r\nhost: a, b\r\n\r\n', 400, 'malformed_request'],
  ['a host with a user', 'GET /health/live HTTP/1.1\r\nhost: user@x\r\n\r\n', 400, 'malformed_request'],
  ['an IPv6 host without brackets', 'GET /order HTTP/1.1\r\nhost: ::1:8080\r\n\r\n', 400, 'malformed_request'],
  [
    'headers over 16 KiB',
    `GET /order HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  ['two lengths', `${oneByteHead}content-length: 2\r\n\r\n`, 400, 'malformed_request'],
  ['a length and chunks', `${oneByteHead}transfer-encoding: chunked\r\n\r\n`, 400, 'malformed_request'],
  ['a header with a NUL', 'GET /order HTTP/1.1\r\nhost: x\r\nx: a\u0000b\r\n\r\n', 400, 'malformed_request'],
])('%s is rejected with a problem document', async (_, text, status, code) => {
  const response = await exchange(gateway, text);
  expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(response.toLowerCase()).toContain('content-type: application/problem+json');
  expect(JSON.parse(response.slice(response.indexOf('\r\n\r\n') + 4))).toMatchObject({
    status,
    code,
    request_id: expect.any(String),
  });
});

/** The last value is the `Allow` header of a 405. If it is null, the path is unknown. */
test.each([
  ['GET', '/nowhere', null],
  ['GET', '/%zz', null],
  ['POST', '/nope', null],
  // Longer than any order_id.
  ['POST', `/order/${'x'.repeat(5_000)}/cancel`, null],
  ['QUERY', '/nope', null],
  ['GET', '/order/a/b', null],
  ['POST', '/order/x/cancel/', null],
  ['POST', '/order/x//cancel', null],
  ['POST', '/order/x/cancel/y', null],
  ['PROPFIND', '/order', 'POST, GET, HEAD'],
  ['OPTIONS', '/order', 'POST, GET, HEAD'],
  ['PUT', '/order?x=1', 'POST, GET, HEAD'],
  ['PUT', '/order', 'POST, GET, HEAD'],
  ['DELETE', '/order', 'POST, GET, HEAD'],
  ['QUERY', '/order', 'POST, GET, HEAD'],
  ['PROPFIND', '/payment/x/simulate', 'POST'],
  ['GET', createOrderPath, 'POST'],
  ['PUT', createOrderPath, 'POST'],
  ['QUERY', createOrderPath, 'POST'],
  ['PROPFIND', createOrderPath, 'POST'],
  ['POST', '/health/live', 'GET, HEAD'],
  ['GET', '/order/x/cancel', 'POST'],
  ['POST', '/order/x', 'GET, HEAD'],
  ['DELETE', '/order/x', 'GET, HEAD'],
  ['PUT', '/order/x/cancel', 'POST'],
  ['DELETE', '/order/x/cancel', 'POST'],
  ['PROPFIND', '/order/x/cancel', 'POST'],
])('%s %s is rejected in the same way for every body and media type', async (method, path, allow) => {
  const expected = allow === null ? { status: 404, code: 'not_found' } : { status: 405, code: 'method_not_allowed' };
  const bodies = method === 'GET' ? [null] : [null, '{', '{"__proto__":1}', 'x'.repeat(70_000)];
  for (const type of ['application/json', 'application/json; charset=utf-16', 'text/plain', 'no type', undefined]) {
    for (const body of bodies) {
      const headers = type === undefined ? {} : { 'content-type': type };
      const response = await fetch(`${gateway.url}${path}`, { method, headers, body });
      expect([response.status, response.headers.get('allow')], `${type} ${body}`).toEqual([expected.status, allow]);
      expect(response.headers.get('content-type')).toContain('application/problem+json');
      expect(await response.json()).toMatchObject({ ...expected, request_id: response.headers.get('x-request-id') });
    }
  }
  expect(gateway.errors).toEqual([]);
});

test('an unknown Expect header is ignored', async () => {
  const response = await exchange(gateway, 'PUT /order HTTP/1.1\r\nhost: x\r\nexpect: x\r\nconnection: close\r\n\r\n');
  expect(response).toMatch(/^HTTP\/1\.1 405 [^{]+\r\nx-request-id: /);
});

test.each([
  ['of another service', '1.1', 'host: a_b.test:443\r\n'],
  ['with an IPv6 address', '1.1', 'host: [::1]:8080\r\n'],
  ['that is empty', '1.1', 'host:\r\n'],
  ['that is absent, as HTTP/1.0 allows,', '1.0', ''],
])('a Host %s does not change the response, in JSON and Connect', async (_, version, host) => {
  for (const path of ['/order', createOrderPath]) {
    const head = postHead(gateway, path, 'content-length: 2', 'connection: close');
    const request = head.replace('HTTP/1.1', `HTTP/${version}`).replace('host: x\r\n', host);
    const response = await exchange(gateway, `${request}{}`);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).toContain('invalid_order');
  }
});

// The fixtures cover all other media types.
test.each([
  ['', 415],
  ['application/json; charset=latin1', 415],
  ['application/json; charset=utf8', 400],
  ['application/json; odata=verbose; charset=utf-8', 400],
])('a body of the media type "%s" gets %i', async (type, status) => {
  expect((await postOrder(gateway, '{}', { 'content-type': type })).status).toBe(status);
});

test.each([
  ['media types', 'content-type: application/json\r\ncontent-type: text/plain', 415],
  ['media types with parameters', 'content-type: application/json; x=y\r\ncontent-type: text/plain', 415],
  ['client ids', 'content-type: application/json\r\nx-client-id: app_another', 401],
  ['client secrets', 'content-type: application/json\r\nx-client-secret: sk_another', 401],
])('two different %s are rejected, in JSON and Connect', async (_, headers, status) => {
  const { clientId, clientSecret } = gateway.credentials;
  const credentials = `x-client-id: ${clientId}\r\nx-client-secret: ${clientSecret}`;
  for (const path of ['/order', createOrderPath]) {
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n${credentials}\r\n${headers}`;
    expect(await exchange(gateway, `${head}\r\n\r\n{}`)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  }
});

test('content-encoding: identity is accepted in upper and lower case', async () => {
  for (const coding of ['identity', 'Identity', 'IDENTITY']) {
    expect((await postOrder(gateway, '{}', { 'content-encoding': coding })).status).toBe(400);
  }
});

test('a body of 64 KiB without a content-length is read, and one byte more is rejected', async () => {
  const padded = (size: number) => `{"unknown":"${'x'.repeat(size - 14)}"}`;
  const chunked = (size: number) =>
    `${postHead(gateway, '/order', 'transfer-encoding: chunked', 'connection: close')}${size.toString(16)}\r\n${padded(size)}\r\n0\r\n\r\n`;
  expect(await exchange(gateway, chunked(65_536))).toMatch(/^HTTP\/1\.1 400 /);
  expect(await exchange(gateway, chunked(65_537))).toMatch(/^HTTP\/1\.1 413 /);
});

test('messages sent byte by byte get a response, and do not block other requests', async () => {
  const head = postHead(gateway, createOrderPath, 'transfer-encoding: chunked', 'connection: close').replace(
    'application/json',
    'application/grpc-web+proto',
  );
  // The flags and length of a message of 4 KiB in one chunk, and each of its bytes in a separate chunk.
  const message = `${head}5\r\n\u0000\u0000\u0000\u0010\u0000\r\n${'1\r\n\u0001\r\n'.repeat(4_096)}0\r\n\r\n`;
  const responses = Array.from({ length: 6 }, () => exchange(gateway, Buffer.from(message, 'latin1')));
  await createOrder(gateway, 'beside-bytes');
  for (const response of await Promise.all(responses))
    expect(response).toMatch(/^HTTP\/1\.1 200 [\s\S]+grpc-status: 3/);
});

test.each([
  [
    'in gRPC-Web',
    'application/grpc-web+proto',
    'transfer-encoding: chunked',
    '5\r\n\u0000\u0000\u0001\u0000\u0000\r\n',
  ],
  ['in Connect', 'application/proto', `content-length: ${messageBytesMax}`, ''],
])('a message %s that is announced but not sent allocates no buffer', async (_, mediaType, length, head) => {
  const text = postHead(gateway, createOrderPath, length, 'expect: 100-continue') + head;
  const bytes = Buffer.from(text.replace('application/json', mediaType), 'latin1');
  await createOrder(gateway, `before-${mediaType}`);
  const before = process.memoryUsage().arrayBuffers;
  const sockets = Array.from({ length: 200 }, () => connect(gateway.httpPort, '127.0.0.1'));
  try {
    for (const socket of sockets) socket.write(bytes);
    // Waits until the gateway has sent "100 Continue" to each client. The gateway reads everything sent so far before
    // it reads the next order.
    await Promise.all(sockets.map((socket) => once(socket, 'data')));
    await createOrder(gateway, `beside-${mediaType}`);
    // A quarter of the announced bytes is far more than 200 requests need.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan((200 * messageBytesMax) / 4);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test.each(['/order', '/order/x/cancel', createOrderPath, createOrderPath.replace('.', '%2e')])(
  'POST %s without valid credentials is rejected before the body arrives',
  async (path) => {
    // The body is never sent. A server that waited for it would respond with 504.
    const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n`;
    expect(await firstBytes(gateway, head)).toMatch(/^HTTP\/1\.1 401 /);
  },
);

test('a Connect message that is longer than the limit is rejected before its body arrives', async () => {
  const length = `content-length: ${messageBytesMax + 1}`;
  const head = postHead(gateway, createOrderPath, length).replace('application/json', 'application/proto');
  expect(await firstBytes(gateway, head)).toMatch(/^HTTP\/1\.1 429 [\s\S]+"reason":"BODY_TOO_LARGE"/);
});

test.each([
  ['GET', '/health/live', {}, 200],
  ['GET', '/health/ready', {}, 200],
  ['GET', '/docs/errors', {}, 200],
  ['GET', createOrderPath, {}, 405],
  ['PUT', createOrderPath, { 'content-type': 'application/json' }, 405],
  ['POST', createOrderPath, { 'content-type': 'text/plain' }, 415],
  ['POST', createOrderPath, { 'content-type': 'application/json; charset=latin1' }, 415],
  ['POST', createOrderPath, { 'content-type': 'no type' }, 415],
  ['POST', createOrderPath, { 'content-type': 'application/grpc-web+json' }, 415],
  ['POST', createOrderPath, { 'content-type': 'application/json' }, 401],
  ['POST', createOrderPath, { 'content-type': 'application/grpc-web+proto' }, 200],
])(
  'the response to %s %s with %j has an x-request-id',
  async (method, path, headers: Record<string, string>, status) => {
    const body = method === 'GET' ? null : '{}';
    const response = await fetch(`${gateway.url}${path}`, { method, body, headers });
    const assigned = expect.stringMatching(/^[0-9A-Za-z]{16}$/);
    expect([response.status, response.headers.get('x-request-id')]).toEqual([status, assigned]);
    const withId = { ...headers, 'x-request-id': 'shop-1' };
    const echoed = await fetch(`${gateway.url}${path}`, { method, body, headers: withId });
    expect([echoed.status, echoed.headers.get('x-request-id')]).toEqual([status, 'shop-1']);
  },
);

const order = (orderId: string) => orderRequest(gateway, orderId);

test.each([
  ['one order', () => order('before-1'), 'GARBAGE\r\n\r\n', ['201', '400']],
  ['two orders', () => order('before-2') + order('before-3'), 'GARBAGE\r\n\r\n', ['201', '201', '400']],
  ['an order and half a request', () => `${order('before-4')}GET /order/`, '\u0000', ['201', '400']],
  [
    'an order and a body that cannot be parsed',
    () => order('before-5') + postHead(gateway, '/order', 'transfer-encoding: chunked'),
    'x',
    ['201', '400'],
  ],
  ['no request', () => '', 'GARBAGE\r\n\r\n', ['400']],
])('the error for invalid bytes does not overtake the response to %s', async (_, before, unreadable, statuses) => {
  for (const end of ['', 'MORE\r\n'.repeat(1_000)]) {
    const received = await exchange(gateway, before() + unreadable + end);
    expect(statusesOf(received).map((status) => status.replace('200', '201'))).toEqual(statuses);
  }
});

test.each(['/order', createOrderPath])(
  'the 401 response to POST %s has a challenge (RFC 9110, 15.5.2)',
  async (path) => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(gateway.url + path, { method: 'POST', headers, body: '{}' });
    expect([response.status, response.headers.get('www-authenticate')]).toEqual([401, 'ClientSecret']);
  },
);

test('a body that takes longer than the call timeout gets 504, is logged as client_timeout, and creates no order', async () => {
  const gateway = await runGateway({ patience: 1 });
  const lookUp = async () => (await fetch(`${gateway.url}/order/too-slow`, { headers: gateway.headers })).status;
  // On a busy machine, the first statement, which opens the session, can take longer than the call may.
  await expect.poll(lookUp).toBe(404);
  const form = connect(gateway.httpPort, '127.0.0.1');
  const page = textOf(form);
  const formHead = postHead(gateway, '/payment/x/simulate', 'content-length: 2', 'connection: close');
  form.write(`${formHead.replace('application/json', 'application/x-www-form-urlencoded')}o`);
  const body = JSON.stringify(validOrderInput({ order_id: 'too-slow' }));
  const socket = connect(gateway.httpPort, '127.0.0.1');
  const orderResponse = textOf(socket);
  socket.write(
    `${postHead(gateway, '/order', `content-length: ${body.length}`, 'connection: close')}${body.slice(0, 20)}`,
  );
  // The response on a later connection shows that the timeouts of both calls have started.
  await exchange(gateway, 'GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  await sleep(callTimeoutMs + 100);
  socket.write(body.slice(20));
  form.write('=');
  expect(await page).toMatch(/^HTTP\/1\.1 504 /);
  expect(await orderResponse).toMatch(/^HTTP\/1\.1 504 [\s\S]+"code":"deadline_exceeded"/);
  const late = () => gateway.calls.filter(({ code }) => code === 'client_timeout');
  await expect.poll(late).toMatchObject(Array(2).fill({ http_status: 504, level: 'info' }));
  expect(await lookUp()).toBe(404);
});

test('a body that ends early does not hang, and causes no internal error', async () => {
  const socket = connect(gateway.httpPort, '127.0.0.1');
  socket.on('error', () => {});
  socket.end(`${postHead(gateway, '/order', 'content-length: 100')}{"order_id":`);
  await once(socket.resume(), 'close');
  expect(gateway.errors).toEqual([]);
});
