import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { errorCodes, frame, frameTypes, largestWindow, preface } from '../src/frames.ts';
import type { Http2Limits } from '../src/limits.ts';
import {
  dataFrame,
  farewellCode,
  headersFrame,
  hello,
  isAnswerOf,
  isFarewell,
  nameOf,
  openRawClient,
} from './raw-client.ts';
import { type RunningServer, runServer, type ServerOptions } from './running-server.ts';
import { block, bytes, end, get, held, opening, ping, setting, windowUpdate } from './sequence.ts';

const never = 1_000_000;

/** Only the limit that a test is about is short. */
const patient: Partial<Http2Limits> = {
  headersTimeoutMs: never,
  idleTimeoutMs: never,
  requestTimeoutMs: never,
  blockedTimeoutMs: never,
  lingerMs: never,
  closingTimeoutMs: never,
  drainTimeoutMs: 100,
  checkEveryMs: 20,
};

const isHeld = (fields: readonly string[]) => fields.includes('/held');
const answer: NonNullable<ServerOptions['answer']> = ({ fields }) =>
  isHeld(fields) ? undefined : { headers: [':status', '200'], body: Buffer.alloc(20_000) };

async function withServer(
  limits: Partial<Http2Limits>,
  body: (server: RunningServer) => Promise<void>,
  options: ServerOptions = { answer },
): Promise<void> {
  const server = await runServer({ ...options, limits: { ...patient, ...limits } });
  try {
    await body(server);
    const other = await openRawClient(server.port);
    other.send(hello, headersFrame(1, get));
    await other.frame(isAnswerOf(1));
    other.socket.destroy();
    expect(server.faults).toEqual([]);
  } finally {
    await server.close();
  }
}

test.each([
  ['says nothing', []],
  ['begins the preface', [preface.subarray(0, 10)]],
])('ends a connection that %s, and says nothing on it', async (_name, sent) => {
  await withServer({ headersTimeoutMs: 100 }, async ({ port }) => {
    const client = await openRawClient(port);
    client.send(...sent);
    await client.closed;
    expect(client.frames).toEqual([]);
  });
});

test.each([
  ['sends no request', [hello, ping()]],
  ['begins a frame', [hello, headersFrame(1, get).subarray(0, 20)]],
  ['begins a header block', [hello, frame(frameTypes.headers, end, 1, block)]],
])('ends a connection that %s', async (_name, sent) => {
  await withServer({ headersTimeoutMs: 100 }, async ({ port }) => {
    const client = await openRawClient(port);
    client.send(...sent);
    expect(farewellCode(await client.frame(isFarewell))).toBe('noError');
    await client.closed;
  });
});

test('ends a connection that had a request answered and sends no more, whatever it pings', async () => {
  await withServer({ idleTimeoutMs: 200 }, async ({ port }) => {
    const client = await openRawClient(port);
    client.send(hello, headersFrame(1, get));
    const pings = setInterval(() => client.send(ping()), 40);
    const { payload } = await client.frame(isFarewell);
    clearInterval(pings);
    expect([payload.readUInt32BE(0), payload.readUInt32BE(4)]).toEqual([1, errorCodes.noError]);
    await client.closed;
  });
});

test.each([
  ['a frame', [headersFrame(3, get).subarray(0, 20)], []],
  ['a header block', [frame(frameTypes.headers, end, 3, block)], [frame(frameTypes.continuation, 0, 3, bytes(0))]],
])('ends a connection that owes the rest of %s, though it had a request answered', async (_name, cut, trickled) => {
  await withServer({ requestTimeoutMs: 200 }, async ({ port }) => {
    const client = await openRawClient(port);
    client.send(hello, headersFrame(1, get));
    await client.frame(isAnswerOf(1));
    client.send(...cut);
    const trickle = setInterval(() => client.send(...trickled), 40);
    expect(farewellCode(await client.frame(isFarewell))).toBe('noError');
    await client.closed;
    clearInterval(trickle);
  });
});

test('keeps a connection on which every piece ends within a frame, as long as frames come', async () => {
  await withServer({ requestTimeoutMs: 800 }, async ({ port }) => {
    const client = await openRawClient(port);
    client.send(hello, ping().subarray(0, 4));
    for (let count = 1; count <= 25; count += 1) {
      client.send(ping().subarray(4), ping().subarray(0, 4));
      await sleep(40);
    }
    client.send(ping().subarray(4), headersFrame(1, get));
    await client.frame(isAnswerOf(1));
    client.socket.destroy();
  });
});

test('gives up a request that trickles, and ends its connection when the others are answered', async () => {
  await withServer({ requestTimeoutMs: 200 }, async (server) => {
    const client = await openRawClient(server.port);
    client.send(hello, opening(1));
    const trickle = setInterval(() => client.send(dataFrame(1, bytes(1), 0)), 20);
    const { payload } = await client.frame((one) => one.type === frameTypes.resetStream && one.streamId === 1);
    expect(nameOf(payload.readUInt32BE(0))).toBe('cancel');
    await client.closed;
    clearInterval(trickle);
    expect(farewellCode(await client.frame(isFarewell))).toBe('noError');
    expect(server.closes).toEqual([errorCodes.cancel]);
  });
});

