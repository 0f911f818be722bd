import { expect, test } from 'vitest';
import { arrivalsOf, bursts, constantRate, type Phase } from './arrivals.ts';

function dues(phases: readonly Phase[]): number[] {
  const arrivals = arrivalsOf(phases);
  return Array.from({ length: arrivals.count }, (_, number) => arrivals.dueMs(number));
}

/** How many calls are due in each second. */
function perSecond(phases: readonly Phase[]): number[] {
  const counts: number[] = Array.from({ length: arrivalsOf(phases).seconds }, () => 0);
  for (const due of dues(phases)) {
    const second = Math.floor(due / 1_000 + 1e-9);
    counts[second] = (counts[second] ?? 0) + 1;
  }
  return counts;
}

test('a constant rate spaces its calls evenly from the start on', () => {
  expect(dues(constantRate(4, 2))).toEqual([0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750]);
});

test('a ramp brings the calls that its rate promises, ever closer to each other', () => {
  const ramp = [{ seconds: 10, rateFrom: 0, rateTo: 100 }];
  expect(perSecond(ramp)).toEqual([5, 15, 25, 35, 45, 55, 65, 75, 85, 95]);
  const down = [{ seconds: 10, rateFrom: 100, rateTo: 0 }];
  expect(perSecond(down).reduce((sum, count) => sum + count)).toBe(500);
  expect(perSecond(down)[0]).toBe(95);
});

test('bursts come at the end of every period, and the last period may be cut short', () => {
  const options = { rate: 10, seconds: 9, burstRate: 50, burstSeconds: 1, everySeconds: 4 };
  expect(perSecond(bursts(options))).toEqual([10, 10, 10, 50, 10, 10, 10, 50, 10]);
  expect(arrivalsOf(bursts(options))).toMatchObject({ seconds: 9, count: 170, peakRate: 50 });
});

test('no call is due before the one that comes before it, across all joints', () => {
  const phases = [...constantRate(7, 3), { seconds: 5, rateFrom: 7, rateTo: 300 }, ...constantRate(0.5, 4)];
  const due = dues(phases);
  expect(due).toEqual(due.toSorted((a, b) => a - b));
  expect(Math.max(...due)).toBeLessThan(12_000);
});

test('a rate of nothing makes no call', () => {
  expect(arrivalsOf([])).toMatchObject({ count: 0, seconds: 0, peakRate: 0 });
  expect(arrivalsOf(constantRate(0, 5)).count).toBe(0);
});
