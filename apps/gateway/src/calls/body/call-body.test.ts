import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { type BodyForm, bodyBytesMax, bodyFailure, type CallBody, createBodyReader } from './call-body.ts';

const options = { hasEnvelope: false };

async function write(stream: PassThrough, bytes: number): Promise<void> {
  stream.write(Buffer.alloc(bytes));
  await setImmediate();
}

test('if all bodies together exceed their limit, the oldest is dropped, and its later bytes are ignored', async () => {
  const read = createBodyReader(100);
  const [slow, quick, last] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const bodies = [slow, quick, last].map((stream) => read(stream, options).take());
  await write(slow, 60);
  await write(quick, 40);
  await write(last, 1);
  await write(slow, 100);
  for (const stream of [slow, quick, last]) stream.end();
  expect(await Promise.all(bodies)).toEqual(['overloaded', Buffer.alloc(40), Buffer.alloc(1)]);
});

test('a complete body counts towards the limit until it is taken or its stream closes', async () => {
  const read = createBodyReader(100);
  const streams = Array.from({ length: 4 }, () => new PassThrough({ autoDestroy: false }));
  const [first, second, third, fourth] = streams.map((stream) => read(stream, options));
  for (const stream of streams.slice(0, 3)) {
    await write(stream, 50);
    stream.end();
    await setImmediate();
  }
  expect(await first?.take()).toBe('overloaded');
  expect(await second?.take()).toEqual(Buffer.alloc(50));
  streams[2]?.destroy();
  await setImmediate();
  expect(await third?.take()).toBe('aborted');
  await write(streams[3] as PassThrough, 100);
  streams[3]?.end();
  expect(await fourth?.take()).toHaveLength(100);
});

test('large bodies are handed to calls a few per turn of the event loop, and small ones immediately', async () => {
  const read = createBodyReader(10_000_000);
  const sizes = [...Array<number>(20).fill(65_536), 8_192];
  const taken: number[] = [];
  const bodies = sizes.map((size) => {
    const stream = new PassThrough();
    stream.end(Buffer.alloc(size));
    return read(stream, options)
      .take()
      .then((body) => taken.push(body.length));
  });
  const perTurn: number[] = [];
  while (taken.length < sizes.length) {
    const before = taken.length;
    await setImmediate();
    perTurn.push(taken.length - before);
  }
  expect(taken[0]).toBe(8_192);
  expect(Math.max(...perTurn)).toBe(8);
  await Promise.all(bodies);
});

/** Returns the start of a message with an envelope that announces `length` bytes. */
function prefixOf(length: number): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(length, 1);
  return prefix;
}

const limit = { messageBytesMax: 100 };

test.each<[string, BodyForm, Buffer[], number | CallBody]>([
  ['an empty body', options, [], 0],
  ['a body of the maximum size', { hasEnvelope: false, ...limit }, [Buffer.alloc(60), Buffer.alloc(40)], 100],
  ['a larger body', { hasEnvelope: false, ...limit }, [Buffer.alloc(60), Buffer.alloc(41)], 'too_large'],
  ['a body that looks like a long envelope', { hasEnvelope: false, ...limit }, [prefixOf(101)], 5],
  ['a message of the maximum size', { hasEnvelope: true, ...limit }, [prefixOf(100), Buffer.alloc(100)], 105],
  [
    'a message larger than its prefix announces',
    { hasEnvelope: true, ...limit },
    [prefixOf(9), Buffer.alloc(101)],
    'too_large',
  ],
  ['an announced size above the limit', { hasEnvelope: true, ...limit }, [prefixOf(101)], 'too_large'],
  [
    'an announced size above the limit in two chunks',
    { hasEnvelope: true, ...limit },
    [prefixOf(101).subarray(0, 4), prefixOf(101).subarray(4)],
    'too_large',
  ],
  ['an incomplete prefix', { hasEnvelope: true, ...limit }, [prefixOf(101).subarray(0, 4)], 4],
  ['bytes after the prefix that look like one', { hasEnvelope: true, ...limit }, [prefixOf(9), prefixOf(101)], 10],
])('%s is read, or rejected before it is complete', async (_name, form, chunks, result) => {
  const stream = new PassThrough();
  const body = createBodyReader(1_000)(stream, form).take();
  for (const chunk of chunks) stream.write(chunk);
  if (typeof result === 'number') stream.end();
  expect(await body).toEqual(typeof result === 'number' ? Buffer.concat(chunks) : result);
});

test('a body in many chunks is read as one', async () => {
  const stream = new PassThrough();
  const body = createBodyReader(1_000)(stream, options).take();
  const chunks = Array.from({ length: 200 }, (_, index) => Buffer.from([index]));
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
  expect(await body).toEqual(Buffer.concat(chunks));
});

test('a body that was taken or is too large no longer counts towards the limit for all bodies', async () => {
  const read = createBodyReader(100);
  for (let round = 0; round < 3; round += 1) {
    const complete = new PassThrough();
    complete.end(Buffer.alloc(100));
    expect(await read(complete, options).take()).toHaveLength(100);
    const tooLarge = new PassThrough();
    tooLarge.write(Buffer.alloc(100));
    expect(await read(tooLarge, { hasEnvelope: false, messageBytesMax: 99 }).take()).toBe('too_large');
  }
});

test('a body is aborted if its stream fails or closes before its end', async () => {
  for (const error of [new Error('reset'), undefined]) {
    const stream = new PassThrough();
    const body = createBodyReader(100)(stream, options).take();
    await write(stream, 10);
    stream.destroy(error);
    expect(await body).toBe('aborted');
  }
});

describe('with a time limit', () => {
  afterEach(() => void vi.useRealTimers());

  test.each([
    [1_000, 1_000],
    [-1, 0],
  ])(
    'of %i ms, an incomplete body is late after %i ms, and its later bytes are ignored',
    async (timeoutMs, afterMs) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
      const stream = new PassThrough();
      const body = createBodyReader(100)(stream, { ...options, timeoutMs }).take();
      const results: CallBody[] = [];
      body.then((result) => results.push(result));
      await write(stream, 10);
      if (afterMs > 0) {
        await vi.advanceTimersByTimeAsync(afterMs - 1);
        expect(results).toEqual([]);
      }
      await vi.advanceTimersByTimeAsync(1);
      expect(results).toEqual(['deadline_exceeded']);
      await write(stream, 1_000);
      stream.end();
      await setImmediate();
    },
  );

  test('a complete body stops the timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const stream = new PassThrough();
    const body = createBodyReader(100)(stream, { ...options, timeoutMs: 1_000 }).take();
    expect(vi.getTimerCount()).toBe(1);
    stream.end(Buffer.alloc(10));
    expect(await body).toHaveLength(10);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('the maximum size of a body includes the prefix of an envelope', () => {
  expect(bodyBytesMax({ hasEnvelope: false, messageBytesMax: 10 })).toBe(10);
  expect(bodyBytesMax({ hasEnvelope: true, messageBytesMax: 10 })).toBe(15);
});

test('each reason why a body cannot be used has its failure', () => {
  expect(bodyFailure('too_large')).toEqual({ kind: 'body_too_large' });
  expect(bodyFailure('aborted')).toEqual({ kind: 'malformed_json', reason: 'The body ended early.' });
  expect(bodyFailure('deadline_exceeded')).toEqual({ kind: 'deadline_exceeded' });
  expect(bodyFailure('overloaded')).toMatchObject({ kind: 'overloaded' });
});
