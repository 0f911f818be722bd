import type { AccountId } from '@gateway/domain/accounts/account';
import type { OrderToken } from '@gateway/domain/links/order-token';
import type { LinkedOrder } from '@gateway/domain/orders/order-store';
import { sampleOrder } from '@gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import { pageWatchLimits } from '../limits.ts';
import { createPageWatch } from './page-watch.ts';

test('the pages of one order do not take the places of others', async () => {
  const watch = createPageWatch({
    findForPage: async () => ({ kind: 'unknown' }),
    logger: createMemoryLogger().logger,
  });
  const limits = { timeoutMs: 60_000, signal: new AbortController().signal };
  const settled: string[] = [];
  const wait = async (token: string) => {
    await watch.changed(linkTo(token), limits);
    settled.push(token);
  };
  const waits = Array.from({ length: pageWatchLimits.waitersPerOrder }, () => wait('first'));
  await wait('first');
  waits.push(wait('second'));
  await new Promise(setImmediate);
  expect(settled).toEqual(['first']);
  watch.close();
  await Promise.all(waits);
});

function linkTo(token: string): LinkedOrder {
  const order = { ...sampleOrder(1 as AccountId), orderToken: token as OrderToken };
  return { order, merchant: { name: 'Shop', mode: 'live', isDisabled: false, signingSecret: null, brand: null } };
}
