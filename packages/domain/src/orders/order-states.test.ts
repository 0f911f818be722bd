import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleOrder } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import type { AmountHundredths } from '../money/money.ts';
import type { Order, OrderStatus, PaymentLease, RefusedPayment } from './order.ts';
import {
  decide,
  isHeldBy,
  latePaymentMaxMs,
  mayChange,
  type OrderAction,
  paidAtToleranceMs,
  type ReportedPayment,
  startFailure,
  statusAsOf,
  transitions,
} from './order-states.ts';

const endMs = 1_795_300_000_000;
const [checkoutId, otherCheckoutId] = [2 as AccountId, 3 as AccountId];

function orderEnding(expiresAtMs: number | null): Order {
  return { ...sampleOrder(1 as AccountId), expiresAtMs };
}

const attempt = { checkoutId, attemptId: 'a-1' };

/** An order that a payment attempt has claimed until a second before it would expire. */
function leased(expiresAtMs: number | null, changes: Partial<PaymentLease> = {}): Order {
  return { ...orderEnding(expiresAtMs), lease: { ...attempt, endsAtMs: endMs - 1_000, isLive: true, ...changes } };
}

function refusedPayment(refusedAtMs: number): RefusedPayment {
  const { order_amount: amount, order_currency: currency } = orderEnding(null).fields;
  return { checkoutId, paymentId: 'p-1', paidAtMs: endMs - 1, amount, currency, code: 'order_cancelled', refusedAtMs };
}

function pay(order: Order, changes: Partial<ReportedPayment> = {}): OrderAction {
  const { order_amount: amount, order_currency: currency } = order.fields;
  const ids = { checkoutId, paymentId: 'p-1', paidAtMs: endMs - 1 };
  return { kind: 'pay', payment: { ...ids, amount, currency, isKnown: false, refused: null, ...changes } };
}

/** The kind of failure, `replayed`, or the status after the change. */
function resultOf(order: Order, action: OrderAction, nowMs: number): string {
  const asOfNow = { ...order, orderStatus: statusAsOf(order, nowMs) };
  const decided = decide(asOfNow, action, nowMs);
  if (!decided.ok) return decided.failure.kind;
  if (decided.value.kind === 'refuse') return decided.value.refusal.payment.code;
  return decided.value.kind === 'replayed' ? 'replayed' : decided.value.change.order.orderStatus;
}

const statuses: Readonly<Record<OrderStatus, Partial<Order>>> = {
  UN_PAID: {},
  PAID: { payment: { checkoutId, paymentId: 'p-1', paidAtMs: endMs - 1 } },
  EXPIRED: {},
  CANCELLED: { cancelledAtMs: 1 },
};

function orderThatIs(orderStatus: OrderStatus): Order {
  return { ...orderEnding(endMs), ...statuses[orderStatus], orderStatus };
}

