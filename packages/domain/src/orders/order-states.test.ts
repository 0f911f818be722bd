import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sampleOrder } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import type { AmountHundredths } from '../money/money.ts';
import type { Order, OrderStatus, PaymentLease, RefusedPayment } from './order.ts';
import {
  decide,
  decideManualPayment,
  isHeldBy,
  mayChange,
  type OrderAction,
  paidAtToleranceMs,
  type ReportedPayment,
  startFailure,
  statusAsOf,
  type Transition,
  transitions,
} from './order-states.ts';

const expiryMs = 1_795_300_000_000;
const [checkoutId, otherCheckoutId] = [2 as AccountId, 3 as AccountId];

function orderExpiringAt(expiresAtMs: number | null): Order {
  return { ...sampleOrder(1 as AccountId), expiresAtMs };
}

const attempt = { checkoutId, attemptId: 'a-1' };

/** How long after its expiry an order accepts a payment that was made in time, unless the account has another limit. */
const latePaymentMaxMs = 86_400_000;

/** Returns an order that is leased to a payment attempt until a second before {@link expiryMs}. */
function leased(expiresAtMs: number | null, changes: Partial<PaymentLease> = {}): Order {
  return {
    ...orderExpiringAt(expiresAtMs),
    lease: { ...attempt, endsAtMs: expiryMs - 1_000, isLive: true, ...changes },
  };
}

function refusedPayment(refusedAtMs: number): RefusedPayment {
  const { order_amount: amount, order_currency: currency } = orderExpiringAt(null).fields;
  return {
    checkoutId,
    paymentId: 'p-1',
    paidAtMs: expiryMs - 1,
    amount,
    currency,
    code: 'order_cancelled',
    refusedAtMs,
  };
}

function pay(order: Order, changes: Partial<ReportedPayment> = {}): OrderAction {
  const { order_amount: amount, order_currency: currency } = order.fields;
  const ids = { checkoutId, paymentId: 'p-1', paidAtMs: expiryMs - 1 };
  return { kind: 'pay', payment: { ...ids, amount, currency, isKnown: false, refused: null, ...changes } };
}

/** Returns the code of the failure or of the refused payment, `replayed`, or the status after the change. */
function resultOf(order: Order, action: OrderAction, nowMs: number): string {
  const current = { ...order, orderStatus: statusAsOf(order, nowMs) };
  const decided = decide(current, action, nowMs);
  if (!decided.ok) return decided.failure.kind;
  if (decided.value.kind === 'refuse') return decided.value.refusal.payment.code;
  return decided.value.kind === 'replayed' ? 'replayed' : decided.value.change.order.orderStatus;
}

const statuses: Readonly<Record<OrderStatus, Partial<Order>>> = {
  UN_PAID: {},
  PAID: { payment: { checkoutId, paymentId: 'p-1', paidAtMs: expiryMs - 1 } },
  EXPIRED: {},
  CANCELLED: { cancelledAtMs: 1 },
};

function orderWithStatus(orderStatus: OrderStatus): Order {
  return { ...orderExpiringAt(expiryMs), ...statuses[orderStatus], orderStatus };
}

