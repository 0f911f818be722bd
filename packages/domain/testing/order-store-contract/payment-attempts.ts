import { expect, it } from 'vitest';
import type { Order, OrderStatus } from '../../src/orders/order.ts';
import { decideManualPayment, transitions } from '../../src/orders/order-states.ts';
import { sampleOrder } from '../sample-orders.ts';
import {
  attemptOf,
  hourMs,
  type OrderStoreSteps,
  orderExpiringIn,
  paymentOf,
  sampleNowMs,
  timeoutMs,
} from './order-store-steps.ts';

/** Tests payment attempts and their leases. */
export function describePaymentAttempts({
  opened,
  created,
  newMerchant,
  find,
  act,
  start,
  end,
  eventsOf,
  expectEvents,
}: OrderStoreSteps): void {
  it('startPayment claims an unpaid order for one attempt at a time, and endPayment ends the claim', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const attempt = attemptOf(order, 'a-1');
    const { store } = opened();
    const started = await store.startPayment(order, attempt, 900, timeoutMs);
    if (started.kind !== 'changed') throw new Error(started.kind);
    const { endsAtMs } = started;
    expect(Math.abs(endsAtMs - Date.now() - 900_000)).toBeLessThan(hourMs);

    expect(await find(order)).toStrictEqual({ ...order, lease: { ...attempt, endsAtMs, isLive: true } });
    expect(await store.startPayment(order, attempt, 60, timeoutMs)).toStrictEqual({ kind: 'changed', endsAtMs });
    const extended = await store.startPayment(order, attempt, 1_800, timeoutMs);
    expect(extended.kind === 'changed' && extended.endsAtMs - endsAtMs).toBeGreaterThanOrEqual(900_000);
    const otherAttempts = [attemptOf(order, 'a-2'), { ...attempt, checkoutId: (await opened().merchantIds())[1] }];
    for (const otherAttempt of otherAttempts) {
      expect(await store.startPayment(order, otherAttempt, 900, timeoutMs)).toStrictEqual({ kind: 'conflict' });
      expect(await store.endPayment(order, otherAttempt, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    }
    const cancelled: Order = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: order.createdAtMs };
    const cancellation = { transition: transitions.cancel, order: cancelled };
    expect(await store.change(cancellation, timeoutMs)).toStrictEqual({ kind: 'conflict' });

    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'changed' });
    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'conflict' });
    expect((await find(order)).lease).toMatchObject({ ...attempt, isLive: false });
    expect(await start(order, 'a-2')).toBe('changed');
    expect(await end(order, 'a-2')).toStrictEqual({ kind: 'changed' });
    expect(await act(order, { kind: 'cancel' })).toBe('changed');
    expect((await find(order)).lease).toBeNull();
    expect(await start(order, 'a-2')).toBe('order_cancelled');
    expect(await store.startPayment(order, attempt, 900, timeoutMs)).toStrictEqual({ kind: 'conflict' });
  });

  it('an attempt that ended never claims the order again, even if its lease had ended before', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const { store } = opened();
    for (const [attemptId, leaseSeconds] of [
      ['a-1', 900],
      ['a-2', 0],
    ] as const) {
      expect(await start(order, attemptId, leaseSeconds)).toBe('changed');
      const { lease } = await find(order);
      expect(await end(order, attemptId)).toStrictEqual({ kind: 'changed' });
      const ended = await find(order);
      expect(ended.lease?.endsAtMs).toBeLessThanOrEqual(lease?.endsAtMs ?? 0);
      expect(await end(order, attemptId)).toStrictEqual({ kind: 'conflict' });
      expect(await start(order, attemptId)).toBe('payment_attempt_ended');
      expect(await store.startPayment(ended, attemptOf(order, attemptId), 900, timeoutMs)).toEqual({
        kind: 'conflict',
      });
    }
    const ended = await find(order);
    expect(ended.endedAttempts).toStrictEqual([attemptOf(order, 'a-1'), attemptOf(order, 'a-2')]);
    expect(await start(order, 'a-3')).toBe('changed');
    // The lease was read before the attempt started.
    expect(await store.endPayment(ended, attemptOf(order, 'a-3'), timeoutMs)).toStrictEqual({ kind: 'conflict' });
    expect(await act(order, paymentOf(order, 'p-1'))).toBe('changed');
    expect((await find(order)).endedAttempts).toStrictEqual([]);
  });

  it('an order past its expiry expires only when its lease ends', async () => {
    const merchantId = await newMerchant();
    let order: Order;
    let lifetimeMs = 500;
    // On a slow machine, the order may expire before it is claimed.
    do {
      lifetimeMs *= 2;
      order = await created(orderExpiringIn(merchantId, lifetimeMs, { order_id: `leased-${lifetimeMs}` }));
    } while ((await start(order, 'a-1')) === 'order_expired');
    const isListedAs = async (status: OrderStatus) => {
      const page = await opened().store.list(merchantId, { status, limit: 100 }, timeoutMs);
      return page.kind === 'found' && page.orders.some(({ orderToken }) => orderToken === order.orderToken);
    };
    await expect.poll(() => Date.now(), { timeout: timeoutMs }).toBeGreaterThan((order.expiresAtMs ?? 0) + 1_000);

    expect((await find(order)).orderStatus).toBe('UN_PAID');
    expect([await isListedAs('UN_PAID'), await isListedAs('EXPIRED')]).toEqual([true, false]);
    expect(await start(order, 'a-1', 1_800)).toBe('changed');
    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'changed' });
    expect([await isListedAs('UN_PAID'), await isListedAs('EXPIRED')]).toEqual([false, true]);
    const expired = await find(order);
    expect(expired.orderStatus).toBe('EXPIRED');
    expect(await start(order, 'a-1')).toBe('order_expired');
    const endsAtMs = expired.lease?.endsAtMs ?? 0;
    expect(await act(order, paymentOf(order, 'p-1', endsAtMs))).toBe('order_expired');
    expect(await act(order, paymentOf(order, 'p-2', endsAtMs - 1))).toBe('changed');
    const id = order.fields.order_id;
    const events = (await eventsOf(order)).filter((event) => event.endsWith(id));
    expect(events).toStrictEqual([`order.expired ${id}`, `order.payment_refused ${id}`, `order.paid ${id}`]);
  });

  it('expireNow expires an order unless an attempt holds it, and sets its expiry to the current time', async () => {
    const merchantId = await newMerchant();
    const { store } = opened();
    for (const [order_id, lifetimeMs] of [
      ['without an expiry', null],
      ['with an expiry', hourMs],
    ] as const) {
      const expiresAtMs = lifetimeMs === null ? null : Date.now() + lifetimeMs;
      const order = await created({ ...sampleOrder(merchantId, { order_id }), expiresAtMs });
      expect(await start(order, 'a-1')).toBe('changed');
      expect(await store.expireNow(order, timeoutMs)).toStrictEqual({ kind: 'conflict' });
      expect(await end(order, 'a-1')).toStrictEqual({ kind: 'changed' });
      expect(await store.expireNow(order, timeoutMs)).toStrictEqual({ kind: 'changed' });
      expect(await store.expireNow(order, timeoutMs)).toStrictEqual({ kind: 'conflict' });
      const expired = await find(order);
      expect(expired.orderStatus).toBe('EXPIRED');
      expect(Math.abs((expired.expiresAtMs ?? 0) - Date.now())).toBeLessThan(hourMs / 2);
    }
    await expectEvents(sampleOrder(merchantId), ['order.expired without an expiry', 'order.expired with an expiry']);
  });

  it('the date of a payment is stored with the payment that paid the order or was refused', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const onDate = (paymentId: string, changes = {}) => {
      const { kind, payment } = paymentOf(order, paymentId);
      return { kind, payment: { ...payment, paidOn: '2026-11-20', ...changes } };
    };
    expect(await act(order, onDate('p-1', { currency: 'JPY' }))).toBe('payment_mismatch');
    expect(await act(order, onDate('p-2'))).toBe('changed');
    for (const [paymentId, storedPaidOn] of [
      ['p-1', '2026-11-20'],
      ['p-2', '2026-11-20'],
      ['p-3', null],
    ] as const) {
      const key = { checkoutId: attemptOf(order, '').checkoutId, paymentId };
      expect(await opened().store.findForPayment(order.orderToken, key, timeoutMs)).toMatchObject({ storedPaidOn });
    }
  });

  it('a payment that the merchant recorded waits for a lease that began after the read, and keeps its note', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const { store } = opened();
    const key = { checkoutId: order.merchantId, paymentId: 'p-1' };
    const payment = { ...key, paidAtMs: order.createdAtMs, isKnown: false, note: 'Cash, "at the counter"' };
    const decided = decideManualPayment(order, payment, sampleNowMs);
    if (!decided.ok || decided.value.kind !== 'change') throw new Error('the payment was not accepted');
    const { change } = decided.value;
    expect(await start(order, 'a-1')).toBe('changed');
    expect(await store.change(change, timeoutMs)).toStrictEqual({ kind: 'conflict' });
    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'changed' });
    expect(await store.change(change, timeoutMs)).toStrictEqual({ kind: 'changed' });
    expect(await store.findForPayment(order.orderToken, key, timeoutMs)).toMatchObject({
      order: { orderStatus: 'PAID', payment: { ...key, paidAtMs: order.createdAtMs } },
      isKnown: true,
      storedNote: 'Cash, "at the counter"',
    });
  });

  it('a payment ends the lease of any attempt', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    expect(await start(order, 'a-1')).toBe('changed');
    expect(await act(order, paymentOf(order, 'p-1'))).toBe('changed');
    expect(await find(order)).toMatchObject({ orderStatus: 'PAID', lease: null });
    expect(await end(order, 'a-1')).toStrictEqual({ kind: 'conflict' });
  });

  it('startPayment lets one of 50 concurrent attempts claim an order', async () => {
    const order = await created(sampleOrder(await newMerchant()));
    const outcomes = await Promise.all(Array.from({ length: 50 }, (_, call) => start(order, `a-${call}`)));

    expect(outcomes.filter((outcome) => outcome === 'changed')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'payment_in_progress')).toHaveLength(49);
    expect((await find(order)).lease?.attemptId).toBe(`a-${outcomes.indexOf('changed')}`);
  });

  it('with concurrent attempts, cancellations and payments, no order is cancelled during a lease or paid twice', async () => {
    const merchantId = await newMerchant();
    const orders = await Promise.all(
      Array.from({ length: 20 }, (_, index) => created(sampleOrder(merchantId, { order_id: `concurrent-${index}` }))),
    );
    await Promise.all(
      orders.map(async (order, index) => {
        const outcomes = await Promise.all([
          start(order, 'a-1'),
          act(order, { kind: 'cancel' }),
          start(order, 'a-2'),
          ...(index % 2
            ? [act(order, paymentOf(order, `p-1-${index}`)), act(order, paymentOf(order, `p-2-${index}`))]
            : []),
        ]);
        const [first, cancelled, second, ...paid] = outcomes;
        const current = await find(order);
        expect([first, second].filter((outcome) => outcome === 'changed').length).toBeLessThanOrEqual(1);
        expect(paid.filter((outcome) => outcome === 'changed').length).toBe(current.orderStatus === 'PAID' ? 1 : 0);
        expect(cancelled === 'changed').toBe(current.orderStatus === 'CANCELLED');
        // A payment is stored although another attempt holds the order; a cancellation is not.
        if (current.orderStatus !== 'UN_PAID') expect(current.lease).toBeNull();
        else expect(current.lease?.isLive).toBe(true);
        if (current.orderStatus === 'CANCELLED') expect([first, second]).not.toContain('changed');
      }),
    );
  });
}
