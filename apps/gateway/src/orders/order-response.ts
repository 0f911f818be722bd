import { formatCreatedAt, type Order } from '@gateway/domain/order';
import { type BaseUrl, paymentLink } from '@gateway/domain/payment-link';

/** The six fields that the interface answers, in its order. */
export interface OrderResponse {
  readonly service_order_id: number;
  readonly created_at: string;
  readonly order_id: string;
  readonly order_status: Order['orderStatus'];
  readonly order_token: string;
  readonly payment_link: string;
}

export function orderResponse(order: Order, baseUrl: BaseUrl): OrderResponse {
  return {
    service_order_id: order.serviceOrderId,
    created_at: formatCreatedAt(order.createdAtMs),
    order_id: order.fields.order_id,
    order_status: order.orderStatus,
    order_token: order.orderToken,
    payment_link: paymentLink(baseUrl, order.orderToken),
  };
}
