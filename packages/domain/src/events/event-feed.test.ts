import { describe, expect, it } from 'vitest';
import { sampleOrder } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import type { RefusedPayment } from '../orders/order.ts';
import type { EventType } from '../orders/order-states.ts';
import { orderAfter } from './event-feed.ts';

const endMs = 1_795_300_000_000;
const paid = {
  ...sampleOrder(1 as AccountId),
  orderStatus: 'PAID' as const,
  payment: { checkoutId: 2 as AccountId, paymentId: 'p-1', paidAtMs: endMs - 1 },
};

function refusedPayment(refusedAtMs: number): RefusedPayment {
  const { order_amount: amount, order_currency: currency } = paid.fields;
  return { ...paid.payment, amount, currency, code: 'order_cancelled', refusedAtMs };
}

describe('orderAfter', () => {
  it('shows an order at its expiry as expired, even if it was paid later', () => {
    const after = (type: EventType) => orderAfter({ type, createdAtMs: endMs, order: paid });
    expect(after('order.expired')).toStrictEqual({ ...paid, orderStatus: 'EXPIRED', payment: null });
    expect(after('order.paid')).toBe(paid);
  });

  it('shows the payments that had been refused by then', () => {
    const [first, second] = [refusedPayment(endMs), refusedPayment(endMs + 1)];
    const order = { ...paid, refusedPayments: [first, second] };
    const after = (createdAtMs: number) =>
      orderAfter({ type: 'order.payment_refused', createdAtMs, order }).refusedPayments;
    expect([after(endMs - 1), after(endMs), after(endMs + 1)]).toEqual([[], [first], [first, second]]);
  });
});