describe('decide', () => {
  it.each([
    ['UN_PAID', 'pay', 'PAID'],
    ['UN_PAID', 'pay another', 'PAID'],
    ['UN_PAID', 'cancel', 'CANCELLED'],
    ['PAID', 'pay', 'replayed'],
    ['PAID', 'pay another', 'order_already_paid'],
    ['PAID', 'cancel', 'order_already_paid'],
    ['EXPIRED', 'pay', 'PAID'],
    ['EXPIRED', 'pay another', 'PAID'],
    ['EXPIRED', 'cancel', 'order_expired'],
    ['CANCELLED', 'pay', 'order_cancelled'],
    ['CANCELLED', 'pay another', 'order_cancelled'],
    ['CANCELLED', 'cancel', 'replayed'],
  ] as const)('%s: %s results in %s', (status, what, result) => {
    const order = orderThatIs(status);
    const action: OrderAction =
      what === 'cancel' ? { kind: 'cancel' } : pay(order, what === 'pay' ? {} : { paymentId: 'p-2' });
    expect(resultOf(order, action, endMs - 10)).toBe(result);
  });

  it.each([
    ['paid and reported before the end', -2, -1, 'PAID'],
    ['paid before the end, reported at it', -1, 0, 'PAID'],
    ['paid before the end, reported 24 hours after it', -1, latePaymentMaxMs, 'PAID'],
    ['paid before the end, reported later', -1, latePaymentMaxMs + 1, 'order_expired'],
    ['paid at the end', 0, 1, 'order_expired'],
    ['paid at the end, reported before it', 0, -1, 'order_expired'],
    ['paid after the end', 1, 2, 'order_expired'],
  ])('a payment that was %s', (_, paidAfterMs, reportedAfterMs, result) => {
    const order = orderEnding(endMs);
    expect(resultOf(order, pay(order, { paidAtMs: endMs + paidAfterMs }), endMs + reportedAfterMs)).toBe(result);
  });

  it('an order without an expiry can be paid at any time', () => {
    const order = orderEnding(null);
    const nowMs = 253_402_300_799_999;
    expect(resultOf(order, pay(order, { paidAtMs: nowMs }), nowMs)).toBe('PAID');
  });

  const otherAmount = { amount: (orderEnding(null).fields.order_amount + 1n) as AmountHundredths };

  it.each<[string, Partial<ReportedPayment>]>([
    ['another amount', otherAmount],
    ['another currency', { currency: 'USD' }],
  ])('a payment of %s is a mismatch, unless the status says more', (_, changes) => {
    const results = (Object.keys(statuses) as OrderStatus[]).map((status) => {
      const order = orderThatIs(status);
      return resultOf(order, pay(order, { paymentId: 'p-2', ...changes }), endMs - 10);
    });
    expect(results).toStrictEqual(['payment_mismatch', 'order_already_paid', 'payment_mismatch', 'order_cancelled']);
    const late = orderEnding(endMs);
    expect(resultOf(late, pay(late, { paidAtMs: endMs, ...changes }), endMs + 1)).toBe('order_expired');
  });

  it.each<[string, Partial<ReportedPayment>, string]>([
    ['in every field', {}, 'replayed'],
    ['but for the amount', otherAmount, 'payment_id_conflict'],
    ['but for the currency', { currency: 'USD' }, 'payment_id_conflict'],
    ['but for the time', { paidAtMs: endMs - 2 }, 'payment_id_conflict'],
    ['but for a time that is out of range', { paidAtMs: 1 }, 'payment_id_conflict'],
    ['but for the checkout system', { checkoutId: otherCheckoutId, isKnown: false }, 'order_already_paid'],
    ['but for the checkout system, whose payment_id is known', { checkoutId: otherCheckoutId }, 'payment_id_conflict'],
  ])('a payment that equals the one that paid the order %s: %s', (_, changes, result) => {
    const order = orderThatIs('PAID');
    expect(resultOf(order, pay(order, { isKnown: true, ...changes }), endMs - 10)).toBe(result);
  });

  it.each<[string, Partial<ReportedPayment>, string]>([
    ['in every field', {}, 'order_cancelled'],
    ['but for the amount', otherAmount, 'payment_id_conflict'],
    ['but for the currency', { currency: 'USD' }, 'payment_id_conflict'],
    ['but for the time', { paidAtMs: endMs - 2 }, 'payment_id_conflict'],
  ])('a payment that equals a refused one %s: %s, whatever the status is', (_, changes, result) => {
    const refused = refusedPayment(endMs);
    for (const status of ['UN_PAID', 'EXPIRED', 'CANCELLED'] as const) {
      const order = orderThatIs(status);
      const decided = decide(order, pay(order, { isKnown: true, refused, ...changes }), endMs - 10);
      expect(decided).toMatchObject({ ok: false, failure: { kind: result } });
    }
  });

  it('a refusal has the payment as it was reported, and the order as it was', () => {
    const order = orderThatIs('CANCELLED');
    const { refusedAtMs, ...payment } = refusedPayment(endMs);
    expect(decide(order, pay(order), endMs - 10)).toStrictEqual({
      ok: true,
      value: { kind: 'refuse', refusal: { order, payment } },
    });
  });

  it('a payment that has paid another order is a conflict in every status', () => {
    for (const status of Object.keys(statuses) as OrderStatus[]) {
      const order = orderThatIs(status);
      const other = pay(order, { paymentId: 'p-2', isKnown: true, paidAtMs: 1, currency: 'USD' });
      expect(resultOf(order, other, endMs - 10)).toBe('payment_id_conflict');
    }
  });

  it('a simulated payment differs from one that a checkout system reports with the same payment_id', () => {
    const order = { ...orderThatIs('PAID'), payment: { checkoutId: null, paymentId: 'p-1', paidAtMs: endMs - 1 } };
    expect(resultOf(order, pay(order), endMs - 10)).toBe('order_already_paid');
  });

  it('paid_at lies between the creation of the order and now, give or take 5 minutes', () => {
    const nowMs = endMs - 10;
    for (const status of Object.keys(statuses) as OrderStatus[]) {
      const order = orderThatIs(status);
      const at = (paidAtMs: number) => resultOf(order, pay(order, { paymentId: 'p-2', paidAtMs }), nowMs);
      const [earliestMs, latestMs] = [order.createdAtMs - paidAtToleranceMs, nowMs + paidAtToleranceMs];
      expect([at(earliestMs), at(latestMs)]).not.toContain('invalid_request');
      expect([at(earliestMs - 1), at(latestMs + 1)]).toStrictEqual(['invalid_request', 'invalid_request']);
    }
    const order = orderEnding(null);
    expect(decide(order, pay(order, { paidAtMs: nowMs + paidAtToleranceMs + 1 }), nowMs)).toMatchObject({
      failure: { errors: [{ field: 'paid_at', code: 'out_of_range', message: expect.stringContaining('5 minutes') }] },
    });
  });

  it('changes only the status of the order and the members of that status', () => {
    const order = orderEnding(endMs);
    const paid = decide(order, pay(order), endMs - 10);
    const cancelled = decide(order, { kind: 'cancel' }, endMs - 10);
    const change = { transition: transitions.pay, order: { ...order, ...statuses.PAID, orderStatus: 'PAID' } };
    expect(paid).toStrictEqual({ ok: true, value: { kind: 'change', change } });
    expect(cancelled).toMatchObject({
      value: {
        change: { transition: transitions.cancel, order: { orderStatus: 'CANCELLED', cancelledAtMs: endMs - 10 } },
      },
    });
  });
});

