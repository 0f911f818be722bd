import { PassThrough } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createBodyReader } from './call-body.ts';

const options = { hasEnvelope: false };

async function write(stream: PassThrough, bytes: number): Promise<void> {
  stream.write(Buffer.alloc(bytes));
  await setImmediate();
}

test('above the limit for all bodies, the oldest are dropped, and their later bytes are ignored', async () => {
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
