import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { watchConnections } from '../src/http/connections.ts';
import { callTimeoutMs, connectionsCheckEveryMs, headersTimeoutMs, messageBytesMax } from '../src/limits.ts';
import { fixedDeps } from './fixed-deps.ts';
import { createOrderPath } from './grpc-call.ts';
import { createMemoryLogger } from './memory-logger.ts';
import { credentialHeaders, postOrder, type RunningGateway, runGateway } from './running-gateway.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await runGateway();
});
afterAll(() => gateway?.close());

/** Opens a connection, writes the text, and gives all that comes back until the gateway ends it. */
async function exchange(text: string | Uint8Array): Promise<string> {
  const socket = connect(gateway.httpPort, '127.0.0.1');
  socket.write(text);
  return textOf(socket);
}

/** All that comes until the gateway ends the connection. */
async function textOf(socket: Socket): Promise<string> {
  let received = '';
  socket.setEncoding('latin1').on('data', (piece) => {
    received += piece;
  });
  socket.on('error', () => {});
  await once(socket, 'close', { signal: AbortSignal.timeout(20_000) });
  return received;
}

function orderHead(...more: string[]): string {
  return postHead(gateway, '/order', ...more);
}

function postHead({ credentials }: RunningGateway, path: string, ...more: string[]): string {
  const { 'x-client-id': id, 'x-client-secret': secret } = credentialHeaders(credentials);
  const lines = [
    `POST ${path} HTTP/1.1`,
    'host: x',
    `x-client-id: ${id}`,
    `x-client-secret: ${secret}`,
    'content-type: application/json',
  ];
  return `${[...lines, ...more].join('\r\n')}\r\n\r\n`;
}

