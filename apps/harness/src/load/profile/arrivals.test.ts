import { expect, test } from 'vitest';
import { arrivalsOf, constantRate, type Phase } from './arrivals.ts';

function scheduledTimes(phases: readonly Phase[]): number[] {
  const arrivals = arrivalsOf(phases);
  return Array.from({ length: arrivals.count }, (_, number) => arrivals.scheduledMs(number));
}

/** The number of calls scheduled in each second. */
function perSecond(phases: readonly Phase[]): number[] {
  const counts: number[] = Array.from({ length: arrivalsOf(phases).seconds }, () => 0);
  for (const scheduled of scheduledTimes(phases)) {
    const second = Math.floor(scheduled / 1_000 + 1e-9);
    counts[second] = (counts[second] ?? 0) + 1;
  }
  return counts;
}

test('a constant rate spaces its calls evenly from the start', () => {
  expect(scheduledTimes(constantRate(4, 2))).toEqual([0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750]);
});

test('a ramp schedules as many calls as its rate implies, whether it rises or falls', () => {
  const ramp = [{ seconds: 10, rate: 0, to: 100 }];
  expect(perSecond(ramp)).toEqual([5, 15, 25, 35, 45, 55, 65, 75, 85, 95]);
  const down = [{ seconds: 10, rate: 100, to: 0 }];
  expect(perSecond(down).reduce((sum, count) => sum + count)).toBe(500);
  expect(perSecond(down)[0]).toBe(95);
});

test('the scheduled times of calls can be read in any order', () => {
  const arrivals = arrivalsOf([...constantRate(10, 1), ...constantRate(20, 1)]);
  expect([25, 3, 12].map((number) => arrivals.scheduledMs(number))).toEqual([1_750, 300, 1_100]);
});

test('arrival times never decrease, across all phases', () => {
  const phases = [...constantRate(7, 3), { seconds: 5, rate: 7, to: 300 }, ...constantRate(0.5, 4)];
  const scheduled = scheduledTimes(phases);
  expect(scheduled).toEqual(scheduled.toSorted((a, b) => a - b));
  expect(Math.max(...scheduled)).toBeLessThan(12_000);
});

test('a rate of 0 schedules no calls', () => {
  expect(arrivalsOf([])).toMatchObject({ count: 0, seconds: 0 });
  expect(arrivalsOf(constantRate(0, 5)).count).toBe(0);
});