describe('a lease', () => {
  const another = { checkoutId, attemptId: 'a-2' };
  const elsewhere = { ...attempt, checkoutId: otherCheckoutId };

  it('lets only its own attempt start, until it ends', () => {
    const inProgress = { kind: 'payment_in_progress', retryAfterMs: 4_000 };
    const start = (order: Order, by = attempt) => startFailure(order, by, endMs - 5_000);
    expect(start(orderEnding(endMs))).toBeUndefined();
    expect([start(leased(endMs)), start(leased(endMs), another), start(leased(endMs), elsewhere)]).toEqual([
      undefined,
      inProgress,
      inProgress,
    ]);
    expect(start(leased(endMs, { isLive: false }), another)).toBeUndefined();
    expect([isHeldBy(leased(null).lease, attempt), isHeldBy(leased(null, { isLive: false }).lease, attempt)]).toEqual([
      true,
      false,
    ]);
  });

  it('can be taken of an unpaid order only', () => {
    const failures = (Object.keys(statuses) as OrderStatus[]).map(
      (status) => startFailure(orderThatIs(status), attempt, endMs - 10)?.kind,
    );
    expect(failures).toEqual([undefined, 'order_already_paid', 'order_expired', 'order_cancelled']);
  });

  it('delays a cancellation by at least a second, for all clocks', () => {
    const cancelled = (order: Order, nowMs: number) => decide(order, { kind: 'cancel' }, nowMs);
    expect(cancelled(leased(endMs), endMs - 5_000)).toMatchObject({ failure: { retryAfterMs: 4_000 } });
    expect(cancelled(leased(endMs), endMs + 5_000)).toMatchObject({ failure: { retryAfterMs: 1_000 } });
    expect(cancelled(leased(endMs, { isLive: false }), endMs - 5_000)).toMatchObject({
      value: { change: { order: { orderStatus: 'CANCELLED', lease: null } } },
    });
  });

  it('never delays a payment of any attempt, and ends with it', () => {
    const order = leased(endMs);
    expect(decide(order, pay(order), endMs - 10)).toMatchObject({
      value: { change: { order: { orderStatus: 'PAID', lease: null } } },
    });
  });

  it('moves the expiry that payments are judged by, if it ends later', () => {
    const order = leased(endMs, { endsAtMs: endMs + 1_000, isLive: false });
    const paidAt = (paidAtMs: number, nowMs: number) => resultOf(order, pay(order, { paidAtMs }), nowMs);
    expect([paidAt(endMs + 999, endMs + 500), paidAt(endMs + 999, endMs + 2_000)]).toEqual(['PAID', 'PAID']);
    expect([paidAt(endMs + 1_000, endMs + 500), paidAt(endMs + 1_000, endMs + 2_000)]).toEqual([
      'order_expired',
      'order_expired',
    ]);
  });
});

