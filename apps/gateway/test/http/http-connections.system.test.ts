import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { listen } from '../../../../tools/test-resources.ts';
import { createCalls } from '../../src/calls/receive.ts';
import { watchConnections } from '../../src/http/sockets.ts';
import { connectionsCheckEveryMs, headersTimeoutMs } from '../../src/limits.ts';
import { createAuthority, noCertificates } from '../helpers/certificates.ts';
import { fixedDeps } from '../helpers/fixed-deps.ts';
import { createOrderPath } from '../helpers/grpc/grpc-call.ts';
import { createMemoryLogger } from '../helpers/memory-logger.ts';
import { exchange, postHead, statusesOf, textOf } from '../helpers/raw-http.ts';
import { runGateway, startGateway, useGateway } from '../helpers/running-gateway.ts';
import { postOrder } from '../helpers/send-order.ts';

const gateway = useGateway();

test('while the gateway closes, responses have the header "connection: close"', async () => {
  const closing = await runGateway();
  // The first order opens the sessions of PostgreSQL, which can take longer than the time limit for headers.
  await postOrder(closing);
  const body = JSON.stringify(validOrderInput({ order_id: 'closing' }));
  const length = `content-length: ${body.length}`;
  const exchanges = [
    { start: postHead(closing, '/order', length), end: body, expected: '201' },
    { start: postHead(closing, createOrderPath, length), end: body, expected: '200' },
    { start: 'GET /health/live HTTP/1.1\r\nhost: x\r\n', end: '\r\n', expected: '200' },
    { start: 'GET /%zz HTTP/1.1\r\nhost: x\r\n', end: '\r\n', expected: '404' },
  ].map((exchange) => {
    const socket = connect(closing.httpPort, '127.0.0.1');
    socket.write(exchange.start);
    return { ...exchange, socket, response: textOf(socket) };
  });
  // The response to this later request shows that the gateway has read the start of the earlier ones.
  await postOrder(closing, '{}');
  const closed = closing.close();
  for (const { socket, end, expected, response } of exchanges) {
    socket.write(end);
    const received = await response;
    expect(received).toMatch(/\r\nconnection: close\r\n/i);
    expect(statusesOf(received)).toEqual([expected]);
  }
  await closed;
});

test.concurrent('pipelined requests get responses, but a client that pipelines thousands is disconnected', async () => {
  const requestText = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n';
  const lastRequest = requestText.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n');
  expect(statusesOf(await exchange(gateway, requestText.repeat(99) + lastRequest))).toEqual(Array(100).fill('200'));
  const received = await exchange(gateway, requestText.repeat(4_000) + lastRequest).catch(
    (error: Error & { code?: string }) => error.code ?? '',
  );
  expect(statusesOf(received).length).toBeLessThan(4_000);
});

test.concurrent('a client that sends requests but does not read responses is disconnected', async ({
  onTestFinished,
}) => {
  const gateway = await startGateway({ patience: 1 });
  onTestFinished(() => gateway.close());
  const socket = connect(gateway.httpPort, '127.0.0.1');
  socket.on('error', () => {});
  const cutOff = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  // The client does not read, so only a write detects that the connection has ended.
  const sending = setInterval(() => socket.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100)), 100);
  await cutOff;
  clearInterval(sending);
});

test.concurrent('1,000 slow requests get 408 and are disconnected, while ordinary requests succeed', async () => {
  const requestStarts = [
    () => 'POST /order HT',
    () => 'POST /order HTTP/1.1\r\nhost: x\r\n',
    () => `${postHead(gateway, '/order', 'content-length: 1000')}{"order_id":`,
    () => `${postHead(gateway, '/order', 'transfer-encoding: chunked')}5\r\n{"ord`,
  ];
  const received = new Set<string>();
  const sockets: Socket[] = [];
  let isServed = false;
  /** Opens a slow connection, and a new one whenever it is closed, until an ordinary request has succeeded. */
  const openSlow = async (index: number) => {
    do {
      const socket = connect(gateway.httpPort, '127.0.0.1');
      sockets[index] = socket;
      socket.write(requestStarts[index % requestStarts.length]?.() ?? '');
      received.add((await textOf(socket)).slice(0, 12));
    } while (!isServed);
  };
  const allClosed = Promise.all(Array.from({ length: 1_000 }, (_, index) => openSlow(index)));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  // Some clients send one more byte of the body every 100 ms. This must not keep the connection open.
  const trickle = setInterval(() => {
    for (const [index, socket] of sockets.entries()) if (index % 20 === 2 && socket.writable) socket.write(' ');
  }, 100);
  expect((await postOrder(gateway)).status).toBe(201);
  isServed = true;
  await allClosed;
  clearInterval(trickle);
  expect(received).toEqual(new Set(['HTTP/1.1 408']));
});

