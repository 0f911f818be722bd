import type { AccountId } from '@order-gateway/domain/accounts';
import type { OrderToken } from '@order-gateway/domain/links';
import type { LinkedOrder, Order, RefusedPayment } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import { pageWatchLimits } from '../limits.ts';
import { createPageWatch, pageVersion } from './page-watch.ts';

const limits = { timeoutMs: 60_000, signal: new AbortController().signal };

/**
 * Creates a watch. `open` opens a page that waits for a change of its order. `settled` contains the tokens of the pages
 * that no longer wait. `close` ends all waits.
 */
function setUp() {
  const { logger } = createMemoryLogger();
  const { changed, close } = createPageWatch(async () => ({ kind: 'unknown' }), logger);
  const settled: string[] = [];
  const open = async (token: string, merchantId = 1) => {
    await changed(linkTo(token, merchantId as AccountId), limits);
    settled.push(token);
  };
  return { open, settled, close };
}

test('the pages of one order do not take the slots of other orders', async () => {
  const { open, settled, close } = setUp();
  const waits = Array.from({ length: pageWatchLimits.waitersPerOrder }, () => open('first'));
  await open('first');
  waits.push(open('second'));
  await new Promise(setImmediate);
  expect(settled).toEqual(['first']);
  close();
  await Promise.all(waits);
});

test('one merchant can take half of the slots, and a second merchant half of the rest', async () => {
  const { open, settled, close } = setUp();
  const half = pageWatchLimits.waitersMax / 2;
  const waits = Array.from({ length: half }, (_, index) => open(`page ${index}`));
  await open('one too many');
  waits.push(...Array.from({ length: half / 2 }, (_, index) => open(`page ${index} of another`, 2)));
  await open('one too many of another', 2);
  expect(settled).toEqual(['one too many', 'one too many of another']);
  close();
  await Promise.all(waits);
});

test('the page has another version after each change that it shows', () => {
  const link = linkTo('token', 1 as AccountId);
  const payment = { checkoutId: 2 as AccountId, paymentId: 'p-1', paidAtMs: 1 };
  const refused = { ...payment, amount: link.order.fields.order_amount, currency: 'EUR', code: 'payment_mismatch' };
  const refusedAt = (refusedAtMs: number) => ({ ...refused, refusedAtMs }) as RefusedPayment;
  const lease = { checkoutId: payment.checkoutId, attemptId: 'a-1', endsAtMs: 1, isLive: true };
  const reversed = (version: number) => ({ reversals: { version, refunds: [], disputes: [] } });
  const changes: Partial<Order>[] = [
    {},
    ...(['PAID', 'EXPIRED', 'CANCELLED'] as const).map((orderStatus) => ({ orderStatus })),
    ...[lease, { ...lease, endsAtMs: 2 }].map((lease) => ({ lease })),
    ...[[refusedAt(1)], [refusedAt(1), refusedAt(2)]].map((refusedPayments) => ({ refusedPayments })),
    ...[reversed(1), reversed(2)],
  ];
  const versions = changes.map((change) => pageVersion({ ...link, order: { ...link.order, ...change } }));
  expect(new Set(versions).size).toBe(changes.length);
});

function linkTo(token: string, merchantId: AccountId): LinkedOrder {
  const order = { ...sampleOrder(merchantId), orderToken: token as OrderToken };
  return {
    order,
    merchant: { clientId: 'app_1', name: 'Shop', mode: 'live', isDisabled: false, returnSecrets: [], brand: null },
  };
}
