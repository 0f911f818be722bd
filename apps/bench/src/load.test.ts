import { expect, test } from 'vitest';
import { median, percentile, resultIn } from './load.ts';

test('takes the middle of an odd number of figures, and the mean of the two middle ones of an even number', () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 3, 2])).toBe(2.5);
});

test('takes percentiles by the nearest rank', () => {
  const sorted = Float64Array.from({ length: 200 }, (_, index) => index + 1);
  expect([percentile(sorted, 50), percentile(sorted, 99), percentile(sorted, 100)]).toEqual([100, 198, 200]);
  expect(percentile([], 99)).toBe(0);
});

test("reads a sender's result from its last line of JSON, and says when there is none", () => {
  expect(resultIn('Running 1s test\n{"answers":1}\n{"answers":2}\n')).toEqual({ answers: 2 });
  expect(() => resultIn('unable to connect')).toThrow('unable to connect');
});
