import { afterEach, expect, test, vi } from 'vitest';
import { createMemoryLogger } from '../../../test/helpers/memory-logger.ts';
import { clockToleranceMs, readinessCheckEveryMs, readinessCheckTimeoutMs } from '../../limits.ts';
import { type CheckResult, createReadiness } from './readiness.ts';

const rightClock = { clockOffsetMs: 0, servedRatio: 1 };

afterEach(() => void vi.useRealTimers());

/** Creates a readiness check. The test settles its database checks and advances its timers. */
function setUp() {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const checks: PromiseWithResolvers<CheckResult>[] = [];
  const { logger, outages, errors } = createMemoryLogger();
  const check = () => {
    const running = Promise.withResolvers<CheckResult>();
    checks.push(running);
    return running.promise;
  };
  const lines = () => outages.map(({ msg, reason }) => [msg, reason]);
  return { ...createReadiness({ check, logger }), checks, lines, errors };
}

test('calls at the same time or shortly afterwards share one check, and a later call starts another', async () => {
  const { isReady, checks } = setUp();
  const first = Promise.all(Array.from({ length: 50 }, isReady));
  expect(checks).toHaveLength(1);
  checks[0]?.resolve(rightClock);
  expect(new Set(await first)).toEqual(new Set([true]));
  await vi.advanceTimersByTimeAsync(readinessCheckEveryMs - 1);
  expect(await isReady()).toBe(true);
  expect(checks).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  const later = isReady();
  checks[1]?.reject(new Error('the database is read-only'));
  expect(await later).toBe(false);
});

test('each loss of readiness is logged once, with its first reason', async () => {
  const { isReady, checks, lines } = setUp();
  for (const reason of [undefined, 'locked', 'locked', 'read-only', undefined, undefined]) {
    const ready = isReady();
    if (reason === undefined) checks.at(-1)?.resolve(rightClock);
    else checks.at(-1)?.reject(new Error(reason));
    expect(await ready).toBe(reason === undefined);
    await vi.advanceTimersByTimeAsync(readinessCheckEveryMs);
  }
  expect(lines()).toEqual([['not ready for orders', 'locked']]);
});

test('while only some merchants are served, the process stays ready, shows their share and logs it once', async () => {
  const { isReady, servedRatio, checks, errors } = setUp();
  for (const ratio of [1, 0.5, 0.25, 1, undefined, 0.5]) {
    const ready = isReady();
    if (ratio === undefined) checks.at(-1)?.reject(new Error('locked'));
    else checks.at(-1)?.resolve({ ...rightClock, servedRatio: ratio });
    expect([await ready, await servedRatio()]).toEqual([ratio !== undefined, ratio ?? 0]);
    await vi.advanceTimersByTimeAsync(readinessCheckEveryMs);
  }
  const lines = errors.map(({ msg, merchants_served_ratio: ratio }) => [msg, ratio]);
  expect(lines).toEqual([
    ['some merchants are not served', 0.5],
    ['some merchants are not served', 0.5],
  ]);
});

test('a wrong clock is logged once and shown, but the process stays ready', async () => {
  const { isReady, clockOffsetMs, checks, errors, lines } = setUp();
  const behind = -clockToleranceMs - 1;
  for (const offset of [clockToleranceMs, behind, behind, 0, undefined, 3_600_000]) {
    const ready = isReady();
    if (offset === undefined) checks.at(-1)?.reject(new Error('locked'));
    else checks.at(-1)?.resolve({ ...rightClock, clockOffsetMs: offset });
    expect([await ready, await clockOffsetMs()]).toEqual([offset !== undefined, offset]);
    await vi.advanceTimersByTimeAsync(readinessCheckEveryMs);
  }
  const line = { level: 'error', msg: 'the clock is wrong' };
  expect(errors).toMatchObject([
    { ...line, clock_offset_ms: behind },
    { ...line, clock_offset_ms: 3_600_000 },
  ]);
  expect(lines()).toEqual([['not ready for orders', 'locked']]);
});

test('a check that exceeds its time limit means not ready, and no second check starts while it runs', async () => {
  const { isReady, checks, lines } = setUp();
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const ready = isReady();
    await vi.advanceTimersByTimeAsync(readinessCheckTimeoutMs);
    expect(await ready).toBe(false);
    await vi.advanceTimersByTimeAsync(readinessCheckEveryMs);
  }
  expect(checks).toHaveLength(1);
  expect(lines()).toEqual([['not ready for orders', 'no response in 2000 ms']]);
  const ready = isReady();
  checks[0]?.resolve(rightClock);
  expect(await ready).toBe(true);
});

test('after a drain, the process is not ready, even for a call that was waiting for the database', async () => {
  const { isReady, drain, checks } = setUp();
  const waiting = isReady();
  drain();
  checks[0]?.resolve(rightClock);
  expect([await waiting, await isReady()]).toEqual([false, false]);
});

test('a watch yields each change once, including a drain, and ends with its signal', async () => {
  const results = [true, true, false, true];
  const check = async () => {
    if (results.shift() === false) throw new Error('locked');
    return rightClock;
  };
  const readiness = createReadiness({ check, logger: createMemoryLogger().logger }, { checkEveryMs: 5 });
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

test('a watch yields a drain that begins between two of its reads', async () => {
  const readiness = createReadiness({ check: async () => rightClock, logger: createMemoryLogger().logger });
  const watching = new AbortController();
  const watch = readiness.watch(watching.signal);
  expect(await watch.next()).toEqual({ done: false, value: true });
  readiness.drain();
  expect(await watch.next()).toEqual({ done: false, value: false });
  watching.abort();
  expect(await watch.next()).toEqual({ done: true, value: undefined });
});