describe('decide', () => {
  it.each([
    ['UN_PAID', 'pay', 'PAID'],
    ['UN_PAID', 'pay with another payment_id', 'PAID'],
    ['UN_PAID', 'cancel', 'CANCELLED'],
    ['PAID', 'pay', 'replayed'],
    ['PAID', 'pay with another payment_id', 'order_already_paid'],
    ['PAID', 'cancel', 'order_already_paid'],
    ['EXPIRED', 'pay', 'PAID'],
    ['EXPIRED', 'pay with another payment_id', 'PAID'],
    ['EXPIRED', 'cancel', 'order_expired'],
    ['CANCELLED', 'pay', 'order_cancelled'],
    ['CANCELLED', 'pay with another payment_id', 'order_cancelled'],
    ['CANCELLED', 'cancel', 'replayed'],
  ] as const)('%s: %s results in %s', (status, actionName, result) => {
    const order = orderWithStatus(status);
    const action: OrderAction =
      actionName === 'cancel' ? { kind: 'cancel' } : pay(order, actionName === 'pay' ? {} : { paymentId: 'p-2' });
    expect(resultOf(order, action, expiryMs - 10)).toBe(result);
  });

  it.each([
    ['paid and reported before the expiry', -2, -1, 'PAID'],
    ['paid before the expiry, reported at it', -1, 0, 'PAID'],
    ['paid before the expiry, reported 24 hours after it', -1, latePaymentMaxMs, 'PAID'],
    ['paid before the expiry, reported more than 24 hours after it', -1, latePaymentMaxMs + 1, 'order_expired'],
    ['paid at the expiry', 0, 1, 'order_expired'],
    ['paid at the expiry, reported before it', 0, -1, 'order_expired'],
    ['paid after the expiry', 1, 2, 'order_expired'],
  ])('decides a payment by its time and the time of its report: %s', (_, paidAfterMs, reportedAfterMs, result) => {
    const order = orderExpiringAt(expiryMs);
    expect(resultOf(order, pay(order, { paidAtMs: expiryMs + paidAfterMs }), expiryMs + reportedAfterMs)).toBe(result);
  });

  it('an order without an expiry can be paid at any time', () => {
    const order = orderExpiringAt(null);
    const nowMs = 253_402_300_799_999;
    expect(resultOf(order, pay(order, { paidAtMs: nowMs }), nowMs)).toBe('PAID');
  });

  const otherAmount = { amount: (orderExpiringAt(null).fields.order_amount + 1n) as AmountHundredths };

  it.each<[string, Partial<ReportedPayment>]>([
    ['a different amount', otherAmount],
    ['a different currency', { currency: 'USD' }],
  ])('a payment with %s is a mismatch, unless the status of the order takes precedence', (_, changes) => {
    const results = (Object.keys(statuses) as OrderStatus[]).map((status) => {
      const order = orderWithStatus(status);
      return resultOf(order, pay(order, { paymentId: 'p-2', ...changes }), expiryMs - 10);
    });
    expect(results).toStrictEqual(['payment_mismatch', 'order_already_paid', 'payment_mismatch', 'order_cancelled']);
    const late = orderExpiringAt(expiryMs);
    expect(resultOf(late, pay(late, { paidAtMs: expiryMs, ...changes }), expiryMs + 1)).toBe('order_expired');
  });

  it.each<[string, string, Partial<ReportedPayment>]>([
    ['in every field', 'replayed', {}],
    ['except for the amount', 'payment_id_conflict', otherAmount],
    ['except for the currency', 'payment_id_conflict', { currency: 'USD' }],
    ['except for the time', 'payment_id_conflict', { paidAtMs: expiryMs - 2 }],
    ['except for a time that is out of range', 'payment_id_conflict', { paidAtMs: 1 }],
    ['except for the checkout system', 'order_already_paid', { checkoutId: otherCheckoutId, isKnown: false }],
    [
      'except for the checkout system, which has reported this payment_id before',
      'payment_id_conflict',
      { checkoutId: otherCheckoutId },
    ],
  ])('a payment that matches the payment of the order %s results in %s', (_, result, changes) => {
    const order = orderWithStatus('PAID');
    expect(resultOf(order, pay(order, { isKnown: true, ...changes }), expiryMs - 10)).toBe(result);
  });

  it.each<[string, string, Partial<ReportedPayment>]>([
    ['in every field', 'order_cancelled', {}],
    ['except for the amount', 'payment_id_conflict', otherAmount],
    ['except for the currency', 'payment_id_conflict', { currency: 'USD' }],
    ['except for the time', 'payment_id_conflict', { paidAtMs: expiryMs - 2 }],
  ])('a payment that matches a refused one %s results in %s in every status', (_, result, changes) => {
    const paymentId = 'p-2';
    const refused = { ...refusedPayment(expiryMs), paymentId };
    for (const status of Object.keys(statuses) as OrderStatus[]) {
      const order = orderWithStatus(status);
      const decided = decide(order, pay(order, { paymentId, isKnown: true, refused, ...changes }), expiryMs - 10);
      expect(decided).toMatchObject({ ok: false, failure: { kind: result } });
    }
  });

  it('a refused payment is returned as it was reported, with the unchanged order', () => {
    const order = orderWithStatus('CANCELLED');
    const { refusedAtMs, ...payment } = refusedPayment(expiryMs);
    expect(decide(order, pay(order), expiryMs - 10)).toStrictEqual({
      ok: true,
      value: { kind: 'refuse', refusal: { order, payment } },
    });
  });

  it('a payment that was reported for another order is a conflict in every status', () => {
    for (const status of Object.keys(statuses) as OrderStatus[]) {
      const order = orderWithStatus(status);
      const reportedAgain = pay(order, { paymentId: 'p-2', isKnown: true, paidAtMs: 1, currency: 'USD' });
      expect(resultOf(order, reportedAgain, expiryMs - 10)).toBe('payment_id_conflict');
    }
  });

  it('a simulated payment differs from one that a checkout system reports with the same payment_id', () => {
    const order = {
      ...orderWithStatus('PAID'),
      payment: { checkoutId: null, paymentId: 'p-1', paidAtMs: expiryMs - 1 },
    };
    expect(resultOf(order, pay(order), expiryMs - 10)).toBe('order_already_paid');
  });

  it('paid_at must be between the creation of the order and now, with a tolerance of 5 minutes', () => {
    const nowMs = expiryMs - 10;
    for (const status of Object.keys(statuses) as OrderStatus[]) {
      const order = orderWithStatus(status);
      const resultAt = (paidAtMs: number) => resultOf(order, pay(order, { paymentId: 'p-2', paidAtMs }), nowMs);
      const [earliestMs, latestMs] = [order.createdAtMs - paidAtToleranceMs, nowMs + paidAtToleranceMs];
      expect([resultAt(earliestMs), resultAt(latestMs)]).not.toContain('invalid_request');
      expect([resultAt(earliestMs - 1), resultAt(latestMs + 1)]).toStrictEqual(['invalid_request', 'invalid_request']);
    }
    const order = orderExpiringAt(null);
    expect(decide(order, pay(order, { paidAtMs: nowMs + paidAtToleranceMs + 1 }), nowMs)).toMatchObject({
      failure: { errors: [{ field: 'paid_at', code: 'out_of_range', message: expect.stringContaining('5 minutes') }] },
    });
  });

  it('changes only the status and the fields that belong to it', () => {
    const order = orderExpiringAt(expiryMs);
    const paid = decide(order, pay(order), expiryMs - 10);
    const cancelled = decide(order, { kind: 'cancel' }, expiryMs - 10);
    const changeTo = (transition: Transition, members: Partial<Order>) => ({
      ok: true,
      value: { kind: 'change', change: { transition, order: { ...order, ...members, orderStatus: transition.to } } },
    });
    expect(paid).toStrictEqual(changeTo(transitions.pay, statuses.PAID));
    expect(cancelled).toStrictEqual(changeTo(transitions.cancel, { cancelledAtMs: expiryMs - 10 }));
  });
});

