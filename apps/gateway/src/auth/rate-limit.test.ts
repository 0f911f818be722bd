import type { MerchantId } from '@gateway/domain/merchant';
import { expect, test } from 'vitest';
import { createRateLimit } from './rate-limit.ts';

const shop = 1 as MerchantId;
const otherShop = 2 as MerchantId;

function setUp(callsPerSecond: number) {
  let nowMs = 5_000;
  const rateLimit = createRateLimit({ callsPerSecond, monotonicNow: () => nowMs });
  return {
    rateLimit,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

test('a merchant may make one second of its calls at once, and then one for each that is refilled', () => {
  const { rateLimit, pass } = setUp(10);
  const first = Array.from({ length: 11 }, () => rateLimit(shop));
  expect(first).toEqual([...Array(10).fill(undefined), 1]);
  pass(99);
  expect(rateLimit(shop)).toBe(1);
  pass(1);
  expect(rateLimit(shop)).toBeUndefined();
  expect(rateLimit(shop)).toBe(1);
  pass(60_000);
  const later = Array.from({ length: 20 }, () => rateLimit(shop));
  expect(later.filter((seconds) => seconds === undefined)).toHaveLength(10);
});

test('one merchant does not use up the calls of another', () => {
  const { rateLimit } = setUp(1);
  expect([rateLimit(shop), rateLimit(shop), rateLimit(otherShop)]).toEqual([undefined, 1, undefined]);
});
