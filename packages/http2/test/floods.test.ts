import { afterAll, beforeAll, expect, test } from 'vitest';
import { flags, frame, frameTypes, largestWindow } from '../src/frames.ts';
import { encodeHeaders } from '../src/header-encoder.ts';
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
import { type RunningServer, runServer } from './running-server.ts';
import {
  bytes,
  end,
  get,
  held,
  opening,
  ping,
  post,
  priority,
  reset,
  setting,
  whole,
  windowUpdate,
} from './sequence.ts';

/** Far more than any budget. */
const floodLength = 2_000;

let server: RunningServer;

beforeAll(async () => {
  server = await runServer({
    limits: { streamsMax: 100, drainTimeoutMs: 0 },
    answer: ({ fields }) =>
      fields.includes('/held') ? undefined : { headers: [':status', '200'], body: Buffer.alloc(10) },
  });
});

afterAll(async () => {
  await server.close();
});

const each = (make: (streamId: number) => readonly Uint8Array[]) =>
  Array.from({ length: floodLength }, (_, at) => Buffer.concat(make(2 * at + 1)));
const again = (first: readonly Uint8Array[], one: Uint8Array) => [...first, ...each(() => [one])];
const emptyData = dataFrame(1, bytes(), 0);

/** Requests that were answered, or could be, and are given up at once: the work is done for nobody. */
const resets: readonly (readonly [name: string, sent: readonly Uint8Array[]])[] = [
  ['requests that the client gives up', each((id) => [headersFrame(id, held), reset(id)])],
  ['requests that were begun and given up', each((id) => [opening(id), reset(id)])],
  ['window updates of nothing', each((id) => [headersFrame(id, held), windowUpdate(id, 0)])],
  ['windows that are too large', each((id) => [headersFrame(id, held), windowUpdate(id, largestWindow)])],
  ['data after the end', each((id) => [headersFrame(id, held), dataFrame(id, bytes(1))])],
  ['headers after the end', each((id) => [headersFrame(id, held), headersFrame(id, get)])],
  [
    'bodies longer than their length',
    each((id) => [opening(id, [...held, 'content-length', '1']), dataFrame(id, bytes(1, 2))]),
  ],
  [
    'bodies shorter than their length',
    each((id) => [opening(id, [...held, 'content-length', '2']), dataFrame(id, bytes(1))]),
  ],
  ['trailers that are none', each((id) => [opening(id), headersFrame(id, [':path', '/'])])],
  ['requests that are none', each((id) => [headersFrame(id, ['x', 'y'])])],
  ['more streams than are allowed', each((id) => [headersFrame(id, held)])],
  [
    'headers that are too large',
    each((id) => [
      headersFrame(
        id,
        Array.from({ length: 202 }, () => 'x'),
      ),
    ]),
  ],
];

/** Frames that bring no request further. */
const idleFrames: readonly (readonly [name: string, sent: readonly Uint8Array[]])[] = [
  ['pings', again([], ping())],
  ['acknowledged pings', again([], ping(flags.ack))],
  ['settings', again([], setting(4, 1_000))],
  ['acknowledged settings', again([], frame(frameTypes.settings, flags.ack, 0, bytes()))],
  ['priorities', again([], priority(1))],
  ['frames of an unknown type', again([], frame(0xee, 0, 0, bytes()))],
  ['farewells', again([], frame(frameTypes.goAway, 0, 0, Buffer.alloc(8)))],
  ['window updates', again([], windowUpdate(0, 1))],
  ['window updates of a stream', again([opening(1, held)], windowUpdate(1, 1))],
  ['window updates of a stream that is over', again([headersFrame(1, get)], windowUpdate(1, 1))],
  ['resets of a stream that is over', again([headersFrame(1, get)], reset(1))],
  ['trailers of a stream that is over', again([headersFrame(1, get)], headersFrame(1, ['x-more', '1']))],
  ['data of a stream that is over', again([headersFrame(1, get)], dataFrame(1, bytes(1), 0))],
  ['data without a byte', again([opening(1, held)], emptyData)],
  ['data without a byte after the answer', again([headersFrame(1, get)], emptyData)],
  ['data of padding alone', again([opening(1, held)], dataFrame(1, bytes(1, 0), flags.padded))],
  [
    'continuations without a byte',
    again([frame(frameTypes.headers, end, 1, bytes())], frame(frameTypes.continuation, 0, 1, bytes())),
  ],
  [
    'continuations without an end',
    again([frame(frameTypes.headers, end, 1, bytes())], frame(frameTypes.continuation, 0, 1, Buffer.alloc(16_384))),
  ],
];

test.each([...resets, ...idleFrames])(
  'ends a connection that floods it with %s, and serves another one meanwhile',
  async (_name, sent) => {
    const other = await openRawClient(server.port);
    other.send(hello, headersFrame(1, get));
    await other.frame(isAnswerOf(1));
    const seen = server.opened.length;
    const client = await openRawClient(server.port);
    client.send(Buffer.concat([hello, ...sent]));
    other.send(opening(3));
    expect(farewellCode(await client.frame(isFarewell))).toBe('enhanceYourCalm');
    await client.closed;
    other.send(dataFrame(3, bytes(1)));
    await other.frame(isAnswerOf(3));
    other.socket.destroy();
    client.socket.destroy();
    // What is open at once, and the budget of resets.
    expect(server.opened.length - seen).toBeLessThanOrEqual(100 + 20 + 2);
    expect(server.faults).toEqual([]);
  },
);