describe('a lease', () => {
  const otherAttempt = { checkoutId, attemptId: 'a-2' };
  const otherSystemAttempt = { ...attempt, checkoutId: otherCheckoutId };

  it('lets only its holder start again until the lease ends', () => {
    const inProgress = { kind: 'payment_in_progress', retryAfterMs: 4_000 };
    const start = (order: Order, by: typeof attempt | null = attempt) => startFailure(order, by, expiryMs - 5_000);
    expect(start(orderExpiringAt(expiryMs))).toBeUndefined();
    expect([
      start(leased(expiryMs)),
      start(leased(expiryMs), otherAttempt),
      start(leased(expiryMs), otherSystemAttempt),
    ]).toEqual([undefined, inProgress, inProgress]);
    expect(start(leased(expiryMs, { isLive: false }), otherAttempt)).toBeUndefined();
    // A simulated payment.
    expect([start(leased(expiryMs), null), start(orderExpiringAt(expiryMs), null)]).toEqual([inProgress, undefined]);
    expect([isHeldBy(leased(null).lease, attempt), isHeldBy(leased(null, { isLive: false }).lease, attempt)]).toEqual([
      true,
      false,
    ]);
  });

  it('can be acquired only for an unpaid order', () => {
    const failures = (Object.keys(statuses) as OrderStatus[]).map(
      (status) => startFailure(orderWithStatus(status), attempt, expiryMs - 10)?.kind,
    );
    expect(failures).toEqual([undefined, 'order_already_paid', 'order_expired', 'order_cancelled']);
  });

  it('rejects a cancellation until the lease ends, with a delay of at least a second because clocks differ', () => {
    const cancelled = (order: Order, nowMs: number) => decide(order, { kind: 'cancel' }, nowMs);
    expect(cancelled(leased(expiryMs), expiryMs - 5_000)).toMatchObject({ failure: { retryAfterMs: 4_000 } });
    expect(cancelled(leased(expiryMs), expiryMs + 5_000)).toMatchObject({ failure: { retryAfterMs: 1_000 } });
    expect(cancelled(leased(expiryMs, { isLive: false }), expiryMs - 5_000)).toMatchObject({
      value: { change: { order: { orderStatus: 'CANCELLED', lease: null } } },
    });
  });

  it('never delays a payment, and ends when the order is paid', () => {
    const order = leased(expiryMs);
    expect(decide(order, pay(order), expiryMs - 10)).toMatchObject({
      value: { change: { order: { orderStatus: 'PAID', lease: null } } },
    });
  });

  it('postpones the expiry against which payments are checked, if the lease ends later', () => {
    const order = leased(expiryMs, { endsAtMs: expiryMs + 1_000, isLive: false });
    const paidAt = (paidAtMs: number, nowMs: number) => resultOf(order, pay(order, { paidAtMs }), nowMs);
    expect([paidAt(expiryMs + 999, expiryMs + 500), paidAt(expiryMs + 999, expiryMs + 2_000)]).toEqual([
      'PAID',
      'PAID',
    ]);
    expect([paidAt(expiryMs + 1_000, expiryMs + 500), paidAt(expiryMs + 1_000, expiryMs + 2_000)]).toEqual([
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

  it('follows the table of transitions, and final states do not change', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 12 }), (hasExpiry, steps) => {
        let order = orderExpiringAt(hasExpiry ? expiryMs : null);
        let nowMs = expiryMs - 5;
        for (const { action, passMs } of steps) {
          nowMs += passMs;
          const current = { ...order, orderStatus: statusAsOf(order, nowMs) };
          if (current.orderStatus !== order.orderStatus) {
            expect(transitions.expire).toMatchObject({ from: order.orderStatus, to: current.orderStatus });
          }
          const orderAction: OrderAction =
            action.kind === 'cancel'
              ? action
              : pay(order, {
                  paymentId: action.paymentId,
                  paidAtMs: expiryMs + action.paidAfterMs,
                  ...(action.isExact ? {} : { currency: 'USD' }),
                });
          const decided = decide(current, orderAction, nowMs);
          if (!decided.ok || decided.value.kind !== 'change') continue;
          const { transition, order: changed } = decided.value.change;
          expect(Object.values(transitions)).toContain(transition);
          const { orderStatus: from } = current;
          expect(transition).toMatchObject({ from, to: changed.orderStatus });
          expect(transition === transitions.cancel).toBe(orderAction.kind === 'cancel');
          expect(changed.payment === null).toBe(changed.orderStatus !== 'PAID');
          expect(changed.cancelledAtMs === null).toBe(changed.orderStatus !== 'CANCELLED');
          order = changed;
        }
      }),
    );
  });

  it('no transition starts at PAID or CANCELLED, and none ends at UN_PAID', () => {
    for (const { from, to } of Object.values(transitions)) {
      expect(['UN_PAID', 'EXPIRED']).toContain(from);
      expect(to).not.toBe('UN_PAID');
    }
  });
});

