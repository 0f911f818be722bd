import { describe, expect, it } from 'vitest';
import { sampleOrder } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import type { RefusedPayment } from '../orders/order.ts';
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
});
