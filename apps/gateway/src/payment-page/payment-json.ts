import { type CheckoutTemplate, checkoutLink } from '@gateway/domain/checkout-link';
import { formatAmount } from '@gateway/domain/money';
import { formatCreatedAt } from '@gateway/domain/order';
import type { LinkedOrder } from '@gateway/domain/order-store';
import { returnUrlFor } from '@gateway/domain/return-url';

/** The facts of the payment page as JSON; like the page, nothing of the customer. */
export function paymentJson(
  { order, merchantName }: LinkedOrder,
  checkoutTemplate: CheckoutTemplate | undefined,
): string {
  const { fields } = order;
  return JSON.stringify({
    merchant_name: merchantName,
    order_id: fields.order_id,
    // At most 15 digits: a double holds them exactly.
    order_amount: Number(formatAmount(fields.order_amount)),
    order_currency: fields.order_currency,
    order_note: fields.order_note,
    order_status: order.orderStatus,
    created_at: formatCreatedAt(order.createdAtMs),
    return_url: returnUrlFor(order),
    checkout_url: checkoutTemplate === undefined ? null : checkoutLink(checkoutTemplate, order.orderToken),
  });
}
