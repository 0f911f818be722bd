import type { EventType } from '@order-gateway/domain/events';
import { formatAmount } from '@order-gateway/domain/money';
import { formatTime, type Order, type OrderPayment } from '@order-gateway/domain/orders';
import type { StoredOrder } from './model.ts';

/** Returns the checkout system of a payment, or `simulated` for a simulated payment, which has none. */
export function checkoutOf({ checkoutId }: Pick<OrderPayment, 'checkoutId'>): string {
  return String(checkoutId ?? 'simulated');
}

/** Returns the model's id of a payment attempt, which consists of its checkout system and its attempt_id. */
export function attemptIdOf({
  checkoutId,
  attemptId,
}: {
  readonly checkoutId: number | string;
  readonly attemptId: string;
}): string {
  return `${checkoutId}/${attemptId}`;
}

/** Returns the model's identity of an order: the values that never change. */
export function identityOf(shown: {
  readonly service_order_id: number;
  readonly order_token: string;
  readonly created_at: string;
}): string {
  return `${shown.service_order_id} ${shown.order_token} ${shown.created_at}`;
}

/**
 * Converts a stored order to its form in the model. `events` are the order's events, sorted by the time of storage.
 */
export function storedOrderOf(
  order: Order,
  events: readonly { readonly type: EventType; readonly createdAtMs: number }[],
  content: string,
): StoredOrder {
  const { serviceOrderId, orderToken, createdAtMs, expiresAtMs, orderStatus, payment, lease, refusedPayments } = order;
  return {
    identity: identityOf({
      service_order_id: serviceOrderId,
      order_token: orderToken,
      created_at: formatTime(createdAtMs),
    }),
    content,
    createdAtMs,
    expiresAtMs,
    status: orderStatus,
    amount: formatAmount(order.fields.order_amount),
    currency: order.fields.order_currency,
    payment: payment && { checkout: checkoutOf(payment), paymentId: payment.paymentId, paidAtMs: payment.paidAtMs },
    lease: lease && { attempt: attemptIdOf(lease), endsAtMs: lease.endsAtMs },
    refused: refusedPayments.map(({ amount, checkoutId, paymentId, currency, paidAtMs, code }) => ({
      checkout: checkoutOf({ checkoutId }),
      paymentId,
      paidAtMs,
      amount: formatAmount(amount),
      currency,
      code,
    })),
    events: events.map(({ type, createdAtMs }) => ({ type, atMs: createdAtMs })),
  };
}
