import type { AccountId, CheckoutSystem } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { formatAmount } from '@order-gateway/domain/money';
import { formatTime, type Order, type OrderStore, type PendingRefund } from '@order-gateway/domain/orders';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { caller, merchant } from '../../test/helpers/fixed-deps.ts';
import type { Members } from '../calls/operation.ts';
import { pageReversalBytesMax } from '../limits.ts';
import { paymentOperations } from './payments.ts';
import { createRefund, fittingCount } from './refunds.ts';

const checkout: CheckoutSystem = {
  kind: 'checkout',
  id: 8 as AccountId,
  name: 'Checkout',
  lateDays: 1,
  getsCustomerData: false,
};
const reporter = { ...caller, account: checkout };
const attempt = { checkoutId: checkout.id, attemptId: 'a-1' };

/** Creates a store with one unpaid order. Its checkout system makes no refunds, and `clock` has its time. */
async function createStore() {
  const order = sampleOrder(merchant.id);
  const clock = { nowMs: order.createdAtMs };
  const store = createInMemoryOrderStore(
    undefined,
    () => clock.nowMs,
    undefined,
    () => false,
  );
  await store.create(order, 1_000);
  return { store, order, clock };
}

type Store = Awaited<ReturnType<typeof createStore>>['store'];

/** Calls a method of CheckoutService as the checkout system. */
function report(name: string, members: Members, store: Store, nowMs = 0) {
  const operations = paymentOperations({
    store,
    countRefusal() {},
    baseUrl: () => 'http://localhost' as BaseUrl,
    lateDays: () => 1,
    now: () => nowMs,
    signingSecrets: undefined,
  });
  return operations.find(({ method }) => method.name === name)?.handle(members, reporter);
}

/** Returns the report of a payment of the whole order. */
function paymentOf({ orderToken, createdAtMs, fields }: Order) {
  const { order_amount, order_currency } = fields;
  return {
    order_token: orderToken,
    payment_id: 'p-1',
    paid_at: formatTime(createdAtMs),
    order_amount: Number(formatAmount(order_amount)),
    order_currency,
  };
}

test('a refund requested before its order is paid is rejected, even if the order is paid at that moment', async () => {
  const { store, order } = await createStore();
  const findByOrderId: OrderStore['findByOrderId'] = async (...key) => {
    const found = await store.findByOrderId(...key);
    expect(await report('RecordPayment', paymentOf(order), store)).toMatchObject({ ok: true });
    return found;
  };
  const refund = (deps: Parameters<typeof createRefund>[0]) =>
    createRefund(deps, caller, { by: 'order_id', orderId: order.fields.order_id }, { refund_id: 'r-1' });
  expect(await refund({ store: { ...store, findByOrderId } })).toMatchObject({ failure: { kind: 'order_not_paid' } });
  expect(await refund({ store })).toMatchObject({ failure: { kind: 'refunds_not_supported' } });
});

test('a list of pending refunds says that it is incomplete', async () => {
  const { store } = await createStore();
  const listPendingRefunds = async () => ({ kind: 'found' as const, refunds: [], isIncomplete: true });
  expect(await report('ListRefunds', {}, { ...store, listPendingRefunds })).toMatchObject({
    ok: true,
    value: { body: { refunds: [], incomplete: true } },
  });
});

test.each([
  [2, false],
  [3, true],
])('of %i pending refunds, a page of 2 has a cursor for the others: %s', async (count, hasCursor) => {
  const { store, order } = await createStore();
  const refunds = Array.from(
    { length: count },
    (_, index): PendingRefund => ({
      createdAtMs: index,
      serviceOrderId: index,
      orderId: 'o',
      orderToken: order.orderToken,
      mode: 'live',
      merchantClientId: 'm',
      paymentId: 'p',
      refundId: `r-${index}`,
      providerRefundId: null,
      amount: order.fields.order_amount,
      currency: 'EUR',
    }),
  );
  const afters: unknown[] = [];
  const listPendingRefunds: Store['listPendingRefunds'] = async (_id, { after, limit }) => {
    afters.push(after);
    return { kind: 'found', refunds: refunds.slice(0, limit), isIncomplete: false };
  };
  const list = (cursor?: string) => report('ListRefunds', { limit: 2, cursor }, { ...store, listPendingRefunds });
  const { body } = Object(await list()).value;
  expect(body.refunds.map(({ refund_id }: { refund_id: string }) => refund_id)).toEqual(['r-0', 'r-1']);
  expect(typeof body.next_cursor).toBe(hasCursor ? 'string' : 'undefined');
  await list(body.next_cursor);
  expect(afters).toEqual([undefined, hasCursor ? { createdAtMs: 1, serviceOrderId: 1 } : undefined]);
});

test('a dispute has the times of its first report and of its last change', async () => {
  const { store, order, clock } = await createStore();
  expect(await report('RecordPayment', paymentOf(order), store)).toMatchObject({ ok: true });
  const dispute = { payment_id: 'p-1', dispute_id: 'd-1', amount: 1, currency: order.fields.order_currency };
  const times: { created_at: string; updated_at: string }[] = [];
  for (const status of ['INQUIRY', 'OPEN', 'WON']) {
    clock.nowMs += 1_000;
    const recorded = await report('RecordDispute', { order_token: order.orderToken, ...dispute, status }, store);
    times.push(Object(recorded).value.body.dispute);
  }
  const updates = times.map(({ updated_at }) => updated_at);
  expect(new Set(updates).size).toBe(3);
  expect(times.map(({ created_at }) => created_at)).toEqual(Array(3).fill(updates[0]));
});

test.each([
  [59_000, 'ok'],
  [60_000, 'replayed'],
])('the end of an attempt %i ms after it claimed its order for a minute is %s', async (afterMs, outcome) => {
  const { store, order, clock } = await createStore();
  await store.startPayment(order, attempt, 60, 1_000);
  clock.nowMs += afterMs;
  const members = { order_token: order.orderToken, attempt_id: attempt.attemptId };
  expect(await report('EndPayment', members, store)).toMatchObject({ ok: true, value: { outcome } });
});

test('a report of a refused payment fails until the attempt that it names has ended', async () => {
  const { store, order } = await createStore();
  await store.startPayment(order, attempt, 60, 1_000);
  const payment = { ...paymentOf(order), order_amount: 1, attempt_id: attempt.attemptId };
  const endPayment = async () => ({ kind: 'unavailable' as const });
  for (const [endingStore, kind] of [
    [{ ...store, endPayment }, 'unavailable'],
    [store, 'payment_mismatch'],
  ] as const) {
    expect(await report('RecordPayment', payment, endingStore)).toMatchObject({ failure: { kind } });
  }
  const found = await store.findByToken(order.orderToken, 1_000);
  expect(found).toMatchObject({ order: { lease: { isLive: false }, refusedPayments: [{ code: 'payment_mismatch' }] } });
});

test('a page has at least one order, and further ones up to the limit for refunds and disputes', () => {
  /** The members of an order whose refunds and disputes take so many bytes. */
  const orderOf = (bytes: number) => ({ refunds: ['x'.repeat(bytes - '[["",null]]'.length)] as never });
  const [half, small] = [orderOf(pageReversalBytesMax / 2), {}];
  expect(fittingCount([])).toBe(0);
  expect(fittingCount([orderOf(2 * pageReversalBytesMax), small])).toBe(1);
  expect(fittingCount([half, half, small])).toBe(3);
  expect(fittingCount([half, small, orderOf(pageReversalBytesMax / 2 + 1), small])).toBe(2);
});
