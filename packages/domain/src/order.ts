import { isoTime } from './iso-time.ts';
import type { MerchantId } from './merchant.ts';
import type { Metadata } from './metadata.ts';
import type { AmountHundredths } from './money.ts';
import type { OrderFieldName, ServiceType } from './order-fields.ts';
import type { OrderToken } from './order-token.ts';

/**
 * The fields that the merchant sent, validated: made by `parseOrder` or read from the store. Text is stored exactly as it was
 * sent; an absent second address line is the empty text.
 */
export interface OrderFields
  extends Readonly<Record<Exclude<OrderFieldName, 'order_amount' | 'service_type'>, string>> {
  readonly order_amount: AmountHundredths;
  readonly service_type: ServiceType;
}

/** The statuses of an order; `order-states.ts` defines the transitions. */
export const orderStatuses = ['UN_PAID', 'PAID', 'EXPIRED', 'CANCELLED'] as const;

/** One of {@link orderStatuses}. */
export type OrderStatus = (typeof orderStatuses)[number];

/** A payment. The checkout system and its payment_id identify it. */
export interface OrderPayment {
  /** `null` for a simulated payment. */
  readonly checkoutId: MerchantId | null;
  readonly paymentId: string;
  /** When the customer paid, in milliseconds since 1970-01-01 UTC. */
  readonly paidAtMs: number;
}

/** An order as it is stored. */
export interface Order {
  readonly merchantId: MerchantId;
  /** Assigned by the gateway: positive, at most 2^53 - 1. */
  readonly serviceOrderId: number;
  readonly orderToken: OrderToken;
  /** As of the time at which the order was read. */
  readonly orderStatus: OrderStatus;
  /** All times are milliseconds since 1970-01-01 UTC. */
  readonly createdAtMs: number;
  /** The expiry of the order while unpaid; `null`: it never expires. */
  readonly expiresAtMs: number | null;
  /** The payment; `null` unless the order is `PAID`. */
  readonly payment: OrderPayment | null;
  /** `null` unless the order is `CANCELLED`. */
  readonly cancelledAtMs: number | null;
  /** Set if the customer's data was erased from the fields: see `erasure.ts`. */
  readonly erasedDigest: Uint8Array | null;
  /** `null` if the merchant sent none, or it was erased. */
  readonly metadata: Metadata | null;
  readonly fields: OrderFields;
}

/** An order that is not stored yet: the store assigns its service_order_id. */
export type NewOrder = Omit<Order, 'serviceOrderId'>;

/** Returns a new order from the validated fields and the values that the gateway assigns. */
export function openOrder(
  fields: OrderFields,
  assigned: Pick<Order, 'merchantId' | 'orderToken' | 'createdAtMs' | 'expiresAtMs' | 'metadata'>,
): NewOrder {
  return { ...assigned, orderStatus: 'UN_PAID', payment: null, cancelledAtMs: null, erasedDigest: null, fields };
}

/** Formats a time of an order: ISO 8601 with milliseconds and the UTC offset, `2026-11-20T21:01:42.172+00:00`. */
export function formatTime(ms: number): string {
  return `${isoTime(ms).slice(0, -1)}+00:00`;
}