describe('mayChange', () => {
  it('allows changes while the order is unpaid, and after its expiry as long as a payment made in time can be reported', () => {
    const mayChangeAt = (orderStatus: OrderStatus, nowMs: number) =>
      mayChange({ ...orderExpiringAt(expiryMs), orderStatus }, nowMs);
    const lastMs = expiryMs + 30 * latePaymentMaxMs;
    expect([
      mayChangeAt('UN_PAID', expiryMs),
      mayChangeAt('EXPIRED', expiryMs),
      mayChangeAt('EXPIRED', lastMs),
    ]).toEqual([true, true, true]);
    expect([
      mayChangeAt('EXPIRED', lastMs + 1),
      mayChangeAt('PAID', expiryMs),
      mayChangeAt('CANCELLED', expiryMs),
    ]).toEqual([false, false, false]);
  });
});

describe('statusAsOf', () => {
  it('is EXPIRED from the expiry on, but only for an unpaid order', () => {
    const statusAt = (orderStatus: OrderStatus, expiresAtMs: number | null, nowMs: number) =>
      statusAsOf({ orderStatus, expiresAtMs, lease: null }, nowMs);
    expect(statusAt('UN_PAID', expiryMs, expiryMs - 1)).toBe('UN_PAID');
    expect(statusAt('UN_PAID', expiryMs, expiryMs)).toBe('EXPIRED');
    expect(statusAt('UN_PAID', null, expiryMs)).toBe('UN_PAID');
    for (const status of ['PAID', 'EXPIRED', 'CANCELLED'] as const)
      expect(statusAt(status, expiryMs, expiryMs)).toBe(status);
  });

  it('is UN_PAID until the lease ends, if that is later than the expiry', () => {
    const statusAt = (leaseEndsAtMs: number, nowMs: number) =>
      statusAsOf({ ...leased(expiryMs, { endsAtMs: leaseEndsAtMs }), orderStatus: 'UN_PAID' }, nowMs);
    expect([statusAt(expiryMs + 5, expiryMs + 4), statusAt(expiryMs + 5, expiryMs + 5)]).toEqual([
      'UN_PAID',
      'EXPIRED',
    ]);
    expect([statusAt(expiryMs - 5, expiryMs - 1), statusAt(expiryMs - 5, expiryMs)]).toEqual(['UN_PAID', 'EXPIRED']);
    expect(statusAsOf(leased(null), expiryMs)).toBe('UN_PAID');
  });
});