describe('every sequence of actions', () => {
  const action = fc.oneof(
    fc.record({ kind: fc.constant('cancel' as const) }),
    fc.record({
      kind: fc.constant('pay' as const),
      paymentId: fc.constantFrom('p-1', 'p-2'),
      paidAfterMs: fc.integer({ min: -3, max: 3 }),
      isExact: fc.boolean(),
    }),
  );
  const step = fc.record({ action, passMs: fc.oneof(fc.integer({ min: 0, max: 3 }), fc.constant(latePaymentMaxMs)) });

  it('follows the table, and final states stay', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 12 }), (hasEnd, steps) => {
        let order = orderEnding(hasEnd ? endMs : null);
        let nowMs = endMs - 5;
        for (const { action, passMs } of steps) {
          nowMs += passMs;
          const asOfNow = { ...order, orderStatus: statusAsOf(order, nowMs) };
          if (asOfNow.orderStatus !== order.orderStatus) {
            expect(transitions.expire).toMatchObject({ from: order.orderStatus, to: asOfNow.orderStatus });
          }
          const wanted: OrderAction =
            action.kind === 'cancel'
              ? action
              : pay(order, {
                  paymentId: action.paymentId,
                  paidAtMs: endMs + action.paidAfterMs,
                  ...(action.isExact ? {} : { currency: 'USD' }),
                });
          const decided = decide(asOfNow, wanted, nowMs);
          if (!decided.ok || decided.value.kind !== 'change') continue;
          const { transition, order: changed } = decided.value.change;
          expect(Object.values(transitions)).toContain(transition);
          const { orderStatus: from } = asOfNow;
          expect(transition).toMatchObject({ from, to: changed.orderStatus, action: wanted.kind });
          expect(changed.payment === null).toBe(changed.orderStatus !== 'PAID');
          expect(changed.cancelledAtMs === null).toBe(changed.orderStatus !== 'CANCELLED');
          order = changed;
        }
      }),
    );
  });

  it('ends: no transition starts at PAID or CANCELLED, and none ends at UN_PAID', () => {
    for (const { from, to } of Object.values(transitions)) {
      expect(['UN_PAID', 'EXPIRED']).toContain(from);
      expect(to).not.toBe('UN_PAID');
    }
  });
});

describe('statusAsOf', () => {
  it('may change while it is unpaid, and once it has expired as long as a payment in time can be reported', () => {
    const at = (orderStatus: OrderStatus, nowMs: number) => mayChange({ ...orderEnding(endMs), orderStatus }, nowMs);
    const lastMs = endMs + latePaymentMaxMs;
    expect([at('UN_PAID', endMs), at('EXPIRED', endMs), at('EXPIRED', lastMs - 1)]).toEqual([true, true, true]);
    expect([at('EXPIRED', lastMs), at('PAID', endMs), at('CANCELLED', endMs)]).toEqual([false, false, false]);
  });

  it('is EXPIRED from the expiry on, for an unpaid order only', () => {
    const at = (orderStatus: OrderStatus, expiresAtMs: number | null, nowMs: number) =>
      statusAsOf({ orderStatus, expiresAtMs, lease: null }, nowMs);
    expect(at('UN_PAID', endMs, endMs - 1)).toBe('UN_PAID');
    expect(at('UN_PAID', endMs, endMs)).toBe('EXPIRED');
    expect(at('UN_PAID', null, endMs)).toBe('UN_PAID');
    for (const status of ['PAID', 'EXPIRED', 'CANCELLED'] as const) expect(at(status, endMs, endMs)).toBe(status);
  });

  it('is UN_PAID until the lease ends, if that is later than the expiry', () => {
    const at = (leaseEndsAtMs: number, nowMs: number) =>
      statusAsOf({ ...leased(endMs, { endsAtMs: leaseEndsAtMs }), orderStatus: 'UN_PAID' }, nowMs);
    expect([at(endMs + 5, endMs + 4), at(endMs + 5, endMs + 5)]).toEqual(['UN_PAID', 'EXPIRED']);
    expect([at(endMs - 5, endMs - 1), at(endMs - 5, endMs)]).toEqual(['UN_PAID', 'EXPIRED']);
    expect(statusAsOf(leased(null), endMs)).toBe('UN_PAID');
  });
});
