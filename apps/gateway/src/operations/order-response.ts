import type { MerchantMode } from '@order-gateway/domain/accounts';
import { type OrderEvent, orderAfter } from '@order-gateway/domain/events';
import { type BaseUrl, paymentLink } from '@order-gateway/domain/links';
import { formatAmount } from '@order-gateway/domain/money';
import { formatTime, type LinkedOrder, type Order, type RefusedPayment } from '@order-gateway/domain/orders';
import { returnUrlFor } from '@order-gateway/domain/signing';
import type { OperationDeps } from './operation.ts';

export type OrderResponse = ReturnType<typeof orderResponse>;
export type OrderRecord = ReturnType<typeof orderRecord>;

/** The six fields of the response to a creation, in the order of the API. */
export function orderResponse(order: Order, baseUrl: BaseUrl) {
  return {
    service_order_id: order.serviceOrderId,
    created_at: formatTime(order.createdAtMs),
    order_id: order.fields.order_id,
    order_status: order.orderStatus,
    order_token: order.orderToken,
    payment_link: paymentLink(baseUrl, order.orderToken),
  };
}

/** The order in every other response, without the customer's data. Fields without a value are `undefined`. */
export function orderRecord(order: Order, mode: MerchantMode, baseUrl: BaseUrl) {
  const { fields, payment, lease, refusedPayments } = order;
  return {
    ...orderResponse(order, baseUrl),
    mode,
    // At most 15 digits, which a double represents exactly.
    order_amount: Number(formatAmount(fields.order_amount)),
    order_currency: fields.order_currency,
    order_note: fields.order_note,
    service_type: fields.service_type,
    order_expires_at: formatOptional(order.expiresAtMs),
    paid_at: formatOptional(payment?.paidAtMs ?? null),
    payment_id: payment?.paymentId,
    cancelled_at: formatOptional(order.cancelledAtMs),
    payment_in_progress_until: formatOptional(lease?.isLive ? lease.endsAtMs : null),
    refused_payments: refusedPayments.length === 0 ? undefined : refusedPayments.map(refusedPaymentRecord),
    metadata: order.metadata ?? undefined,
  };
}

function refusedPaymentRecord({ paymentId, amount, currency, paidAtMs, code, refusedAtMs }: RefusedPayment) {
  return {
    payment_id: paymentId,
    amount: Number(formatAmount(amount)),
    currency,
    paid_at: formatTime(paidAtMs),
    code,
    refused_at: formatTime(refusedAtMs),
  };
}

function formatOptional(ms: number | null): string | undefined {
  return ms === null ? undefined : formatTime(ms);
}

/** An order as checkout systems see it, with more members than `CheckoutOrder`, which drops them. */
export function checkoutOrder(deps: Pick<OperationDeps, 'baseUrl' | 'signingSecrets' | 'now'>, link: LinkedOrder) {
  const { order, merchant } = link;
  const record = orderRecord(order, merchant.mode, deps.baseUrl());
  return { ...record, merchant_name: merchant.name, return_url: returnLink(deps, link) };
}

/**
 * The complete URL at which the customer returns to the merchant, with the order's current status. It is signed if the
 * merchant has a signing secret that SECRETS_KEY can decrypt.
 */
export function returnLink(
  { signingSecrets, now }: Pick<OperationDeps, 'signingSecrets' | 'now'>,
  { order, merchant }: LinkedOrder,
): string {
  const { signingSecret } = merchant;
  const secret = signingSecret === null ? undefined : signingSecrets?.decrypt(order.merchantId, signingSecret);
  return returnUrlFor(order, secret && { secret, signedAtSeconds: Math.floor(now() / 1_000) });
}

/** An event as in feeds and webhooks, with the order after the change. */
export function eventResponse(event: OrderEvent, mode: MerchantMode, baseUrl: BaseUrl) {
  return {
    id: event.eventId,
    type: event.type,
    timestamp: formatTime(event.createdAtMs),
    data: orderRecord(orderAfter(event), mode, baseUrl),
  };
}
