import type { AccountId } from '@order-gateway/domain/accounts';
import { expect, test } from 'vitest';
import { openListQueue } from './list-queue.ts';

test('the pages of merchants take turns, regardless of how many one merchant requests', async () => {
  const read: number[] = [];
  const client = { run: async () => [] as never, close: async () => {} };
  const queue = openListQueue({ name: 'test' }, client, async (_client, { merchantId }) => {
    read.push(merchantId);
    await new Promise(setImmediate);
    return { kind: 'found' };
  });
  const merchants = [...Array<number>(16).fill(1), 2, 3, 2];
  const pages = merchants.map((id) => queue.add({ merchantId: id as AccountId }, 10_000));
  expect(await Promise.all(pages)).toEqual(merchants.map(() => ({ kind: 'found' })));
  expect(read.slice(0, 6)).toEqual([1, 2, 3, 1, 2, 1]);
  await queue.close();
});
