import type { AccountId } from '../accounts/account.ts';
import type { OrderToken } from '../links/order-token.ts';
import type { AmountHundredths } from '../money/money.ts';
import { isoTime } from '../requests/iso-time.ts';
import type { Metadata } from './metadata.ts';
import type { OrderFieldName, ServiceType } from './order-fields.ts';

/**
 * The fields that the merchant sent, validated: made by `parseOrder` or read from the store. Text is stored exactly as
 * it was sent, except that `customer_locale` is in canonical form. An absent optional field is the empty string.
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
  readonly checkoutId: AccountId | null;
  readonly paymentId: string;
  /** When the customer paid, in milliseconds since 1970-01-01 UTC. */
  readonly paidAtMs: number;
}

/** The part of a payment that identifies it. */
export type PaymentIdentity = Pick<OrderPayment, 'checkoutId' | 'paymentId'>;

/** Why a payment that the customer made was refused. It must be refunded. */
export const refusalCodes = ['order_already_paid', 'order_cancelled', 'order_expired', 'payment_mismatch'] as const;

/** One of {@link refusalCodes}. */
export type RefusalCode = (typeof refusalCodes)[number];

/** The number of its latest refused payments that each read of an order shows, if it has that many. */
export const refusedPaymentsShown = 20;

/** A payment that was reported for an order but did not pay it. */
export interface RefusedPayment extends OrderPayment {
  readonly amount: AmountHundredths;
  readonly currency: string;
  readonly code: RefusalCode;
  readonly refusedAtMs: number;
}

/** The identity of a payment that a checkout system reports. */
export interface CheckoutPayment {
  readonly checkoutId: AccountId;
  readonly paymentId: string;
}

/** A checkout system's attempt to take the payment of an order. The checkout system and its attempt_id identify it. */
export interface PaymentAttempt {
  readonly checkoutId: AccountId;
  readonly attemptId: string;
}

/**
 * The claim of a payment attempt on its order. Until it ends, no other attempt starts, and the order can neither be
 * cancelled nor expire.
 */
export interface PaymentLease extends PaymentAttempt {
  readonly endsAtMs: number;
  /** Whether the lease had not ended when the order was read, by the store's clock. */
  readonly isLive: boolean;
}

/** The statuses of a refund. A pending one succeeds or fails, and a bank can return money after it succeeded. */
export const refundStatuses = ['PENDING', 'SUCCEEDED', 'FAILED'] as const;

/** One of {@link refundStatuses}. */
export type RefundStatus = (typeof refundStatuses)[number];

/** The statuses of a dispute. An inquiry moves no money. The bank has the money of one that is open or lost. */
export const disputeStatuses = ['INQUIRY', 'OPEN', 'WON', 'LOST'] as const;

/** One of {@link disputeStatuses}. */
export type DisputeStatus = (typeof disputeStatuses)[number];

/** Money that goes back to the customer: a refund or a dispute. `checkoutId` and `paymentId` identify its payment. */
export interface Reversal<Status> extends PaymentIdentity {
  readonly amount: AmountHundredths;
  readonly currency: string;
  /**
   * The statuses that it has had, oldest first: at least one. Every change of an order has a different time. `reason`
   * is a short code for why it got the status; `null` if none was reported.
   */
  readonly history: readonly { readonly status: Status; readonly atMs: number; readonly reason: string | null }[];
}

/** A refund of a payment. Its reporter and refundId identify it within its order. */
export interface Refund extends Reversal<RefundStatus> {
  /** The merchant, or the checkout system that reported a refund that was made at its provider. */
  readonly reporterId: AccountId;
  readonly refundId: string;
  /** The provider's id of the refund; `null` until it is known. Unique within the order and checkout system. */
  readonly providerRefundId: string | null;
  /** When the whole amount was refunded; `null` until then. */
  readonly refundedAtMs: number | null;
  /** The merchant's own note. */
  readonly note: string | null;
}

/** A dispute of a payment by the customer. The payment and disputeId identify it. */
export interface Dispute extends Reversal<DisputeStatus> {
  readonly disputeId: string;
}

/** All refunds and disputes of an order, each list in the order of the last changes. */
export interface Reversals {
  /** Counts the changes. */
  readonly version: number;
  readonly refunds: readonly Refund[];
  readonly disputes: readonly Dispute[];
}

/** The refunds and disputes of an order that has none. */
export const noReversals: Reversals = { version: 0, refunds: [], disputes: [] };

/** An order as it is stored. */
export interface Order {
  readonly merchantId: AccountId;
  /** Assigned by the gateway: positive, at most 2^53 - 1. */
  readonly serviceOrderId: number;
  readonly orderToken: OrderToken;
  /** As of the time when the order was read. */
  readonly orderStatus: OrderStatus;
  /** All times are milliseconds since 1970-01-01 UTC. */
  readonly createdAtMs: number;
  /** The expiry of the order while unpaid; `null`: it never expires. */
  readonly expiresAtMs: number | null;
  /** The latest lease, which may have ended; `null` if there was none, or the order is `PAID` or `CANCELLED`. */
  readonly lease: PaymentLease | null;
  /** The attempts that ended. They can never claim the order again. Empty if the order is `PAID` or `CANCELLED`. */
  readonly endedAttempts: readonly PaymentAttempt[];
  /** The payment; `null` unless the order is `PAID`. */
  readonly payment: OrderPayment | null;
  /** The latest refused payments, oldest first: all of them, or at least {@link refusedPaymentsShown}. */
  readonly refusedPayments: readonly RefusedPayment[];
  /** The refunds and disputes of the order's payment and of its refused payments. */
  readonly reversals: Reversals;
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

export const noRefusedPayments: readonly RefusedPayment[] = [];
export const noAttempts: readonly PaymentAttempt[] = [];

/** Returns a new order from the validated fields and the values that the gateway assigns. */
export function newOrder(
  fields: OrderFields,
  assigned: Pick<Order, 'merchantId' | 'orderToken' | 'createdAtMs' | 'expiresAtMs' | 'metadata'>,
): NewOrder {
  return {
    ...assigned,
    orderStatus: 'UN_PAID',
    lease: null,
    endedAttempts: noAttempts,
    payment: null,
    refusedPayments: noRefusedPayments,
    reversals: noReversals,
    cancelledAtMs: null,
    erasedDigest: null,
    fields,
  };
}

/** Formats a time of an order: ISO 8601 with milliseconds and the UTC offset, `2026-11-20T21:01:42.172+00:00`. */
export function formatTime(ms: number): string {
  return `${isoTime(ms).slice(0, -1)}+00:00`;
}

/** Formats a time as {@link formatTime} does; `undefined` if there is none. */
export function formatOptionalTime(ms: number | null | undefined): string | undefined {
  return ms === null || ms === undefined ? undefined : formatTime(ms);
}