test('serves 2,000 requests one after the other, each with a ping and window updates, as busy clients do', async () => {
  const bare = await runServer({ answer: () => ({ headers: [':status', '200'] }) });
  const client = await openRawClient(bare.port);
  client.send(hello);
  for (let id = 1; id < 2 * floodLength; id += 40) {
    for (let next = id; next < id + 40; next += 2) {
      client.send(
        opening(next, post),
        priority(next),
        dataFrame(next, bytes(1)),
        windowUpdate(0, 10),
        windowUpdate(next, 10),
        ping(),
      );
    }
    await client.frame(isAnswerOf(id + 38));
  }
  expect(client.frames.some(isFarewell)).toBe(false);
  client.socket.destroy();
  await bare.close();
});

test('lets a client that was answered early give up the rest of its request, however often', async () => {
  const early = await runServer({ onOpen: (stream) => stream.respond({ headers: [':status', '401'] }) });
  try {
    const client = await openRawClient(early.port);
    client.send(hello);
    for (let id = 1; id < 1_000; id += 2) {
      client.send(opening(id));
      await client.frame(isAnswerOf(id));
      client.send(reset(id));
    }
    client.send(opening(1_001));
    await client.frame(isAnswerOf(1_001));
    expect(client.frames.some(isFarewell)).toBe(false);
    await expect.poll(() => early.closes).toEqual(Array.from({ length: 500 }, () => 0));
    client.socket.destroy();
  } finally {
    await early.close();
  }
});

test('lets a client give up requests that it waited for, however many', async () => {
  const slow = await runServer({ limits: { quickResetMs: 50, drainTimeoutMs: 0 }, answer: () => undefined });
  try {
    const client = await openRawClient(slow.port);
    const ids = Array.from({ length: 100 }, (_, at) => 2 * at + 1);
    client.send(hello, ...ids.map((id) => headersFrame(id, held)));
    await expect.poll(() => slow.opened.length).toBe(100);
    const lastOpenedAt = slow.opened.at(-1)?.openedAt ?? 0;
    await expect.poll(() => performance.now() - lastOpenedAt).toBeGreaterThan(60);
    client.send(...ids.map(reset));
    await expect.poll(() => slow.closes.length).toBe(100);
    client.send(ping());
    await client.frame(({ type }) => type === frameTypes.ping);
    expect(client.frames.some(isFarewell)).toBe(false);
    client.socket.destroy();
  } finally {
    await slow.close();
  }
});

test('lets a client give up a request for every one whose answer it takes, however often', async () => {
  const client = await openRawClient(server.port);
  client.send(hello);
  for (let id = 1; id < floodLength; id += 4) {
    client.send(headersFrame(id, held), reset(id), headersFrame(id + 2, get));
    await client.frame((one) => isAnswerOf(id + 2)(one) || isFarewell(one));
  }
  expect(client.frames.some(isFarewell)).toBe(false);
  client.socket.destroy();
});

test('lets a client tell of room after every piece of a large answer', async () => {
  const large = await runServer({ answer: () => ({ headers: [':status', '200'], body: Buffer.alloc(6_000_000) }) });
  try {
    const client = await openRawClient(large.port);
    client.send(hello, headersFrame(1, get));
    let taken = 0;
    const isWhole = () => {
      const come = client.frames.filter(({ type }) => type === frameTypes.data).slice(taken);
      taken += come.length;
      for (const { payload } of come)
        if (payload.length > 0) client.send(windowUpdate(0, payload.length), windowUpdate(1, payload.length));
      return client.frames.some((one) => one.streamId === 1 && (one.flags & end) !== 0);
    };
    expect(await client.until(isWhole)).toBe(true);
    client.socket.destroy();
  } finally {
    await large.close();
  }
});

test('refuses a stream whose few bytes stand for many large fields, and goes on', async () => {
  const client = await openRawClient(server.port);
  const large = Buffer.concat([encodeHeaders(get), bytes(0x40, 1, 120, 0x7f, 0xa1, 0x1e), Buffer.alloc(4_000, 'v')]);
  const bomb = Buffer.concat([encodeHeaders(get), Buffer.alloc(16_000, 0xbe)]);
  client.send(hello, frame(frameTypes.headers, whole, 1, large));
  await client.frame(isAnswerOf(1));
  client.send(frame(frameTypes.headers, whole, 3, bomb), headersFrame(5, get));
  await client.frame(isAnswerOf(5));
  const { payload } = await client.frame((one) => one.type === frameTypes.resetStream && one.streamId === 3);
  expect(nameOf(payload.readUInt32BE(0))).toBe('enhanceYourCalm');
  client.socket.destroy();
});

test('ends a connection at a header block that is longer than it may be, before its end', async () => {
  const client = await openRawClient(server.port);
  const more = frame(frameTypes.continuation, 0, 1, Buffer.alloc(16_384));
  client.send(hello, frame(frameTypes.headers, end, 1, bytes()), more, more, more, more);
  client.send(frame(frameTypes.continuation, 0, 1, bytes(0)));
  expect(farewellCode(await client.frame(isFarewell))).toBe('enhanceYourCalm');
  await client.closed;
});
