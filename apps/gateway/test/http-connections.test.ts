import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { leftOut } from '../../../tools/left-out.ts';
import { watchConnections } from '../src/http/connections.ts';
import { connectionsCheckEveryMs, headersTimeoutMs } from '../src/limits.ts';
import { createAuthority, noCertificates } from './certificates.ts';
import { fixedDeps } from './fixed-deps.ts';
import { createOrderPath } from './grpc-call.ts';
import { createMemoryLogger } from './memory-logger.ts';
import { exchange, postHead, statusesOf, textOf } from './raw-http.ts';
import { postOrder, type RunningGateway, runGateway } from './running-gateway.ts';

let gateway: RunningGateway;
beforeAll(async () => {
  gateway = await runGateway();
});
afterAll(() => gateway?.close());

test('responses while the gateway closes have connection: close', async () => {
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
  // Its response shows that the requests before it were read as far as they came.
  await postOrder(closing, '{}');
  const closed = closing.close();
  for (const { socket, end, expected, answer } of exchanges) {
    socket.write(end);
    const received = await answer;
    expect(received).toMatch(/\r\nconnection: close\r\n/i);
    expect(statusesOf(received)).toEqual([expected]);
  }
  await closed;
});

test.concurrent('pipelined requests get responses, and a client that pipelines thousands is disconnected', async () => {
  const ask = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n';
  const last = ask.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');
  expect(statusesOf(await exchange(gateway, ask.repeat(99) + last))).toEqual(Array(100).fill('200'));
  const received = await exchange(gateway, ask.repeat(4_000) + last).catch(
    (error: Error & { code?: string }) => error.code ?? '',
  );
  expect(statusesOf(received).length).toBeLessThan(4_000);
});

test.concurrent('a client that sends requests and reads no response is disconnected', async () => {
  const socket = connect(gateway.httpPort, '127.0.0.1');
  socket.on('error', () => {});
  const cutOff = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // Nothing is read, so that the end is seen by a write alone.
  const asking = setInterval(() => socket.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100)), 100);
  await cutOff;
  clearInterval(asking);
});

test.concurrent('1,000 slow sockets are closed, with 408 where a request began, while ordinary requests go on', async () => {
  const openings = [
    () => 'POST /order HT',
    () => 'POST /order HTTP/1.1\r\nhost: x\r\n',
    () => `${postHead(gateway, '/order', 'content-length: 1000')}{"order_id":`,
    () => `${postHead(gateway, '/order', 'transfer-encoding: chunked')}5\r\n{"ord`,
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
  await expect.poll(() => open).toBe(1_000);
  let running = true;
  const allClosed = Promise.all(closed).then(() => {
    running = false;
  });
  // Twice of what it takes on a quiet machine.
  const limit = sleep(30_000).then(() => {
    throw new Error('some sockets were still open after 30 s');
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
});

test.concurrent('a connection that is opened ahead of use stays open, and gets no response but that to its request', async () => {
  const unused = await runGateway();
  const socket = connect(unused.httpPort, '127.0.0.1');
  const answer = textOf(socket);
  // Longer than the time for headers, which Node.js counts from the connection's start.
  await sleep(headersTimeoutMs + 3 * connectionsCheckEveryMs);
  socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  expect(await answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(unused.calls).toEqual([]);
  await unused.close();
});

test.each([
  ['without TLS', false],
  ...(leftOut('connections over TLS', noCertificates) ? [] : [['over TLS', true] as const]),
] as const)(
  'of more unused connections than there may be %s, the oldest is closed, and none that is in use',
  async (_, isTls) => {
    const { logger } = createMemoryLogger();
    const authority = isTls ? createAuthority() : undefined;
    onTestFinished(() => authority?.remove());
    const respond = (_request: IncomingMessage, response: ServerResponse) => void response.end('ok');
    const server = authority ? createTlsServer(authority.issue('server'), respond) : createServer(respond);
    watchConnections(server, fixedDeps(logger), { unusedMax: 2 });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const opened: Socket[] = [];
    const open = async () => {
      const address = { port, host: '127.0.0.1' };
      const socket = authority ? connectTls({ ...address, ca: authority.ca }) : connect(address);
      opened.push(socket);
      const [accepted, connected] = isTls ? ['secureConnection', 'secureConnect'] : ['connection', 'connect'];
      await Promise.all([once(server, accepted), once(socket, connected)]);
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
  },
);
