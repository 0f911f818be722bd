import { OrderStatus } from '@gateway/contract/gateway/v1/order_service_pb';
import type { Order } from '@gateway/domain/order';
import type { BaseUrl } from '@gateway/domain/payment-link';
import { type OrderAnswer, orderAnswer } from '../order-answer.ts';

/** The six fields of the interface as the fields of a message. */
export function orderMessage(order: Order, baseUrl: BaseUrl) {
  return answerMessage(orderAnswer(order, baseUrl));
}

export function answerMessage(answer: OrderAnswer) {
  return {
    serviceOrderId: BigInt(answer.service_order_id),
    createdAt: answer.created_at,
    orderId: answer.order_id,
    orderStatus: OrderStatus[answer.order_status],
    orderToken: answer.order_token,
    paymentLink: answer.payment_link,
  };
}
