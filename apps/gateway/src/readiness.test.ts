import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createReadiness } from './readiness.ts';

const pause = { used: 1_000, timeout: 2_000 };

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** A readiness whose checks end when the test says so. */
function openReadiness() {
  const checks: PromiseWithResolvers<void>[] = [];
  const lines: unknown[] = [];
  const logger = { error: (...line: unknown[]) => void lines.push(line.length === 1 ? line[0] : line) };
  const isReady = createReadiness({
    check: () => {
      const check = Promise.withResolvers<void>();
      checks.push(check);
      return check.promise;
    },
    logger: logger as never,
    monotonicNow: () => performance.now(),
  });
  return { isReady, checks, lines };
}

test('however many ask at once or soon after, the database is asked once, and anew by who comes later', async () => {
  const { isReady, checks } = openReadiness();
  const first = Promise.all(Array.from({ length: 50 }, isReady));
  expect(checks).toHaveLength(1);
  checks[0]?.resolve();
  expect(new Set(await first)).toEqual(new Set([true]));
  await vi.advanceTimersByTimeAsync(pause.used - 1);
  expect(await isReady()).toBe(true);
  expect(checks).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  const later = isReady();
  checks[1]?.reject(new Error('the database is read-only'));
  expect(await later).toBe(false);
});

test('each change is logged once, with the reason', async () => {
  const { isReady, checks, lines } = openReadiness();
  for (const reason of [undefined, 'locked', 'locked', 'read-only', undefined, undefined]) {
    const ready = isReady();
    if (reason === undefined) checks.at(-1)?.resolve();
    else checks.at(-1)?.reject(new Error(reason));
    expect(await ready).toBe(reason === undefined);
    await vi.advanceTimersByTimeAsync(pause.used);
  }
  expect(lines).toEqual([[{ reason: 'locked' }, 'not ready for orders'], 'ready for orders again']);
});

test('a check without a response is not ready after 2 s, and no other starts beside it', async () => {
  const { isReady, checks, lines } = openReadiness();
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const ready = isReady();
    await vi.advanceTimersByTimeAsync(pause.timeout);
    expect(await ready).toBe(false);
    await vi.advanceTimersByTimeAsync(pause.used);
  }
  expect(checks).toHaveLength(1);
  expect(lines).toEqual([[{ reason: 'no response in 2000 ms' }, 'not ready for orders']]);
  const ready = isReady();
  checks[0]?.resolve();
  expect(await ready).toBe(true);
});
