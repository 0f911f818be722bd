import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createOrderToken } from '../../src/links/order-token.ts';
import type { Order } from '../../src/orders/order.ts';
import { decide, transitions } from '../../src/orders/order-states.ts';
import { sampleOrder } from '../sample-orders.ts';
import {
  checkoutOf,
  hourMs,
  type OrderStoreSteps,
  orderExpiringIn,
  paymentOf,
  timeoutMs,
} from './order-store-steps.ts';

/** Tests state changes. `decide` determines the order of the checks and their errors. */
export function describeChanges({
  opened,
  create,
  created,
  newMerchant,
  find,
  findForPayment,
  decideNow,
  act,
  eventsOf,
  expectEvents,
}: OrderStoreSteps): void {
  it('change stores a payment and a cancellation once each, with one event each', async () => {
    const merchantId = await newMerchant();
    const paid = await created(sampleOrder(merchantId, { order_id: 'paid' }));
    const cancelled = await created(sampleOrder(merchantId, { order_id: 'cancelled' }));

    expect(await act(paid, paymentOf(paid, 'p-1', 1_795_208_502_172))).toBe('changed');
    expect(await act(paid, paymentOf(paid, 'p-1', 1_795_208_502_172))).toBe('replayed');
    expect(await act(paid, paymentOf(paid, 'p-1', 1_795_208_502_173))).toBe('payment_id_conflict');
    expect(await act(paid, { kind: 'cancel' })).toBe('order_already_paid');
    expect(await act(cancelled, { kind: 'cancel' })).toBe('changed');
    expect(await act(cancelled, { kind: 'cancel' })).toBe('replayed');
    expect(await find(paid)).toStrictEqual({
      ...paid,
      orderStatus: 'PAID',
      payment: { checkoutId: checkoutOf(merchantId), paymentId: 'p-1', paidAtMs: 1_795_208_502_172 },
    });
    expect(await find(cancelled)).toStrictEqual({
      ...cancelled,
      orderStatus: 'CANCELLED',
      cancelledAtMs: expect.any(Number),
    });
    await expectEvents(paid, ['order.paid paid', 'order.cancelled cancelled']);
  });

  it('change treats an order past its expiry as expired, whether or not the expiry is stored', async () => {
    const merchantId = await newMerchant();
    const unexpired = await created(orderExpiringIn(merchantId, hourMs, { order_id: 'unexpired' }));
    const late = await created(orderExpiringIn(merchantId, -hourMs, { order_id: 'late' }));
    const tooLate = await created(orderExpiringIn(merchantId, -25 * hourMs, { order_id: 'too late' }));

    const cancelled: Order = { ...late, orderStatus: 'CANCELLED', cancelledAtMs: late.createdAtMs };
    const cancellation = { transition: transitions.cancel, order: cancelled };
    expect(await opened().store.change(cancellation, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    expect((await find(unexpired)).orderStatus).toBe('UN_PAID');
    expect((await find(late)).orderStatus).toBe('EXPIRED');
    expect(await create(sampleOrder(merchantId, { order_id: 'late' }))).toMatchObject({
      order: { orderStatus: 'EXPIRED' },
    });
    expect(await act(late, { kind: 'cancel' })).toBe('order_expired');
    const expiryMs = late.expiresAtMs ?? 0;
    expect(await act(late, paymentOf(late, 'p-0', expiryMs))).toBe('order_expired');
    expect(await act(late, paymentOf(late, 'p-1', expiryMs - 1))).toBe('changed');
    expect(await act(tooLate, paymentOf(tooLate, 'p-2', (tooLate.expiresAtMs ?? 0) - 1))).toBe('order_expired');
    expect(await act(unexpired, paymentOf(unexpired, 'p-3', Date.now()))).toBe('changed');
    // An order that is shown as expired is stored as expired.
    await expectEvents(unexpired, [
      'order.expired late',
      'order.payment_refused late',
      'order.paid late',
      'order.expired too late',
      'order.payment_refused too late',
      'order.paid unexpired',
    ]);
  });

  it('change writes nothing if the order has left the expected state', async () => {
    const merchantId = await newMerchant();
    const order = await created(sampleOrder(merchantId));
    const stale = decide(order, paymentOf(order, 'p-1'), Date.now());
    await act(order, { kind: 'cancel' });

    if (!stale.ok || stale.value.kind !== 'change') throw new Error('decide did not allow the payment');
    expect(await opened().store.change(stale.value.change, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    expect((await find(order)).orderStatus).toBe('CANCELLED');
    expect(await eventsOf(order)).toHaveLength(1);
  });

  it.each([
    [
      'payments and cancellations',
      (order: Order, call: number) => (call % 2 ? paymentOf(order, 'p-1') : { kind: 'cancel' as const }),
    ],
    ['reports of two payments', (order: Order, call: number) => paymentOf(order, `p-${call % 2}`)],
    ['cancellations', () => ({ kind: 'cancel' as const })],
  ])(
    'change lets one of 50 concurrent %s succeed, and its result decides the outcomes of the others',
    async (_, actionOf) => {
      const merchantId = await newMerchant();
      const order = await created(sampleOrder(merchantId));

      const outcomes = await Promise.all(Array.from({ length: 50 }, (_, call) => act(order, actionOf(order, call))));

      expect(outcomes.filter((outcome) => outcome === 'changed')).toHaveLength(1);
      const winner = actionOf(order, outcomes.indexOf('changed'));
      const current = await find(order);
      expect(current.orderStatus).toBe(winner.kind === 'pay' ? 'PAID' : 'CANCELLED');
      for (const [call, outcome] of outcomes.entries()) {
        const decided = await decideNow(current, actionOf(order, call));
        const expected = decided.ok ? decided.value.kind : decided.failure.kind;
        if (outcome !== 'changed') expect(outcome).toBe(expected);
      }
      const refused = current.refusedPayments.map(() => `order.payment_refused ${order.fields.order_id}`);
      expect((await eventsOf(order)).slice(1)).toStrictEqual(refused);
      // The refused payment of each id is stored once, even if it is reported several times.
      const actions = outcomes.map((_, call) => actionOf(order, call));
      const ids = new Set(actions.flatMap((action) => (action.kind === 'pay' ? [action.payment.paymentId] : [])));
      if (winner.kind === 'pay') ids.delete(winner.payment.paymentId);
      expect(current.refusedPayments.map(({ paymentId }) => paymentId)).toStrictEqual([...ids]);
    },
  );

  it('findForPayment returns the order of a link, whether the payment is known, and the time of the store', async () => {
    const [firstMerchant, secondMerchant] = await opened().merchantIds();
    const [first, second] = [await created(sampleOrder(firstMerchant)), await created(sampleOrder(secondMerchant))];
    const payment = paymentOf(first, 'p-1');
    const [startedAtMs, found] = [Date.now(), await findForPayment(second, payment)];
    expect(found).toMatchObject({ order: second, isKnown: false, merchant: { name: opened().nameOf(secondMerchant) } });
    // The clock of the database may differ.
    expect(Math.abs(found.nowMs - startedAtMs)).toBeLessThan(hourMs);

    expect(await act(first, payment)).toBe('changed');
    expect(await findForPayment(second, payment)).toMatchObject({ order: second, isKnown: true });
    expect(await findForPayment(first, payment)).toMatchObject({ order: { orderStatus: 'PAID' }, isKnown: true });
    expect(await findForPayment(second, paymentOf(first, 'p-2'))).toMatchObject({ isKnown: false });
    // Another checkout system reports this payment.
    expect(await findForPayment(second, paymentOf(second, 'p-1'))).toMatchObject({ isKnown: false });
    const unknown = opened().store.findForPayment(
      createOrderToken(firstMerchant, randomBytes),
      { checkoutId: checkoutOf(firstMerchant), paymentId: 'p-1' },
      timeoutMs,
    );
    expect(await unknown).toStrictEqual({ kind: 'unknown' });
  });

  it('change lets a payment that is reported for 50 orders of two merchants at once pay only one of them', async () => {
    const [firstMerchant, secondMerchant] = await opened().merchantIds();
    const orders = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        created(sampleOrder(index % 2 ? firstMerchant : secondMerchant, { order_id: `one-payment-${index}` })),
      ),
    );
    const { payment } = paymentOf(sampleOrder(firstMerchant), 'p-1');
    const outcomes = await Promise.all(orders.map((order) => act(order, { kind: 'pay', payment })));

    expect(outcomes.filter((outcome) => outcome === 'changed')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'payment_id_conflict')).toHaveLength(49);
    const statuses = await Promise.all(orders.map(async (order) => (await find(order)).orderStatus));
    expect(statuses).toStrictEqual(outcomes.map((outcome) => (outcome === 'changed' ? 'PAID' : 'UN_PAID')));
  });
}
