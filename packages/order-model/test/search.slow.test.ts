import { expect, test } from 'vitest';
import { countHistories, faultNames } from '../testing/count-histories.ts';

test('all of 100,000 histories of a correct gateway are explained', async () => {
  expect(await countHistories({ histories: 100_000 })).toEqual({ histories: 100_000, unexplained: 0 });
});

test.each(faultNames)('%s is found in each of 1,000 histories', async (fault) => {
  expect(await countHistories({ histories: 1_000, fault })).toEqual({ histories: 1_000, unexplained: 1_000 });
});