test('lets a client that was answered early go on sending for a while, and keeps its connection', async () => {
  const early: ServerOptions = {
    answer,
    onOpen: (stream) => stream.fields.includes('/there') && stream.respond({ headers: [':status', '401'] }),
  };
  await withServer(
    { lingerMs: 200 },
    async (server) => {
      const client = await openRawClient(server.port);
      client.send(
        hello,
        opening(
          1,
          held.map((text) => (text === '/held' ? '/there' : text)),
        ),
      );
      await client.frame(isAnswerOf(1));
      client.send(dataFrame(1, Buffer.alloc(10_000), 0));
      const { payload } = await client.frame((one) => one.type === frameTypes.resetStream);
      expect(nameOf(payload.readUInt32BE(0))).toBe('noError');
      client.send(dataFrame(1, Buffer.alloc(10_000), 0), headersFrame(3, get));
      await client.frame(isAnswerOf(3));
      client.socket.destroy();
      expect(server.closes).toEqual([0, 0]);
    },
    early,
  );
});

test('says farewell when it is closed, answers what is under way, and passes over what comes after', async () => {
  const server = await runServer({ limits: { ...patient, drainTimeoutMs: never } });
  const client = await openRawClient(server.port);
  client.send(hello, opening(1), opening(3));
  await expect.poll(() => server.opened.length).toBe(2);
  const closed = server.close();
  const { payload } = await client.frame(isFarewell);
  expect([payload.readUInt32BE(0), payload.readUInt32BE(4)]).toEqual([3, errorCodes.noError]);
  client.send(headersFrame(5, get), opening(7), dataFrame(7, bytes(1)), dataFrame(1, bytes(1)), ping());
  await client.frame(({ type }) => type === frameTypes.ping);
  client.send(dataFrame(3, bytes(1)));
  await Promise.all([client.closed, closed]);
  const answered = client.frames.filter(({ type }) => type === frameTypes.data).map(({ streamId }) => streamId);
  expect(answered).toEqual([1, 3]);
  expect([server.opened.length, server.closes, server.faults]).toEqual([2, [0, 0], []]);
});

test('cuts off what is not done when the time to drain is over, and twice is no more than once', async () => {
  const server = await runServer({ limits: { ...patient, checkEveryMs: never }, answer });
  const clients = await Promise.all([1, 2, 3].map(() => openRawClient(server.port)));
  for (const client of clients) client.send(hello, headersFrame(1, held));
  await expect.poll(() => server.opened.length).toBe(3);
  const again: number[] = [];
  await Promise.all([
    server.close().then(() => again.push(server.closes.length)),
    server.close().then(() => again.push(server.closes.length)),
  ]);
  expect([again, server.closes]).toEqual([
    [3, 3],
    [errorCodes.cancel, errorCodes.cancel, errorCodes.cancel],
  ]);
});

test('cuts off a connection that takes no new requests and does not come to its end', async () => {
  const onOpen: ServerOptions['onOpen'] = (stream) => stream.fields.includes('/there') && stream.closeConnection();
  await withServer(
    { closingTimeoutMs: 200 },
    async (server) => {
      const client = await openRawClient(server.port);
      client.send(
        hello,
        headersFrame(1, held),
        headersFrame(
          3,
          held.map((text) => (text === '/held' ? '/there' : text)),
        ),
      );
      await client.closed;
      expect(farewellCode(await client.frame(isFarewell))).toBe('noError');
      await expect.poll(() => server.closes).toEqual([0, errorCodes.cancel]);
    },
    { answer, onOpen },
  );
});

test('cuts off a client that was told to go and does not', async () => {
  await withServer({ lingerMs: 200 }, async ({ port }) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    socket.resume();
    // Not even a client that goes on and on sending keeps it open.
    const sending = setInterval(() => socket.write(ping()), 20);
    socket.write(Buffer.concat([hello, dataFrame(0, bytes(1))]));
    await closed;
    clearInterval(sending);
  });
});

test('reads no more from a client that takes no answers, and cuts it off', async () => {
  await withServer({ blockedTimeoutMs: 400 }, async (server) => {
    const client = await openRawClient(server.port);
    client.socket.pause();
    client.send(hello, setting(4, largestWindow), windowUpdate(0, largestWindow - 65_535), headersFrame(1, held));
    const requests = Array.from({ length: 10_000 }, (_, at) => headersFrame(2 * at + 3, get));
    client.send(Buffer.concat(requests));
    await expect.poll(() => server.closes.includes(errorCodes.cancel)).toBe(true);
    // One or two pieces of what was sent, as many as were read before the system's buffers were full.
    expect(server.requests.length).toBeLessThan(requests.length / 2);
    client.socket.destroy();
  });
});

test('waits for a client that takes its answers late', async () => {
  await withServer({}, async ({ port }) => {
    const client = await openRawClient(port);
    client.socket.pause();
    client.send(hello, setting(4, largestWindow), windowUpdate(0, largestWindow - 65_535));
    client.send(Buffer.concat(Array.from({ length: 2_000 }, (_, at) => headersFrame(2 * at + 1, get))));
    setTimeout(() => client.socket.resume(), 300);
    const isLast = () =>
      client.frames.some((one) => one.type === frameTypes.data && one.streamId === 3_999 && (one.flags & end) !== 0);
    expect(await client.until(isLast)).toBe(true);
    client.socket.destroy();
  });
});
