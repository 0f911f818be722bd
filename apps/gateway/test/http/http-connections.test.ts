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
  // Its response shows that everything sent of the earlier requests was read.
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
  // Nothing is read, so only a write detects the end.
  const asking = setInterval(() => socket.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(100)), 100);
  await cutOff;
  clearInterval(asking);
});

test.concurrent('1,000 slow sockets are closed, with 408 if a request began, while ordinary requests continue', async () => {
  const openings = [
    () => 'POST /order HT',
    () => 'POST /order HTTP/1.1\r\nhost: x\r\n',
    () => `${postHead(gateway, '/order', 'content-length: 1000')}{"order_id":`,
    () => `${postHead(gateway, '/order', 'transfer-encoding: chunked')}5\r\n{"ord`,
  ];
  const received = new Set<string>();
  const sockets: Socket[] = [];
  let isServed = false;
  /** Opens a slow socket, and another one when it is closed, until an ordinary request was served beside them. */
  const openSlow = async (index: number) => {
    do {
      const socket = connect(gateway.httpPort, '127.0.0.1');
      sockets[index] = socket;
      socket.write(openings[index % openings.length]?.() ?? '');
      received.add((await textOf(socket)).slice(0, 12));
    } while (!isServed);
  };
  const allClosed = Promise.all(Array.from({ length: 1_000 }, (_, index) => openSlow(index)));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  // Some occasionally send another byte of their body, which must not keep them alive.
  const trickle = setInterval(() => {
    for (const [index, socket] of sockets.entries()) if (index % 20 === 2 && socket.writable) socket.write(' ');
  }, 100);
  // Repeated because a slow machine may miss the deadline of a call.
  await expect.poll(async () => (await postOrder(gateway)).status).toBeLessThan(202);
  isServed = true;
  await allClosed;
  clearInterval(trickle);
  expect(received).toEqual(new Set(['HTTP/1.1 408']));
});

test.concurrent('a connection that is opened ahead of use stays open, and gets no response but that to its request', async () => {
  const unused = await startGateway();
  const socket = connect(unused.httpPort, '127.0.0.1');
  const answer = textOf(socket);
  // Longer than the time for headers, which Node.js counts from the connection's start.
  await sleep(headersTimeoutMs + 3 * connectionsCheckEveryMs);
  socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  expect(await answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(unused.calls).toEqual([]);
  await unused.close();
});

describe('a full port', () => {
  let server: Server;
  let port: number;

  beforeEach(async () => {
    const { logger } = createMemoryLogger();
    server = createServer((request, response) => {
      if (request.url === '/authenticated') connections.peerOf(request).markAuthenticated();
      if (request.url === '/idle') connections.peerOf(request).markIdle();
      else if (request.url !== '/slow') response.end('ok');
    });
    const connections = watchConnections(server, fixedDeps(logger), { connectionsMax: 3 });
    port = await listen(server);
  });

  /** Opens a connection and sends a request, if there is one. */
  const open = async (request?: string) => {
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
   * Opens a connection, which makes the server close one. Returns the index of the closed connection; the last is the
   * new one.
   */
  const closedFor = async (sockets: readonly Socket[]) => {
    const all = [...sockets, await open()];
    return Promise.race(
      all.map((socket, index) => (socket.destroyed ? index : once(socket, 'close').then(() => index))),
    );
  };

  test('closes no connection with a request in flight, but one whose call is idle', async () => {
    const [slow, idle, second] = [await open('/slow'), await open('/idle'), await open('/slow')];
    expect(await closedFor([slow, idle, second])).toBe(1);
  });

  test('closes a connection that only trickles', async () => {
    const body = 'POST /slow HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n123';
    const sockets = [await open('/slow'), await open(body), await open('/slow')];
    expect(await closedFor(sockets)).toBe(1);
  });

  test('closes authenticated connections last', async () => {
    const sockets = [await open('/authenticated'), await open('/'), await open('/')];
    expect(await closedFor(sockets)).toBe(1);
    expect(await closedFor([sockets[0], sockets[2]] as Socket[])).toBe(1);
  });
});

test.skipIf(mustSkip('a full port over TLS', noCertificates))(
  'a full port closes an idle connection over TLS, too',
  async () => {
    const authority = createAuthority();
    onTestFinished(() => authority.remove());
    const server = createTlsServer(authority.issue('server'), (_, response) => void response.end('ok'));
    watchConnections(server, fixedDeps(createMemoryLogger().logger), { connectionsMax: 2 });
    const port = await listen(server);
    const open = async () => {
      const socket = connectTls({ port, host: '127.0.0.1', ca: authority.ca });
      onTestFinished(() => void socket.destroy());
      await Promise.all([once(server, 'secureConnection'), once(socket, 'secureConnect')]);
      return socket;
    };
    const [oldest, second] = [await open(), await open()];
    const closed = once(oldest, 'close');
    const third = await open();
    await closed;
    expect([second, third].map(({ destroyed }) => destroyed)).toEqual([false, false]);
  },
);