test.concurrent('a connection opened long before its first request stays open, and gets no response until the request', async () => {
  const unused = await startGateway();
  const socket = connect(unused.httpPort, '127.0.0.1');
  const response = textOf(socket);
  // Longer than the time limit for headers, which Node.js measures from the start of the connection.
  await sleep(headersTimeoutMs + 3 * connectionsCheckEveryMs);
  socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  expect(await response).toMatch(/^HTTP\/1\.1 200 /);
  expect(unused.calls).toEqual([]);
  await unused.close();
});

describe('a full port', () => {
  let server: Server;
  let port: number;

  beforeEach(async () => {
    server = createServer((request, response) => {
      if (request.url === '/authenticated') connections.peerOf(request).markAuthenticated();
      if (request.url === '/idle') connections.peerOf(request).markIdle();
      else if (request.url !== '/slow') response.end('ok');
    });
    const connections = watchConnections(server, connectionsDeps(), () => ({ kind: 'not_found' }), 3);
    port = await listen(server);
  });

  /** Opens a connection, and sends a request if one is given. */
  const connectClient = async (request?: string) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    await Promise.all([once(server, 'connection'), once(socket, 'connect')]);
    if (request !== undefined) await send(socket, request);
    return socket;
  };
  const send = async (socket: Socket, request: string) => {
    const [head] = request.split(' ');
    socket.write(`${request.includes('\r\n') ? request : `GET ${head} HTTP/1.1\r\nhost: x\r\n\r\n`}`);
    await (/slow|idle|POST/.test(request) ? once(server, 'request') : once(socket, 'data'));
  };
  /**
   * Opens one more connection, so that the server closes one. Returns the index of the closed one; the new one is last.
   */
  const indexOfClosed = async (sockets: readonly Socket[]) => {
    const allSockets = [...sockets, await connectClient()];
    return Promise.race(
      allSockets.map((socket, index) => (socket.destroyed ? index : once(socket, 'close').then(() => index))),
    );
  };

  test('closes a connection whose call is idle, but none with a request in flight', async () => {
    const [slow, idle, second] = [
      await connectClient('/slow'),
      await connectClient('/idle'),
      await connectClient('/slow'),
    ];
    expect(await indexOfClosed([slow, idle, second])).toBe(1);
  });

  test('closes a connection whose request is incomplete', async () => {
    const body = 'POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n123';
    const sockets = [await connectClient('/slow'), await connectClient(body), await connectClient('/slow')];
    expect(await indexOfClosed(sockets)).toBe(1);
  });

  test('closes authenticated connections last', async () => {
    const sockets = [await connectClient('/authenticated'), await connectClient('/'), await connectClient('/')];
    expect(await indexOfClosed(sockets)).toBe(1);
    expect(await indexOfClosed([sockets[0], sockets[2]] as Socket[])).toBe(1);
  });
});

test.skipIf(mustSkip('a full port over TLS', noCertificates))(
  'a full port closes an idle connection over TLS',
  async () => {
    const authority = createAuthority();
    onTestFinished(() => authority.remove());
    const server = createTlsServer(authority.issue('server'), (_, response) => void response.end('ok'));
    watchConnections(server, connectionsDeps(), () => ({ kind: 'not_found' }), 2);
    const port = await listen(server);
    const connectClient = async () => {
      const socket = connectTls({ port, host: '127.0.0.1', ca: authority.ca });
      onTestFinished(() => void socket.destroy());
      await Promise.all([once(server, 'secureConnection'), once(socket, 'secureConnect')]);
      return socket;
    };
    const [oldest, second] = [await connectClient(), await connectClient()];
    const closed = once(oldest, 'close');
    const third = await connectClient();
    await closed;
    expect([second, third].map(({ destroyed }) => destroyed)).toEqual([false, false]);
  },
);

function connectionsDeps() {
  const deps = fixedDeps(createMemoryLogger().logger);
  return { ...deps, calls: createCalls(deps) };
}
