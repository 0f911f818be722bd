import { expect, test } from 'vitest';
import { nextPauseMs } from './workers.ts';

test('the pause before a worker is replaced doubles up to 30 s, until a worker runs for more than a minute', () => {
  const ran = [0, 1, 60_000, 0, 0, 0, 0, 0, 0, 0, 60_001, 0];
  const pauses: number[] = [];
  for (const ranMs of ran) pauses.push(nextPauseMs(pauses.at(-1) ?? 100, ranMs));
  expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 100, 200]);
});
