import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { inBackground, paced } from './paced.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => void vi.useRealTimers());

/** Returns a paced sender, and how often it has sent with each key. */
function setUp() {
  const sent: Record<string, number> = {};
  const send = paced(async (_url, { headers }) => {
    const key = new Headers(headers).get('authorization') ?? '';
    sent[key] = (sent[key] ?? 0) + 1;
    return new Response();
  });
  const calls = (key: string, count: number) =>
    Promise.all(Array.from({ length: count }, () => send('https://api.test', { headers: { authorization: key } })));
  /** Lets time pass in small steps, so that calls that wait can continue. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 50) {
      await vi.advanceTimersByTimeAsync(50);
      await setImmediate();
    }
  };
  return { sent, calls, pass };
}

test('work in the background makes at most ten calls a second to an account', async () => {
  const { sent, calls, pass } = setUp();
  const working = inBackground(() => Promise.all([calls('a', 40), calls('b', 5)]));
  await pass(50);
  expect(sent).toEqual({ a: 10, b: 5 });
  await pass(950);
  expect(sent.a).toBeGreaterThanOrEqual(19);
  expect(sent.a).toBeLessThanOrEqual(21);
  await pass(3_000);
  await working;
  expect(sent).toEqual({ a: 40, b: 5 });
});

test('a call for which a customer waits is never delayed, but delays work in the background', async () => {
  const { sent, calls, pass } = setUp();
  await calls('a', 30);
  expect(sent).toEqual({ a: 30 });
  const working = inBackground(() => calls('a', 1));
  await setImmediate();
  expect(sent).toEqual({ a: 30 });
  await pass(200);
  await working;
  expect(sent).toEqual({ a: 31 });
});
