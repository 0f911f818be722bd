import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createUnauthenticatedCalls } from './unauthenticated-calls.ts';

const limits = {
  perNetwork: 2,
  rejectedPerSecond: 3,
  inFlightMax: 2,
  waitingMax: 2,
  waitingTimeoutMs: 500,
  pauseMs: 100,
  pauseMaxMs: 200,
  pausedMax: 2,
};
const unauthenticated = { kind: 'unauthenticated' };
const rateLimited = { kind: 'rate_limited', retryAfterMs: expect.any(Number) };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const calls = createUnauthenticatedCalls(limits, Date.now);
  const peer = (address: string) => ({
    address,
    markAuthenticated() {},
    markIdle: vi.fn<() => void>(),
  });
  /** Returns the outcomes of the promises after `ms` milliseconds. */
  const settled = async <Value>(promises: readonly Promise<Value>[], ms = 0) => {
    const results: (Value | 'pending')[] = promises.map(() => 'pending');
    promises.forEach(async (promise, index) => {
      results[index] = await promise;
    });
    await vi.advanceTimersByTimeAsync(ms);
    return results;
  };
  return { calls, peer, settled };
}

const proxy = '10.0.0.1';

test('pages above the limit wait for a slot, and their connections count as idle', async () => {
  const { calls, peer, settled } = setUp();
  const peers = Array.from({ length: 3 }, () => peer(proxy));
  const pages = peers.map((each) => calls.admit(each));
  const [first, , third] = await settled(pages);
  expect(third).toBe('pending');
  expect(peers.map(({ markIdle }) => markIdle.mock.calls.length)).toEqual([0, 0, 1]);
  if (first === undefined || first === 'pending' || !first.ok) throw new Error('the first page waits');
  first.value();
  // Calling the function again releases no other slot.
  first.value();
  const fourth = calls.admit(peer(proxy));
  const [, , started, waits] = await settled([...pages, fourth]);
  expect([started, waits]).toMatchObject([{ ok: true }, 'pending']);
});

test('a page is rate_limited if it gets no slot in time or if too many pages already wait', async () => {
  const { calls, peer, settled } = setUp();
  const pages = Array.from({ length: 5 }, () => calls.admit(peer(proxy)));
  const failed = { ok: false, failure: rateLimited };
  expect((await settled(pages, limits.pauseMs)).slice(2)).toEqual(['pending', 'pending', failed]);
  const settledPages = await settled(pages, limits.waitingTimeoutMs);
  expect(settledPages.slice(2)).toEqual([failed, failed, failed]);
  // Pages that no longer wait don't get the released slots, so new pages do.
  for (const page of settledPages) if (page !== 'pending' && page.ok) page.value();
  const next = [calls.admit(peer(proxy)), calls.admit(peer(proxy))];
  expect(await settled(next)).toMatchObject([{ ok: true }, { ok: true }]);
});

test('limits the pages per second of each public network, but not those of a proxy', async () => {
  const { calls, peer, settled } = setUp();
  const isAdmitted = async (address: string) => {
    const [page] = await settled([calls.admit(peer(address))]);
    if (page !== undefined && page !== 'pending' && page.ok) page.value();
    return page !== 'pending' && page?.ok;
  };
  const addresses = ['8.8.8.8', '8.8.8.8', '8.8.8.8', '8.8.4.4', proxy, proxy, proxy];
  const admitted: unknown[] = [];
  for (const address of addresses) admitted.push(await isAdmitted(address));
  expect(admitted).toEqual([true, true, false, true, true, true, true]);
});

test('failed authentications above the limit are rate_limited after a pause, until a second has passed', async () => {
  const { calls, peer, settled } = setUp();
  const caller = peer(proxy);
  const reject = () => calls.reject(caller);
  const failures = [reject(), reject(), reject(), reject()];
  expect(await settled(failures)).toEqual([unauthenticated, unauthenticated, unauthenticated, 'pending']);
  expect(caller.markIdle).toHaveBeenCalledTimes(1);
  expect((await settled(failures, limits.pauseMs))[3]).toEqual(rateLimited);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await settled([reject()])).toEqual([unauthenticated]);
});

test('each public network has its own limit of failed authentications', async () => {
  const { calls, peer, settled } = setUp();
  const failures = ['8.8.8.8', '8.8.8.8', '8.8.8.8', '8.8.4.4'].map((address) => calls.reject(peer(address)));
  expect(await settled(failures)).toEqual([unauthenticated, unauthenticated, 'pending', unauthenticated]);
});

test('limits the number of delayed responses, and sends further ones immediately', async () => {
  const { calls, peer, settled } = setUp();
  const failures = Array.from({ length: 6 }, () => calls.reject(peer(proxy)));
  const [, , , ...late] = await settled(failures);
  expect(late).toEqual(['pending', 'pending', rateLimited]);
});
