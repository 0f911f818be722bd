import { expect, test } from 'vitest';
import { type CountedHistories, countHistories, faultNames } from '../testing/count-histories.ts';

const allExplained: CountedHistories = { histories: 1_000, unexplained: 0 };

test('every history of a correct gateway is explained', async () => {
  expect(await countHistories({ histories: allExplained.histories })).toEqual(allExplained);
});

test.each(faultNames)('%s is found in each of 30 histories', async (fault) => {
  expect(await countHistories({ histories: 30, fault })).toEqual({ histories: 30, unexplained: 30 });
});