describe('a payment with a date instead of a time', () => {
  const dayMs = 86_400_000;
  const createdAtMs = Date.UTC(2026, 10, 20, 21);
  const order = { ...orderExpiringAt(createdAtMs + 2 * dayMs), createdAtMs };
  const onDate = (day: number, changes: Partial<ReportedPayment> = {}) =>
    pay(order, { paidAtMs: Date.UTC(2026, 10, day), paidOn: `2026-11-${day}`, ...changes });

  it.each([
    ['the day before the creation', 19, createdAtMs + 1, createdAtMs],
    ['the day of the creation', 20, createdAtMs + 1, createdAtMs],
    ['a later day', 21, createdAtMs + dayMs, Date.UTC(2026, 10, 21)],
    ['a day that has not begun', 24, createdAtMs + 1, createdAtMs + 1],
  ])('has the time of its beginning, but not before the creation or after now: %s', (_, day, nowMs, paidAtMs) => {
    expect(decide(order, onDate(day), nowMs)).toMatchObject({
      value: { change: { paidOn: `2026-11-${day}`, order: { payment: { paidAtMs } } } },
    });
  });

  it.each([18, 25])('is out of range on the %ith', (day) => {
    expect(decide(order, onDate(day), createdAtMs + 1)).toMatchObject({
      failure: { kind: 'invalid_request', errors: [{ field: 'paid_on', code: 'out_of_range' }] },
    });
  });

  it('is the same payment only with the same date', () => {
    const paid: Order = {
      ...order,
      orderStatus: 'PAID',
      payment: { checkoutId, paymentId: 'p-1', paidAtMs: createdAtMs },
    };
    const again = (action: OrderAction) => resultOf(paid, action, createdAtMs + dayMs);
    const storedPaidOn = '2026-11-20';
    expect(again(onDate(20, { storedPaidOn }))).toBe('replayed');
    expect(again(onDate(19, { storedPaidOn }))).toBe('payment_id_conflict');
    expect(again(onDate(20))).toBe('payment_id_conflict');
    expect(again(pay(order, { paidAtMs: createdAtMs, storedPaidOn }))).toBe('payment_id_conflict');
  });

  it('can be reported for as many days after the expiry as the account may', () => {
    const expired: Order = { ...order, orderStatus: 'EXPIRED' };
    const lastMs = (order.expiresAtMs ?? 0) + 7 * dayMs;
    expect(resultOf(expired, onDate(21, { lateDays: 7 }), lastMs)).toBe('PAID');
    expect(resultOf(expired, onDate(21, { lateDays: 7 }), lastMs + 1)).toBe('order_expired');
    expect(resultOf(expired, onDate(21), lastMs)).toBe('order_expired');
  });
});

