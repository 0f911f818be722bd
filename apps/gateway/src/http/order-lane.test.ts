import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpAnswer } from './http-answer.ts';
import { type OrderLane, openOrderLane } from './order-lane.ts';
import type { PlainRequest } from './plain-request.ts';

const limits = { keepAliveTimeoutMs: 1_000, answerTakenTimeoutMs: 300, connectionsCheckEveryMs: 50 };

let server: Server;
let lane: OrderLane;
/** The bodies that came by the lane, and the paths and bodies that came to the server's own reader. */
let byLane: string[];
let byLibrary: string[];
let answer: (request: PlainRequest) => Promise<HttpAnswer>;
let sockets: Socket[];

beforeEach(async () => {
  [byLane, byLibrary, sockets] = [[], [], []];
  answer = async ({ body }) => ({ status: 201, headers: { 'x-way': 'lane' }, body: body.toString() });
  server = createServer(async (request, response) => {
    const pieces = await request
      .setEncoding('utf8')
      .toArray()
      .catch(() => []);
    const body = pieces.join('');
    byLibrary.push(`${request.url} ${body}`);
    response.writeHead(200, { 'x-way': 'library', 'content-length': Buffer.byteLength(body) }).end(body);
  });
  lane = openOrderLane(server, {
    path: '/order',
    answer: (request) => {
      byLane.push(request.body.toString());
      return answer(request);
    },
    limits,
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  lane.destroyConnections();
  await new Promise((closed) => server.close(closed));
});

const order = (body: string, more = '') =>
  `POST /order HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;

/** A connection, and what has come on it. */
function open() {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay(true);
  sockets.push(socket);
  let received = '';
  let has: (() => void) | undefined;
  socket.on('data', (piece) => {
    received += piece;
    has?.();
  });
  socket.on('close', () => has?.());
  socket.on('error', () => {});
  return {
    socket,
    /** Waits for so many answers, or for the end. */
    async answers(count: number): Promise<string[]> {
      const ways = () => received.match(/(?<=x-way: )\w+/g) ?? [];
      while (ways().length < count && !socket.closed) {
        await new Promise<void>((resolve) => {
          has = resolve;
        });
      }
      return ways();
    },
    received: () => received,
  };
}

test('plain orders of one connection are answered one after the other, by the lane', async () => {
  const { socket, answers, received } = open();
  for (let number = 1; number <= 3; number += 1) {
    socket.write(order(`é ${number}`));
    expect(await answers(number)).toEqual(Array(number).fill('lane'));
  }
  expect([byLane, byLibrary]).toEqual([['é 1', 'é 2', 'é 3'], []]);
  expect(received()).toMatch(
    /^HTTP\/1\.1 201 Created\r\nx-way: lane\r\ncontent-length: 4\r\nDate: .+ GMT\r\nConnection: keep-alive\r\nKeep-Alive: timeout=1\r\n\r\né 1HTTP/,
  );
});

test('from the first request that is not plain on, a connection is Node.js’s', async () => {
  const { socket, answers } = open();
  socket.write(order('1'));
  await answers(1);
  socket.write(get('/docs'));
  await answers(2);
  socket.write(order('2'));
  expect(await answers(3)).toEqual(['lane', 'library', 'library']);
  expect([byLane, byLibrary]).toEqual([['1'], ['/docs ', '/order 2']]);
});

test('nothing is lost or read twice where requests are sent ahead', async () => {
  const { socket, answers } = open();
  socket.write(order('1') + order('2') + get('/docs'));
  socket.write(order('3'));
  expect(await answers(4)).toHaveLength(4);
  expect([byLane, byLibrary.sort()]).toEqual([[], ['/docs ', '/order 1', '/order 2', '/order 3']]);
});

test('what is sent ahead while an order is under way waits for its answer', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const sendAtOnce = answer;
  answer = async (request) => {
    await promise;
    return sendAtOnce(request);
  };
  const { socket, answers } = open();
  socket.write(order('1'));
  while (byLane.length === 0) await turn();
  socket.write(order('2'));
  await turn();
  socket.write(get('/docs'));
  for (let turns = 0; turns < 20; turns += 1) await turn();
  expect([byLane, byLibrary]).toEqual([['1'], []]);
  resolve();
  expect(await answers(3)).toHaveLength(3);
  expect([...byLane, ...byLibrary.map((text) => text.replace('/order ', '')).sort()].sort()).toEqual([
    '/docs ',
    '1',
    '2',
  ]);
});

test('a request may come in a few pieces, and is Node.js’s when it comes in many', async () => {
  const two = open();
  two.socket.write(order('12345').slice(0, -5));
  await turn();
  two.socket.write('12345');
  expect(await two.answers(1)).toHaveLength(1);
  const many = open();
  for (const character of order('67890')) {
    many.socket.write(character);
    await turn();
  }
  expect(await many.answers(1)).toEqual(['library']);
  expect(byLibrary).toEqual(['/order 67890']);
});

test('a part of a request that is not followed by the rest is Node.js’s soon', async () => {
  const { socket, answers } = open();
  socket.write(order('1'));
  await answers(1);
  socket.write(order('2').slice(0, 20));
  await sleep(200);
  socket.write(order('2').slice(20));
  expect(await answers(2)).toEqual(['lane', 'library']);
});

test('a connection that brings nothing is Node.js’s soon', async () => {
  const { socket, answers } = open();
  await once(server, 'connection');
  await sleep(200);
  socket.write(order('1'));
  expect(await answers(1)).toEqual(['library']);
});

test('a connection that was used is ended when no request comes for long', async () => {
  const { socket, answers } = open();
  socket.write(order('1'));
  await answers(1);
  await once(socket, 'close', { signal: AbortSignal.timeout(10_000) });
  expect(byLane).toEqual(['1']);
});

test('who ends a connection within a request is told so by the listener, once', async () => {
  const told: unknown[] = [];
  server.on('clientError', (error) => told.push(error));
  const { socket } = open();
  socket.end(order('1').slice(0, -1));
  await expect.poll(() => told).toMatchObject([{ code: 'HPE_INVALID_EOF_STATE' }]);
  // Longer than a part of a request is waited for: nothing is given to Node.js then.
  await sleep(200);
  expect([told.length, byLane]).toEqual([1, []]);
});

test('who ends a connection after a request gets its answer, and the end', async () => {
  const ended = new Promise((resolve) => server.once('connection', (socket) => socket.once('end', resolve)));
  const answerAtOnce = answer;
  answer = async (request) => {
    await ended;
    return answerAtOnce(request);
  };
  const { socket, received } = open();
  socket.end(order('1'));
  await once(socket, 'close');
  expect(received()).toContain('x-way: lane');
  expect(received()).toContain('\r\nConnection: close\r\n');
});

test('who takes no answers gets no more of them, and is cut off', async () => {
  const closed = new Promise<void>((resolve) => {
    server.once('connection', (socket) => socket.once('close', resolve));
  });
  let isClosed = false;
  closed.then(() => {
    isClosed = true;
  });
  const { socket } = open();
  socket.pause();
  for (let sent = 1; !isClosed; sent += 1) {
    socket.write(order('x'.repeat(60_000)));
    while (byLane.length < sent && !isClosed) await turn();
  }
  // The kernel takes some MB of answers.
  expect(byLane.length).toBeGreaterThan(1);
  expect(byLane.length).toBeLessThan(1_000);
});

test('a listener that ends lets what is under way finish, and ends what waits', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  answer = async ({ body }) => {
    if (body.toString() === '1') await promise;
    return { status: 201, headers: { 'x-way': 'lane' }, body: body.toString() };
  };
  const underWay = open();
  underWay.socket.write(order('1'));
  const idle = open();
  idle.socket.write(order('2'));
  await idle.answers(1);
  while (byLane.length === 0) await turn();
  const ended = once(idle.socket, 'close');
  lane.endConnections();
  const closed = new Promise((done) => server.close(done));
  await ended;
  resolve();
  await closed;
  expect(await underWay.answers(1)).toEqual(['lane']);
  expect(underWay.received()).toContain('\r\nConnection: close\r\n');
});

test('a connection that is ended takes no more requests, and is ended once', async () => {
  answer = async ({ body }) => ({ status: 201, headers: {}, body: `${body}${'x'.repeat(30_000)}` });
  const opened = once(server, 'connection') as Promise<[Socket]>;
  const { socket } = open();
  const [accepted] = await opened;
  // Until the kernel takes no more of the answers that nobody reads.
  socket.pause();
  for (let sent = 1; accepted.writableLength === 0; sent += 1) {
    socket.write(order(String(sent)));
    while (byLane.length < sent) await turn();
    await turn();
  }
  const served = byLane.length;
  lane.endConnections();
  const waiting = accepted.listenerCount('finish');
  socket.write(order('late'));
  for (let turns = 0; turns < 20; turns += 1) await turn();
  lane.endConnections();
  expect([byLane.length, accepted.listenerCount('finish'), accepted.destroyed]).toEqual([served, waiting, false]);
});

test('a caller that goes away under way harms nobody', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  answer = async ({ body }) => {
    await promise;
    return { status: 201, headers: { 'x-way': 'lane' }, body: body.toString() };
  };
  const gone = open();
  gone.socket.write(order('1'));
  while (byLane.length === 0) await turn();
  gone.socket.resetAndDestroy();
  await once(gone.socket, 'close');
  resolve();
  const next = open();
  next.socket.write(order('2'));
  expect(await next.answers(1)).toEqual(['lane']);
});
