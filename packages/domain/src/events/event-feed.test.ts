import { describe, expect, it } from 'vitest';
import { sampleOrder } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import type { Order, RefusedPayment } from '../orders/order.ts';
import type { EventType } from '../orders/order-states.ts';
import { orderAfter } from './event-feed.ts';

const eventMs = 1_795_300_000_000;
const paid = {
  ...sampleOrder(1 as AccountId),
  orderStatus: 'PAID' as const,
  payment: { checkoutId: 2 as AccountId, paymentId: 'p-1', paidAtMs: eventMs - 1 },
};

function refusedPayment(refusedAtMs: number): RefusedPayment {
  const { order_amount: amount, order_currency: currency } = paid.fields;
  return { ...paid.payment, amount, currency, code: 'order_cancelled', refusedAtMs };
}

describe('orderAfter', () => {
  it('shows an order at its expiry as expired, even if it was paid later', () => {
    const after = (type: EventType) => orderAfter({ type, createdAtMs: eventMs, order: paid });
    expect(after('order.expired')).toStrictEqual({ ...paid, orderStatus: 'EXPIRED', payment: null });
    expect(after('order.paid')).toBe(paid);
  });

  it('shows only the payments that had been refused by the time of the event', () => {
    const [first, second] = [refusedPayment(eventMs), refusedPayment(eventMs + 1)];
    const order = { ...paid, refusedPayments: [first, second] };
    const after = (createdAtMs: number) =>
      orderAfter({ type: 'order.payment_refused', createdAtMs, order }).refusedPayments;
    expect([after(eventMs - 1), after(eventMs), after(eventMs + 1)]).toEqual([[], [first], [first, second]]);
  });

  describe('shows the status after a refused payment, even if the order has changed since', () => {
    const order = { ...sampleOrder(1 as AccountId), expiresAtMs: eventMs + 1 };
    const changed = {
      paid: { ...order, orderStatus: 'PAID' as const, payment: paid.payment },
      cancelled: { ...order, orderStatus: 'CANCELLED' as const, cancelledAtMs: eventMs + 1 },
      expired: { ...order, orderStatus: 'EXPIRED' as const },
    };
    const after = (code: RefusedPayment['code'], changedOrder: Order) => {
      const refusedPayments = [{ ...refusedPayment(eventMs), code }];
      const { orderStatus, payment, cancelledAtMs } = orderAfter({
        type: 'order.payment_refused',
        createdAtMs: eventMs,
        order: { ...changedOrder, refusedPayments },
      });
      return { orderStatus, payment, cancelledAtMs };
    };

    it.each(Object.values(changed))('as unpaid, if it was $orderStatus later', (changedOrder) => {
      expect(after('payment_mismatch', changedOrder)).toEqual({
        orderStatus: 'UN_PAID',
        payment: null,
        cancelledAtMs: null,
      });
    });

    it.each(['payment_mismatch', 'order_expired'] as const)('as expired, if it was paid later (%s)', (code) => {
      const late = { ...changed.paid, expiresAtMs: eventMs };
      expect(after(code, late)).toEqual({ orderStatus: 'EXPIRED', payment: null, cancelledAtMs: null });
    });

    it('as paid or cancelled, which is final', () => {
      expect(after('order_already_paid', changed.paid)).toMatchObject({ orderStatus: 'PAID', payment: paid.payment });
      expect(after('order_cancelled', changed.cancelled)).toMatchObject({ orderStatus: 'CANCELLED' });
    });
  });
});