describe('a payment that the merchant records', () => {
  const dayMs = 86_400_000;
  const order = orderExpiringAt(expiryMs);
  const manual = { checkoutId: order.merchantId, paymentId: 'p-1', paidAtMs: expiryMs - 1, isKnown: false };
  const recorded = (found: Order, nowMs: number, changes = {}) =>
    decideManualPayment(found, { ...manual, ...changes }, nowMs);

  it('pays the full amount, and keeps the note unless the order is erased', () => {
    expect(recorded(order, expiryMs - 1, { note: 'Cash' })).toMatchObject({
      value: {
        kind: 'change',
        change: { note: 'Cash', order: { orderStatus: 'PAID', payment: { paymentId: 'p-1' } } },
      },
    });
    const erased = { ...order, erasedDigest: new Uint8Array(32) };
    expect(recorded(erased, expiryMs - 1, { note: 'Cash' })).toMatchObject({ value: { change: { note: undefined } } });
  });

  it('waits while a payment is in progress, unless it was recorded before', () => {
    expect(recorded(leased(expiryMs), expiryMs - 5_000)).toMatchObject({ failure: { kind: 'payment_in_progress' } });
    const { checkoutId, paymentId, paidAtMs } = manual;
    const paid: Order = { ...order, orderStatus: 'PAID', payment: { checkoutId, paymentId, paidAtMs } };
    expect(recorded(paid, expiryMs - 5_000, { isKnown: true })).toStrictEqual({
      ok: true,
      value: { kind: 'replayed' },
    });
  });

  it.each([
    ['CANCELLED', 'order_cancelled'],
    ['PAID', 'order_already_paid'],
  ] as const)('is an error and not a refused payment if the order is %s', (status, kind) => {
    expect(recorded(orderWithStatus(status), expiryMs - 1, { paymentId: 'p-2' })).toStrictEqual({
      ok: false,
      failure: { kind },
    });
  });

  it('can be recorded for 30 days after the expiry, if the customer paid before it', () => {
    const expired: Order = { ...order, orderStatus: 'EXPIRED' };
    const lastMs = expiryMs + 30 * dayMs;
    expect(recorded(expired, lastMs)).toMatchObject({ value: { change: { order: { orderStatus: 'PAID' } } } });
    for (const [nowMs, paidAtMs] of [
      [lastMs + 1, expiryMs - 1],
      [lastMs, expiryMs],
    ] as const) {
      expect(recorded(expired, nowMs, { paidAtMs })).toMatchObject({ failure: { kind: 'order_expired' } });
    }
  });
});