test.each([
  ['a request line that is none', 'GARBAGE\r\n\r\n', 400, 'malformed_json'],
  ['an unknown method', 'FLY /order HTTP/1.1\r\nhost: x\r\n\r\n', 400, 'malformed_json'],
  ['a TLS hello', Buffer.from('16030100c8010000c40303', 'hex'), 400, 'malformed_json'],
  ['an HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'malformed_json'],
  ['no host', 'GET /order HTTP/1.1\r\n\r\n', 400, 'malformed_json'],
  ['headers over 16 KiB', `GET /order HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 413, 'body_too_large'],
  [
    'two lengths',
    'POST /order HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
    400,
    'malformed_json',
  ],
  [
    'a length and chunks',
    'POST /order HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
    400,
    'malformed_json',
  ],
  ['a header with a NUL', 'GET /order HTTP/1.1\r\nhost: x\r\nx: a\u0000b\r\n\r\n', 400, 'malformed_json'],
])('%s is refused with a problem document before there is a request', async (_, text, status, code) => {
  const answer = await exchange(text);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answer.toLowerCase()).toContain('content-type: application/problem+json');
  expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toMatchObject({
    status,
    code,
    request_id: expect.any(String),
  });
});

test.each([
  ['an unknown path', 'GET', '/nowhere', 404, 'not_found', null],
  ['a path that can not be decoded', 'GET', '/%zz', 404, 'not_found', null],
  ['an unknown path with a body', 'POST', '/orders', 404, 'not_found', null],
  ['GET where only POST is known', 'GET', '/order', 405, 'method_not_allowed', 'POST'],
  ['DELETE where only POST is known', 'DELETE', '/order', 405, 'method_not_allowed', 'POST'],
  ['OPTIONS', 'OPTIONS', '/order', 405, 'method_not_allowed', 'POST'],
  ['PROPFIND', 'PROPFIND', '/order', 405, 'method_not_allowed', 'POST'],
  ['a query after a known path', 'PUT', '/order?x=1', 405, 'method_not_allowed', 'POST'],
  ['POST to health', 'POST', '/health/live', 405, 'method_not_allowed', 'GET, HEAD'],
  ['GET where a method of the service is', 'GET', createOrderPath, 405, 'method_not_allowed', 'POST'],
])('%s is refused with a problem document', async (_, method, path, status, code, allow) => {
  const response = await fetch(`${gateway.url}${path}`, { method });
  expect([response.status, response.headers.get('allow')]).toEqual([status, allow]);
  expect(response.headers.get('content-type')).toContain('application/problem+json');
  expect(await response.json()).toMatchObject({ status, code, request_id: response.headers.get('x-request-id') });
});

test.each([
  ['POST', '/nope', 404, null],
  ['OPTIONS', '/order', 405, 'POST'],
  ['PUT', '/order', 405, 'POST'],
  ['DELETE', '/order', 405, 'POST'],
  ['QUERY', '/order', 405, 'POST'],
  ['QUERY', '/nope', 404, null],
  ['PUT', createOrderPath, 405, 'POST'],
  ['QUERY', createOrderPath, 405, 'POST'],
  ['POST', '/order/x', 405, 'GET, HEAD'],
])('%s %s is refused in the same way whatever its body and media type are', async (method, path, status, allow) => {
  for (const type of ['application/json', 'application/json; charset=utf-16', 'text/plain', 'no type', undefined]) {
    for (const body of [undefined, '{', '{"__proto__":1}', 'x'.repeat(70_000)]) {
      const headers = type === undefined ? {} : { 'content-type': type };
      const response = await fetch(`${gateway.url}${path}`, { method, headers, body: body ?? null });
      expect([response.status, response.headers.get('allow')], `${type} ${body}`).toEqual([status, allow]);
      expect(await response.json()).toMatchObject({ status, request_id: response.headers.get('x-request-id') });
    }
  }
  expect(gateway.errors).toEqual([]);
});

test('QUERY without a media type is no fault where a method of the service is', async () => {
  expect(await exchange(`QUERY ${createOrderPath} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`)).not.toMatch(
    /^HTTP\/1\.1 5/,
  );
  expect(gateway.errors).toEqual([]);
});

test.each([
  ['that is no host', '1.1', 'host: not a host\r\n'],
  ['without the brackets of IPv6', '1.1', 'host: ::1:8080\r\n'],
  ['that is empty', '1.1', 'host:\r\n'],
  ['that HTTP/1.0 does not ask for', '1.0', ''],
])('a Host %s makes no other answer, at the JSON door and over Connect', async (_, version, host) => {
  for (const path of ['/order', createOrderPath]) {
    const head = postHead(gateway, path, 'content-length: 2', 'connection: close');
    const request = head.replace('HTTP/1.1', `HTTP/${version}`).replace('host: x\r\n', host);
    const answer = await exchange(`${request}{}`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('invalid_order');
  }
});

test.each([
  ['text/plain'],
  ['application/x-www-form-urlencoded'],
  ['application/jsonp'],
  ['application/json; charset=utf-16'],
  ['application/json; charset=latin1'],
  ['multipart/form-data; boundary=x'],
  [''],
])('the media type "%s" is refused', async (type) => {
  const response = await postOrder(gateway, '{}', { 'content-type': type });
  expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
    415,
    'unsupported_media_type',
  ]);
});

test.each([
  'application/json',
  'Application/JSON',
  'application/json;charset=UTF-8',
  'application/json; charset="utf-8"',
  'application/json; charset=utf8',
  'application/json; odata=verbose; charset=utf-8',
])('the media type %s is taken', async (type) => {
  expect((await postOrder(gateway, '{}', { 'content-type': type })).status).toBe(400);
});

test('a body that is told to be as it is, in any case, is taken', async () => {
  for (const coding of ['identity', 'Identity', 'IDENTITY']) {
    expect((await postOrder(gateway, '{}', { 'content-encoding': coding })).status).toBe(400);
  }
});

test('a compressed body is refused', async () => {
  const response = await postOrder(gateway, '{}', { 'content-encoding': 'gzip' });
  expect(response.status).toBe(415);
});

test('a body of 64 KiB is read, and one byte more is refused, with and without a length', async () => {
  const padded = (size: number) => `{"unknown":"${'x'.repeat(size - 14)}"}`;
  expect((await postOrder(gateway, padded(65_536))).status).toBe(400);
  expect((await postOrder(gateway, padded(65_537))).status).toBe(413);
  const chunked = (size: number) =>
    `${orderHead('transfer-encoding: chunked', 'connection: close')}${size.toString(16)}\r\n${padded(size)}\r\n0\r\n\r\n`;
  expect(await exchange(chunked(65_536))).toMatch(/^HTTP\/1\.1 400 /);
  expect(await exchange(chunked(65_537))).toMatch(/^HTTP\/1\.1 413 /);
});

test('messages that are sent byte by byte are answered, and keep no others from it', async () => {
  const head = postHead(gateway, createOrderPath, 'transfer-encoding: chunked', 'connection: close').replace(
    'application/json',
    'application/grpc-web+proto',
  );
  // Flags and length of a message of 64 KiB, and its bytes, of which each is a chunk.
  const message = `${head}5\r\n\u0000\u0000\u0001\u0000\u0000\r\n${'1\r\n\u0001\r\n'.repeat(65_536)}0\r\n\r\n`;
  const answers = Array.from({ length: 6 }, () => exchange(Buffer.from(message, 'latin1')));
  expect((await postOrder(gateway, validOrderInput({ order_id: 'beside-bytes' }))).status).toBe(201);
  for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]+grpc-status: 13/);
}, 20_000);

test.each([
  [
    'in gRPC-Web',
    'application/grpc-web+proto',
    'transfer-encoding: chunked',
    '5\r\n\u0000\u0000\u0001\u0000\u0000\r\n',
  ],
  ['in Connect', 'application/proto', `content-length: ${messageBytesMax}`, ''],
])('a message %s that is only announced takes no room', async (_, mediaType, length, head) => {
  const text = postHead(gateway, createOrderPath, length, 'expect: 100-continue') + head;
  const bytes = Buffer.from(text.replace('application/json', mediaType), 'latin1');
  expect((await postOrder(gateway, '{}')).status).toBe(400);
  const before = process.memoryUsage().arrayBuffers;
  const sockets = Array.from({ length: 200 }, () => connect(gateway.httpPort, '127.0.0.1'));
  try {
    for (const socket of sockets) socket.write(bytes);
    // The gateway asks for the body of each, and what it reads of them comes before an order that is sent then.
    await Promise.all(sockets.map((socket) => once(socket, 'data')));
    expect((await postOrder(gateway, validOrderInput({ order_id: `beside-${mediaType}` }))).status).toBe(201);
    // A quarter of what was announced is far more than 200 requests need.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan((200 * messageBytesMax) / 4);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

test('a Connect message whose length is over the limit is refused before it comes', async () => {
  const length = `content-length: ${messageBytesMax + 1}`;
  const socket = connect(gateway.httpPort, '127.0.0.1');
  socket.write(postHead(gateway, createOrderPath, length).replace('application/json', 'application/proto'));
  const [answer] = await once(socket, 'data', { signal: AbortSignal.timeout(callTimeoutMs) });
  expect(String(answer)).toMatch(/^HTTP\/1\.1 429 [\s\S]+"reason":"body_too_large"/);
  socket.destroy();
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
])('%s %s with %j carries x-request-id', async (method, path, headers: Record<string, string>, status) => {
  const body = method === 'GET' ? null : '{}';
  const made = await fetch(`${gateway.url}${path}`, { method, body, headers });
  expect([made.status, made.headers.get('x-request-id')]).toEqual([status, expect.stringMatching(/^[0-9A-Za-z]{16}$/)]);
  const named = { ...headers, 'x-request-id': 'shop-1' };
  const echoed = await fetch(`${gateway.url}${path}`, { method, body, headers: named });
  expect([echoed.status, echoed.headers.get('x-request-id')]).toEqual([status, 'shop-1']);
});

/** An order as it stands on the wire. */
function orderRequest(orderId: string): string {
  const body = JSON.stringify(validOrderInput({ order_id: orderId }));
  return `${orderHead(`content-length: ${body.length}`)}${body}`;
}

/** The status of each answer that came, in their order. */
function statusesOf(received: string): string[] {
  return received.match(/(?<=HTTP\/1\.1 )\d{3}/g) ?? [];
}

test.each([
  ['one order', () => orderRequest('before-1'), 'GARBAGE\r\n\r\n', ['201', '400']],
  ['two orders', () => orderRequest('before-2') + orderRequest('before-3'), 'GARBAGE\r\n\r\n', ['201', '201', '400']],
  ['an order and half a request', () => `${orderRequest('before-4')}GET /order/`, '\u0000', ['201', '400']],
  [
    'an order and a body that can not be read',
    () => orderRequest('before-5') + orderHead('transfer-encoding: chunked'),
    'x',
    ['201', '400'],
  ],
  ['no request at all', () => '', 'GARBAGE\r\n\r\n', ['400']],
])('what is no request does not overtake the answer to %s before it', async (_, before, unreadable, statuses) => {
  for (const end of ['', 'MORE\r\n'.repeat(1_000)]) {
    const received = await exchange(before() + unreadable + end);
    expect(statusesOf(received).map((status) => status.replace('200', '201'))).toEqual(statuses);
  }
});

test('an order whose body takes longer than a call may is refused and not created', async () => {
  const body = JSON.stringify(validOrderInput({ order_id: 'too-slow' }));
  const socket = connect(gateway.httpPort, '127.0.0.1');
  const answer = textOf(socket);
  socket.write(`${orderHead(`content-length: ${body.length}`, 'connection: close')}${body.slice(0, 20)}`);
  await sleep(callTimeoutMs + 100);
  socket.write(body.slice(20));
  expect(await answer).toMatch(/^HTTP\/1\.1 504 [\s\S]+"code":"deadline_exceeded"/);
  const found = await fetch(`${gateway.url}/order/too-slow`, { headers: credentialHeaders(gateway.credentials) });
  expect(found.status).toBe(404);
}, 20_000);

test('a body that ends early is no hang and no fault', async () => {
  const socket = connect(gateway.httpPort, '127.0.0.1');
  socket.on('error', () => {});
  socket.end(`${orderHead('content-length: 100')}{"order_id":`);
  await once(socket.resume(), 'close', { signal: AbortSignal.timeout(20_000) });
  expect(gateway.errors).toEqual([]);
});

test('answers that are given while the gateway closes say that the connection ends', async () => {
  const closing = await runGateway();
  const body = JSON.stringify(validOrderInput({ order_id: 'closing' }));
  const length = `content-length: ${body.length}`;
  const exchanges = [
    { begin: postHead(closing, '/order', length), end: body, expected: '201' },
    { begin: postHead(closing, createOrderPath, length), end: body, expected: '200' },
    { begin: 'GET /health/live HTTP/1.1\r\nhost: x\r\n', end: '\r\n', expected: '200' },
    { begin: 'GET /%zz HTTP/1.1\r\nhost: x\r\n', end: '\r\n', expected: '404' },
  ].map((exchange) => {
    const socket = connect(closing.httpPort, '127.0.0.1');
    socket.write(exchange.begin);
    return { ...exchange, socket, answer: textOf(socket) };
  });
  await sleep(300);
  const closed = closing.close();
  for (const { socket, end, expected, answer } of exchanges) {
    socket.write(end);
    const received = await answer;
    expect(received).toMatch(/\r\nconnection: close\r\n/i);
    expect(statusesOf(received)).toEqual([expected]);
  }
  await closed;
}, 60_000);

test('requests that are sent ahead are answered, and a caller that sends thousands ahead is cut off', async () => {
  const ask = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n';
  const last = ask.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');
  expect(statusesOf(await exchange(ask.repeat(99) + last))).toEqual(Array(100).fill('200'));
  const received = await exchange(ask.repeat(4_000) + last).catch(
    (error: Error & { code?: string }) => error.code ?? '',
  );
  expect(statusesOf(received).length).toBeLessThan(4_000);
});

test('a caller that asks and asks and takes no answer is cut off', async () => {
  const socket = connect(gateway.httpPort, '127.0.0.1');
  socket.on('error', () => {});
  const cutOff = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // Nothing is read, so that the end is seen by a write alone.
  const asking = setInterval(() => socket.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100)), 100);
  await cutOff;
  clearInterval(asking);
}, 60_000);

test('1,000 slow sockets are closed within 15 s, with 408 where a request began, while ordinary requests go on', async () => {
  const openings = [
    () => 'POST /order HT',
    () => 'POST /order HTTP/1.1\r\nhost: x\r\n',
    () => `${orderHead('content-length: 1000')}{"order_id":`,
    () => `${orderHead('transfer-encoding: chunked')}5\r\n{"ord`,
  ];
  const trickling: Socket[] = [];
  const received: string[] = [];
  let open = 0;
  const closed = Array.from({ length: 1_000 }, (_, index) => {
    const opening = openings[index % openings.length]?.() ?? '';
    const socket = connect(gateway.httpPort, '127.0.0.1');
    socket.on('error', () => {});
    socket.on('connect', () => {
      open += 1;
      socket.write(opening);
    });
    // Some go on with a byte of their body now and then, which must not keep them alive.
    if (index % 20 === 2) trickling.push(socket);
    socket.on('data', (bytes) => {
      received[index] = (received[index] ?? '') + bytes;
    });
    return once(socket, 'close');
  });
  await expect.poll(() => open, { timeout: 15_000 }).toBe(1_000);
  let running = true;
  const allClosed = Promise.all(closed).then(() => {
    running = false;
  });
  const limit = sleep(15_000).then(() => {
    throw new Error('some sockets were still open after 15 s');
  });
  const traffic = (async () => {
    let answered = 0;
    while (running) {
      expect((await postOrder(gateway)).status).toBeLessThan(202);
      answered += 1;
      for (const socket of trickling) if (socket.writable) socket.write(' ');
      await sleep(100);
    }
    return answered;
  })();
  await Promise.race([allClosed, limit]);
  limit.catch(() => {});
  expect(await traffic).toBeGreaterThan(10);
  expect(new Set(received.map((text) => text.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 408']));
}, 60_000);

test('a connection that is opened ahead of use stays open, and gets no response but that to its request', async () => {
  const before = gateway.calls.length;
  const socket = connect(gateway.httpPort, '127.0.0.1');
  const answer = textOf(socket);
  // Longer than the time for headers, which Node.js counts from the connection's start.
  await sleep(headersTimeoutMs + 3 * connectionsCheckEveryMs);
  socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  expect(await answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(gateway.calls.slice(before)).toEqual([]);
}, 30_000);

test('of more unused connections than there may be, the oldest is closed, and none that is in use', async () => {
  const { logger } = createMemoryLogger();
  const server = createServer((_request, response) => response.end('ok'));
  watchConnections(server, fixedDeps(logger), { unusedMax: 2 });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const opened: Socket[] = [];
  const open = async () => {
    const socket = connect(port, '127.0.0.1');
    opened.push(socket);
    await Promise.all([once(server, 'connection'), once(socket, 'connect')]);
    return socket;
  };
  const used = await open();
  used.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(used, 'data');
  const oldest = await open();
  const second = await open();
  const closed = once(oldest, 'close');
  const third = await open();
  await closed;
  expect([used, second, third].map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
  for (const socket of opened) socket.destroy();
  server.close();
});
