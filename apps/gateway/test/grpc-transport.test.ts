import { connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { create, toBinary } from '@bufbuild/protobuf';
import { Code } from '@connectrpc/connect';
import { CreateOrderRequestSchema } from '@gateway/contract/gateway/v1/order_service_pb';
import type { MerchantId } from '@gateway/domain/merchant';
import { createInMemoryOrderStore } from '@gateway/domain/testing/in-memory-order-store';
import { flags, frameTypes, frame as http2Frame } from '@gateway/http2/frames';
import { encodeHeaders } from '@gateway/http2/header-encoder';
import { expect, test } from 'vitest';
import { messageBytesMax } from '../src/limits.ts';
import { credentials } from './fixed-deps.ts';
import { createOrderPath, frame, openSession, type RawCall, sendCall } from './grpc-call.ts';
import { type RunningServer, runGrpcServer } from './grpc-servers.ts';
import { credentialHeaders, orderMessage } from './running-gateway.ts';

const testTimeoutMs = 60_000;

/** Everything that is of no use must be gone after this long. */
const goneAfterMs = 15_000;

const headers = { 'content-type': 'application/grpc', ...credentialHeaders(credentials) };

/** The head of the largest message, and nothing of it. */
const announcement = [frame(Buffer.alloc(0), { length: messageBytesMax })];

function ordinary(orderId: string): RawCall {
  const data = toBinary(CreateOrderRequestSchema, create(CreateOrderRequestSchema, orderMessage(orderId)));
  return { headers, pieces: [frame(data)], ends: true };
}

/** Runs a listener for one test, with a client that goes on making ordinary calls; all of them must be answered. */
async function whileCallsGoOn(body: (listener: RunningServer) => Promise<void>): Promise<void> {
  const listener = await runGrpcServer();
  const session = openSession(listener.port);
  let isOver = false;
  const statuses: unknown[] = [];
  const goOn = (async () => {
    while (!isOver) {
      const { trailers } = await sendCall(session, ordinary(`ordinary-${statuses.length}`));
      statuses.push(trailers['grpc-status']);
      await sleep(20);
    }
  })();
  try {
    await body(listener);
    isOver = true;
    await goOn;
    expect(statuses.length).toBeGreaterThan(0);
    expect(statuses.filter((status) => status !== '0')).toEqual([]);
    expect(listener.errors).toEqual([]);
  } finally {
    isOver = true;
    session.close();
    await listener.close();
  }
}

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const emptySettings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

/** A socket that says this and no more, and does not go by itself. Resolves when the server has ended it. */
function silentSocket(
  port: number,
  ...said: readonly Uint8Array[]
): { readonly socket: Socket; readonly closed: Promise<void> } {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  for (const piece of said) socket.write(piece);
  // Unread data would hide the end.
  socket.resume();
  const closed = new Promise<void>((resolve) => {
    socket.once('end', () => resolve());
    socket.once('close', () => resolve());
  });
  return { socket, closed };
}

test(
  'ends 1,000 silent or slow connections while ordinary calls go on',
  async () => {
    await whileCallsGoOn(async ({ port }) => {
      const silent = Array.from({ length: 300 }, () => silentSocket(port));
      const settled = Array.from({ length: 300 }, () => silentSocket(port, preface, emptySettings));
      const garbage = Array.from({ length: 100 }, () => silentSocket(port, Buffer.from('GET / HTTP/1.1\r\n\r\n')));
      const trickles = Array.from({ length: 300 }, (_, index) => {
        const session = openSession(port);
        const closed = new Promise<void>((resolve) => session.once('close', () => resolve()));
        const mediaType = index % 2 === 0 ? 'application/grpc' : 'application/grpc+json';
        const stream = session.request({
          ':method': 'POST',
          ':path': createOrderPath,
          ...headers,
          'content-type': mediaType,
        });
        stream.on('error', () => {});
        stream.resume();
        // One byte a second of a message that never ends: never silent, never done.
        const drip = setInterval(() => stream.writable && stream.write(Buffer.alloc(1)), 1_000);
        stream.write(frame(Buffer.alloc(1), { length: 60_000 }));
        session.once('close', () => clearInterval(drip));
        return { closed, end: () => session.destroy() };
      });
      const all = [...silent, ...settled, ...garbage, ...trickles];
      expect(all.length).toBe(1_000);
      const closed = Promise.all(all.map((one) => one.closed)).then(() => 'closed');
      const outcome = await Promise.race([closed, sleep(goneAfterMs, 'open', { ref: false })]);
      for (const { socket } of [...silent, ...settled, ...garbage]) socket.destroy();
      for (const { end } of trickles) end();
      expect(outcome).toBe('closed');
    });
  },
  testTimeoutMs,
);

test(
  'ends a connection that resets 10,000 calls while others go on',
  async () => {
    await whileCallsGoOn(async ({ port }) => {
      const session = connectHttp2(`http://127.0.0.1:${port}`);
      const closed = new Promise<string>((resolve) => session.once('close', () => resolve('closed')));
      session.on('error', () => {});
      let opened = 0;
      for (let burst = 0; burst < 200 && !session.destroyed; burst += 1) {
        for (let call = 0; call < 50 && !session.closed && !session.destroyed; call += 1) {
          const stream = session.request({ ':method': 'POST', ':path': createOrderPath, ...headers });
          stream.on('error', () => {});
          stream.close(constants.NGHTTP2_CANCEL);
          opened += 1;
        }
        await sleep(1);
      }
      expect(await Promise.race([closed, sleep(goneAfterMs, 'open', { ref: false })])).toBe('closed');
      expect(opened).toBeLessThan(10_000);
    });
  },
  testTimeoutMs,
);

test(
  'answers a call as any other where its authority is no host, as that of Node.js clients on an IPv6 address',
  async () => {
    await whileCallsGoOn(async ({ port }) => {
      const session = openSession(port);
      for (const authority of ['::1:9090', '[']) {
        for (const [mediaType, data] of [
          ['application/grpc', Buffer.alloc(0)],
          ['application/grpc+json', Buffer.from('{}')],
        ] as const) {
          const { trailers } = await sendCall(session, {
            headers: { ...headers, ':authority': authority, 'content-type': mediaType },
            pieces: [frame(data)],
            ends: true,
          });
          expect([authority, mediaType, trailers['grpc-status']]).toEqual([authority, mediaType, '3']);
        }
      }
      session.close();
    });
  },
  testTimeoutMs,
);

test(
  'answers or closes every call that is cut short, announces too much or says nonsense',
  async () => {
    await whileCallsGoOn(async ({ port }) => {
      const data = Buffer.concat(ordinary('nonsense').pieces).subarray(5);
      const calls: RawCall[] = [
        { headers, pieces: [], ends: true },
        { headers, pieces: [Buffer.alloc(3)], ends: true },
        { headers, pieces: [frame(data).subarray(0, 40)], ends: true },
        { headers, pieces: [frame(data, { length: 0xffff_ffff })], ends: false },
        { headers, pieces: [frame(data, { length: 0xffff_ffff })], ends: true },
        { headers, pieces: [frame(data, { flags: 1 })], ends: true },
        { headers, pieces: [frame(data, { flags: 0xff })], ends: false },
        { headers, pieces: [frame(data), frame(data)], ends: false },
        { headers: { ...headers, 'grpc-encoding': 'snappy' }, pieces: [frame(data)], ends: true },
        { headers: { ...headers, 'grpc-timeout': 'soon' }, pieces: [frame(data)], ends: true },
        { headers: { ...headers, 'grpc-timeout': '99999999H' }, pieces: [frame(data)], ends: true },
        { headers: { ...headers, ':path': '/gateway.v1.OrderService/None' }, pieces: [frame(data)], ends: true },
        { headers: { ...headers, ':authority': 'not a host' }, pieces: [frame(data)], ends: true },
        {
          headers: { ...headers, ':authority': 'not a host', 'content-type': 'application/grpc+json' },
          pieces: [frame(data)],
          ends: true,
        },
        { headers: { ...headers, ':authority': '[', 'grpc-encoding': 'gzip' }, pieces: [frame(data)], ends: true },
        { headers: { 'content-type': 'application/grpc' }, pieces: [frame(data)], ends: false },
      ];
      const session = openSession(port);
      for (const call of calls) expect(await sendCall(session, call)).not.toMatchObject({ closed: 'open' });
      expect((await sendCall(session, ordinary('after all'))).trailers['grpc-status']).toBe('0');
      session.close();
    });
  },
  testTimeoutMs,
);

test(
  'answers when the deadline passes, whether the message or the store is late',
  async () => {
    const never = new Promise<never>(() => {});
    const listener = await runGrpcServer({ store: { ...createInMemoryOrderStore(), create: () => never } });
    const session = openSession(listener.port);
    try {
      const timed = { ...headers, 'grpc-timeout': '50m' };
      const late = await sendCall(session, { ...ordinary('late'), headers: timed });
      expect(late.trailers['grpc-status']).toBe(String(Code.DeadlineExceeded));
      const unsent = await sendCall(session, { headers: timed, pieces: [Buffer.alloc(2)], ends: false });
      expect(unsent.trailers['grpc-status']).toBe(String(Code.DeadlineExceeded));
      await expect
        .poll(() => listener.calls.map(({ code }) => code))
        .toEqual(['deadline_exceeded', 'deadline_exceeded']);
    } finally {
      session.close();
      await listener.close();
    }
  },
  testTimeoutMs,
);

test.each(['application/grpc', 'application/grpc+json'])(
  'holds of an %s message no more than its bytes where each comes in a frame of its own before the credentials are checked',
  async (mediaType) => {
    const never = new Promise<never>(() => {});
    const listener = await runGrpcServer({ authenticate: () => never });
    const socket = connect({ port: listener.port, host: '127.0.0.1' });
    socket.on('error', () => {});
    const question = Buffer.from('all read');
    let heard = Buffer.alloc(0);
    socket.on('data', (bytes: Buffer) => {
      heard = Buffer.concat([heard, bytes]);
    });
    try {
      const fields = [':method', 'POST', ':scheme', 'http', ':path', createOrderPath, ':authority', 'localhost'];
      const block = encodeHeaders([...fields, 'content-type', mediaType]);
      // Padding takes nothing of the window for long, and is kept with the byte where that is kept as it came.
      const padded = http2Frame(frameTypes.data, flags.padded, 1, Buffer.from([10, ...Buffer.alloc(11)]));
      const opening = http2Frame(frameTypes.headers, flags.endHeaders, 1, block);
      collectGarbage();
      const before = process.memoryUsage();
      socket.write(Buffer.concat([preface, emptySettings, opening]));
      const frames = 60_000;
      socket.write(Buffer.concat([...Array(frames).fill(padded), http2Frame(frameTypes.ping, 0, 0, question)]));
      await expect.poll(() => heard.includes(question)).toBe(true);
      const heldByFrame = () => {
        collectGarbage();
        const after = process.memoryUsage();
        return (after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers) / frames;
      };
      await expect.poll(heldByFrame).toBeLessThan(20);
    } finally {
      socket.destroy();
      await listener.close();
    }
  },
  testTimeoutMs,
);

test(
  'logs a call to Connect that has no time at all, once and as that',
  async () => {
    const listener = await runGrpcServer();
    const session = openSession(listener.port);
    try {
      const timed = { ...headers, 'grpc-encoding': 'gzip', 'grpc-timeout': '0S' };
      const { trailers } = await sendCall(session, { headers: timed, pieces: [frame(Buffer.from('{}'))], ends: true });
      expect(trailers['grpc-status']).toBe(String(Code.DeadlineExceeded));
      await expect
        .poll(() => listener.calls.map(({ protocol, code }) => `${protocol} ${code}`))
        .toEqual(['grpc deadline_exceeded']);
    } finally {
      session.close();
      await listener.close();
    }
  },
  testTimeoutMs,
);

test(
  'logs a call that its caller cancels as that, and answers the next one',
  async () => {
    const listener = await runGrpcServer();
    const session = openSession(listener.port);
    try {
      await sendCall(session, { headers, pieces: [Buffer.alloc(2)], ends: false, cancels: true });
      expect((await sendCall(session, ordinary('next'))).trailers['grpc-status']).toBe('0');
      await expect.poll(() => listener.calls.map(({ code }) => code).sort()).toEqual(['cancelled', 'created']);
    } finally {
      session.close();
      await listener.close();
    }
  },
  testTimeoutMs,
);

test.each([
  ['of the lane', { 'content-type': 'application/grpc' }, announcement],
  ['in compressed gRPC', { 'content-type': 'application/grpc', 'grpc-encoding': 'gzip' }, announcement],
  ['in gRPC with JSON', { 'content-type': 'application/grpc+json' }, announcement],
  ['in gRPC-Web', { 'content-type': 'application/grpc-web+proto' }, announcement],
  ['in Connect', { 'content-type': 'application/proto', 'content-length': String(messageBytesMax) }, []],
])(
  'a message %s that is only announced takes no room',
  async (_, mediaType, pieces) => {
    let admitted = 0;
    const listener = await runGrpcServer({
      async authenticate() {
        admitted += 1;
        return { ok: true, value: { id: 7 as MerchantId, name: 'Shop', checksumMode: 'versioned' } };
      },
    });
    const session = openSession(listener.port);
    try {
      const before = process.memoryUsage().arrayBuffers;
      const announced = { headers: { ...headers, ...mediaType }, pieces, ends: false };
      const calls = Array.from({ length: 200 }, () => sendCall(session, announced));
      await expect.poll(() => admitted).toBe(200);
      await promisify(session.ping.bind(session))();
      // A quarter of what was announced is far more than 200 calls need.
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan((200 * messageBytesMax) / 4);
      session.destroy();
      await Promise.all(calls);
    } finally {
      await listener.close();
    }
  },
  testTimeoutMs,
);
