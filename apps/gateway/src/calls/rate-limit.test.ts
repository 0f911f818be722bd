import type { AccountId } from '@order-gateway/domain/accounts';
import { bucketsMax, createTokenBuckets } from '@order-gateway/runtime/token-buckets';
import { expect, test } from 'vitest';
import { merchant as shop } from '../../test/helpers/fixed-deps.ts';
import { createRateLimit } from './admission.ts';

const otherShop = { ...shop, id: 2 as AccountId };

function setUp(callsPerSecond?: number) {
  let nowMs = 5_000;
  const rateLimit = createRateLimit(callsPerSecond, () => nowMs);
  return {
    rateLimit,
    advance: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('a merchant may make the calls of one second in a burst, and then one call per refilled token', () => {
  const { rateLimit, advance } = setUp(10);
  const first = Array.from({ length: 11 }, () => rateLimit(shop));
  expect(first).toEqual([...Array(10).fill(undefined), 100]);
  advance(99);
  expect(rateLimit(shop)).toBeCloseTo(1);
  advance(1);
  expect(rateLimit(shop)).toBeUndefined();
  expect(rateLimit(shop)).toBe(100);
  advance(60_000);
  const later = Array.from({ length: 20 }, () => rateLimit(shop));
  expect(later.filter((waitMs) => waitMs === undefined)).toHaveLength(10);
});

test('one merchant does not use up the calls of another', () => {
  const { rateLimit } = setUp(1);
  expect([rateLimit(shop), rateLimit(shop), rateLimit(otherShop)]).toEqual([undefined, 1_000, undefined]);
});

test("an account's separate limit applies with or without a general limit, and can change", () => {
  for (const { rateLimit } of [setUp(5), setUp()]) {
    const passedCalls = (calls: number, separateLimit: number | null) =>
      Array.from({ length: calls }, () => rateLimit({ ...shop, rateLimit: separateLimit })).filter(
        (ms) => ms === undefined,
      ).length;
    expect([passedCalls(5, 2), passedCalls(5, 1)]).toEqual([2, 0]);
  }
  const { rateLimit } = setUp();
  expect(Array.from({ length: 1_000 }, () => rateLimit(shop)).filter((ms) => ms !== undefined)).toEqual([]);
});

test('above the maximum number of buckets, the least recently used one is dropped', () => {
  const take = createTokenBuckets<number>(() => 0);
  for (let key = 0; key < bucketsMax; key += 1) take(key, 1);
  expect(take(0, 1)).toBe(1_000);
  take(bucketsMax, 1);
  expect(take(0, 1)).toBe(1_000);
  expect(take(1, 1)).toBeUndefined();
});
