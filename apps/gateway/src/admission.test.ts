import type { MerchantId } from '@gateway/domain/merchant';
import { expect, test } from 'vitest';
import { createAdmission } from './admission.ts';

const [heavy, first, second] = [1, 2, 3] as MerchantId[] as [MerchantId, MerchantId, MerchantId];

function setUp() {
  const state = { oldestOrderMs: 0 };
  const limits = { callsMax: 100, callsMaxWhenSlow: 10, orderAgeMaxMs: 150 };
  const admission = createAdmission({ oldestOrderMs: () => state.oldestOrderMs, limits });
  const enter = (id: MerchantId, times: number) =>
    Array.from({ length: times }, () => admission.enter(id)).filter(Boolean).length;
  const leave = (id: MerchantId, times: number) => {
    for (let time = 0; time < times; time += 1) admission.leave(id);
  };
  return { state, enter, leave };
}

test('a client that is alone gets all, and another its share at once', () => {
  const { enter } = setUp();
  expect([enter(heavy, 150), enter(first, 150), enter(heavy, 1), enter(second, 150)]).toEqual([100, 50, 0, 34]);
});

test('a client above its share gets no more until it is below it and the others have theirs', () => {
  const { enter, leave } = setUp();
  enter(heavy, 100);
  enter(first, 20);
  leave(heavy, 40);
  // Of 80 in flight 20 more fit.
  expect(enter(heavy, 50)).toBe(20);
  expect(enter(first, 50)).toBe(30);
  leave(heavy, 50);
  expect([enter(heavy, 50), enter(first, 50)]).toEqual([20, 0]);
});

test('many clients that come one after the other do not fill more than twice the limit', () => {
  const { enter } = setUp();
  let entered = 0;
  for (let id = 1; id <= 1_000; id += 1) entered += enter(id as MerchantId, 100);
  expect(entered).toBe(200);
});

test('while orders are slow the limit is lower, but not for those who have little in flight', () => {
  const { state, enter, leave } = setUp();
  expect(enter(heavy, 50)).toBe(50);
  state.oldestOrderMs = 151;
  expect([enter(heavy, 1), enter(first, 10)]).toEqual([0, 5]);
  leave(heavy, 46);
  expect(enter(heavy, 10)).toBe(1);
  state.oldestOrderMs = 150;
  expect(enter(heavy, 200)).toBe(90);
});
