import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createReadiness } from './readiness.ts';

test('however many ask, the database is asked once at a time, and again after a moment', async () => {
  const asked: ((isReady: boolean) => void)[] = [];
  const readiness = createReadiness(() => new Promise((resolve) => asked.push(resolve)), 100);
  const first = Promise.all(Array.from({ length: 50 }, readiness.isReady));
  asked[0]?.(true);
  expect(new Set(await first)).toEqual(new Set([true]));
  expect(await readiness.isReady()).toBe(true);
  expect(asked.length).toBe(1);

  await sleep(150);
  const later = readiness.isReady();
  asked[1]?.(false);
  expect(await later).toBe(false);
});

test('a check that fails is not ready', async () => {
  expect(await createReadiness(() => Promise.reject(new Error('lost'))).isReady()).toBe(false);
});

test('a drain is not ready for good, for those too who wait for the database', async () => {
  const readiness = createReadiness(() => new Promise(() => {}));
  const waiting = readiness.isReady();
  readiness.drain();
  expect([await waiting, await readiness.isReady()]).toEqual([false, false]);
});

test('a watch gets each change once and the drain at once, and ends with its signal', async () => {
  const answers = [true, true, false, true];
  const readiness = createReadiness(async () => answers.shift() ?? true, 5);
  const watching = new AbortController();
  const seen: boolean[] = [];
  const watch = (async () => {
    for await (const isReady of readiness.watch(watching.signal)) seen.push(isReady);
  })();
  await expect.poll(() => seen).toEqual([true, false, true]);
  readiness.drain();
  await expect.poll(() => seen).toEqual([true, false, true, false]);
  watching.abort();
  await watch;
});
