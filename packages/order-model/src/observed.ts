import type { EventType } from '@order-gateway/domain/events';
import { formatAmount } from '@order-gateway/domain/money';
import {
  type Dispute,
  formatTime,
  type Order,
  type OrderPayment,
  type Refund,
  refundedAtOf,
} from '@order-gateway/domain/orders';
import type { StoredOrder } from './model.ts';
import { type Reversal, reversalText, type StoredReversal } from './reversals.ts';

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

/** A refund or dispute as the API shows it. */
export interface ShownReversal {
  readonly refund_id?: string | undefined;
  readonly dispute_id?: string | undefined;
  readonly payment_id: string;
  readonly amount: number;
  readonly currency: string;
  readonly status: Reversal['statuses'][number];
  readonly reason?: string | undefined;
}

/** Describes a refund or dispute that the API shows, as the model does. */
export function shownReversalText(shown: ShownReversal): string {
  const { refund_id, dispute_id = '', payment_id, amount, currency, status, reason = null } = shown;
  const id = refund_id ?? dispute_id;
  const item = { kind: refund_id === undefined ? 'dispute' : 'refund', id, paymentId: payment_id } as const;
  // A response shows neither the account that chose the id nor the earlier statuses.
  const hidden = { reporter: '', checkout: '', providerId: null, refundedAtMs: null };
  return reversalText({ ...item, ...hidden, amount: amount.toFixed(2), currency, reason, statuses: [status] });
}

/** Describes the refunds and disputes of an order that the API shows, in alphabetical order. */
export function shownReversals(order: {
  readonly refunds?: readonly ShownReversal[] | undefined;
  readonly disputes?: readonly ShownReversal[] | undefined;
}): string[] {
  return [...(order.refunds ?? []), ...(order.disputes ?? [])].map(shownReversalText).sort();
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
  const { refunds, disputes } = order.reversals;
  return {
    identity: identityOf({
      service_order_id: serviceOrderId,
      order_token: orderToken,
      created_at: formatTime(createdAtMs),
    }),
    merchant: String(order.merchantId),
    content,
    createdAtMs,
    expiresAtMs,
    status: orderStatus,
    amount: formatAmount(order.fields.order_amount),
    currency: order.fields.order_currency,
    payment: payment && { checkout: checkoutOf(payment), paymentId: payment.paymentId, paidAtMs: payment.paidAtMs },
    lease: lease && { attempt: attemptIdOf(lease), endsAtMs: lease.endsAtMs },
    refused: refusedPayments.map((refused) => {
      const { amount, paymentId, currency, paidAtMs, code } = refused;
      const refundedAtMs = refundedAtOf(order, refused);
      return {
        checkout: checkoutOf(refused),
        paymentId,
        paidAtMs,
        amount: formatAmount(amount),
        currency,
        code,
        refundedAtMs,
      };
    }),
    reversals: [
      ...refunds.map((refund): StoredReversal => {
        const { reporterId, refundId: id, providerRefundId: providerId, refundedAtMs } = refund;
        return {
          kind: 'refund',
          reporter: String(reporterId),
          id,
          providerId,
          refundedAtMs,
          ...storedReversal(refund),
        };
      }),
      ...disputes.map((dispute): StoredReversal => {
        const { checkout, ...reversal } = storedReversal(dispute);
        const key = { kind: 'dispute', reporter: checkout, id: dispute.disputeId } as const;
        return { ...key, providerId: null, refundedAtMs: null, checkout, ...reversal };
      }),
    ],
    events: events.map(({ type, createdAtMs }) => ({ type, atMs: createdAtMs })),
  };
}

function storedReversal(reversal: Refund | Dispute) {
  const { paymentId, amount, currency, history: statuses } = reversal;
  const reason = statuses.at(-1)?.reason ?? null;
  return { checkout: checkoutOf(reversal), paymentId, amount: formatAmount(amount), currency, reason, statuses };
}
