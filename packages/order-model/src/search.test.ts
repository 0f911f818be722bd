import { expect, test } from 'vitest';
import { type CountedHistories, countHistories, faultNames } from '../testing/count-histories.ts';

const none: CountedHistories = { histories: 1_000, unexplained: 0 };

test('no history of a correct gateway is unexplained', async () => {
  expect(await countHistories({ histories: none.histories })).toEqual(none);
});

test.each(faultNames)('%s is always found', async (fault) => {
  expect(await countHistories({ histories: 30, fault })).toEqual({ histories: 30, unexplained: 30 });
});
