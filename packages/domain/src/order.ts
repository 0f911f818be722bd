import { isoTime } from './iso-time.ts';
import type { MerchantId } from './merchant.ts';
import type { AmountHundredths } from './money.ts';
import type { OrderFieldName, ServiceType } from './order-fields.ts';
import type { OrderToken } from './order-token.ts';

/**
 * What the merchant sent, checked: made by `parseOrder` alone, or read back from storage. The names are the interface's. Text
 * is kept exactly as it was sent; an absent second address line is the empty text.
 */
export interface OrderFields
  extends Readonly<Record<Exclude<OrderFieldName, 'order_amount' | 'service_type'>, string>> {
  readonly order_amount: AmountHundredths;
  readonly service_type: ServiceType;
}

/** The states of an order. The interface knows one. */
export const orderStatuses = ['UN_PAID'] as const;

/** One of {@link orderStatuses}. */
export type OrderStatus = (typeof orderStatuses)[number];

/** An order as the gateway keeps it. */
export interface Order {
  readonly merchantId: MerchantId;
  /** Assigned by the gateway: positive, at most 2^53 - 1. */
  readonly serviceOrderId: number;
  readonly orderToken: OrderToken;
  readonly orderStatus: OrderStatus;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly createdAtMs: number;
  readonly fields: OrderFields;
}

/** A new order: the checked fields, with what the gateway adds. */
export function openOrder(
  fields: OrderFields,
  given: Pick<Order, 'merchantId' | 'serviceOrderId' | 'orderToken' | 'createdAtMs'>,
): Order {
  return { ...given, orderStatus: 'UN_PAID', fields };
}

/** A moment as the interface writes it: ISO 8601 with milliseconds and the UTC offset, `2026-11-20T21:01:42.172+00:00`. */
export function formatCreatedAt(createdAtMs: number): string {
  return `${isoTime(createdAtMs).slice(0, -1)}+00:00`;
}
