import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newOrder } from '../testing/sample-orders.ts';
import type { MerchantId } from './merchant.ts';
import type { Order, OrderStatus } from './order.ts';
import {
  decide,
  latePaymentMaxMs,
  type OrderAction,
  orderAfter,
  type ReportedPayment,
  statusAsOf,
  transitions,
} from './order-states.ts';

const endMs = 1_795_300_000_000;

function orderEnding(expiresAtMs: number | null): Order {
  return { ...newOrder(1 as MerchantId), expiresAtMs };
}

function pay(order: Order, changes: Partial<ReportedPayment> = {}): OrderAction {
  const { order_amount: amount, order_currency: currency } = order.fields;
  return { kind: 'pay', payment: { paymentId: 'p-1', paidAtMs: endMs - 1, amount, currency, ...changes } };
}

/** The kind of failure, `replayed`, or the status after the change. */
function resultOf(order: Order, action: OrderAction, nowMs: number): string {
  const asOfNow = { ...order, orderStatus: statusAsOf(order.orderStatus, order.expiresAtMs, nowMs) };
  const decided = decide(asOfNow, action, nowMs);
  if (!decided.ok) return decided.failure.kind;
  return decided.value.kind === 'replayed' ? 'replayed' : decided.value.change.order.orderStatus;
}

const statuses: Readonly<Record<OrderStatus, Partial<Order>>> = {
  UN_PAID: {},
  PAID: { payment: { paymentId: 'p-1', paidAtMs: 1 } },
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

  it('an order without an end can be paid at any time', () => {
    const order = orderEnding(null);
    expect(resultOf(order, pay(order, { paidAtMs: 253_402_300_799_999 }), endMs)).toBe('PAID');
  });

  it.each<[string, Partial<ReportedPayment>]>([
    ['another amount', { amount: (orderEnding(null).fields.order_amount + 1n) as never }],
    ['an amount that no order can have', { amount: undefined }],
    ['another currency', { currency: 'USD' }],
    ['a currency in lower case', { currency: 'eur' }],
  ])('a payment of %s is a mismatch, whatever the status', (_, changes) => {
    for (const status of Object.keys(statuses) as OrderStatus[]) {
      const order = orderThatIs(status);
      expect(resultOf(order, pay(order, changes), endMs - 10)).toBe('payment_mismatch');
    }
  });

  it('changes nothing of the order but its status and what belongs to it', () => {
    const order = orderEnding(endMs);
    const { fields, ...assigned } = order;
    const paid = decide(order, pay(order), endMs - 10);
    const cancelled = decide(order, { kind: 'cancel' }, endMs - 10);
    expect(paid).toStrictEqual({
      ok: true,
      value: {
        kind: 'change',
        change: {
          transition: transitions.pay,
          order: { ...assigned, fields, orderStatus: 'PAID', payment: { paymentId: 'p-1', paidAtMs: endMs - 1 } },
        },
      },
    });
    expect(cancelled).toMatchObject({
      value: {
        change: { transition: transitions.cancel, order: { orderStatus: 'CANCELLED', cancelledAtMs: endMs - 10 } },
      },
    });
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

  it('follows the table, and what is final stays', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 12 }), (hasEnd, steps) => {
        let order = orderEnding(hasEnd ? endMs : null);
        let nowMs = endMs - 5;
        for (const { action, passMs } of steps) {
          nowMs += passMs;
          const asOfNow = { ...order, orderStatus: statusAsOf(order.orderStatus, order.expiresAtMs, nowMs) };
          if (asOfNow.orderStatus !== order.orderStatus) {
            expect([order.orderStatus, asOfNow.orderStatus]).toStrictEqual([
              transitions.expire.from,
              transitions.expire.to,
            ]);
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
          if (!decided.ok || decided.value.kind === 'replayed') continue;
          const { transition, order: changed } = decided.value.change;
          expect(Object.values(transitions)).toContain(transition);
          expect([transition.from, transition.to, transition.action]).toStrictEqual([
            asOfNow.orderStatus,
            changed.orderStatus,
            wanted.kind,
          ]);
          expect(changed.payment === null).toBe(changed.orderStatus !== 'PAID');
          expect(changed.cancelledAtMs === null).toBe(changed.orderStatus !== 'CANCELLED');
          order = changed;
        }
      }),
    );
  });

  it('ends: no transition leaves PAID or CANCELLED, and none leads back to UN_PAID', () => {
    for (const { from, to } of Object.values(transitions)) {
      expect(['UN_PAID', 'EXPIRED']).toContain(from);
      expect(to).not.toBe('UN_PAID');
    }
  });
});

describe('statusAsOf', () => {
  it('is EXPIRED from the end on, for an open order only', () => {
    expect(statusAsOf('UN_PAID', endMs, endMs - 1)).toBe('UN_PAID');
    expect(statusAsOf('UN_PAID', endMs, endMs)).toBe('EXPIRED');
    expect(statusAsOf('UN_PAID', null, endMs)).toBe('UN_PAID');
    for (const status of ['PAID', 'EXPIRED', 'CANCELLED'] as const)
      expect(statusAsOf(status, endMs, endMs)).toBe(status);
  });
});

describe('orderAfter', () => {
  it('shows an order at its expiry as expired, although it was paid later', () => {
    const paid = orderThatIs('PAID');
    expect(orderAfter('order.expired', paid)).toStrictEqual({ ...paid, orderStatus: 'EXPIRED', payment: null });
    expect(orderAfter('order.paid', paid)).toBe(paid);
  });
});
