import type { AccountId, MerchantMode } from '../accounts/account.ts';
import type { Brand } from '../accounts/brand.ts';
import type { OrderToken } from '../links/order-token.ts';
import type { AmountHundredths } from '../money/money.ts';
import type { StoreFailure } from '../result.ts';
import type { Metadata } from './metadata.ts';
import type {
  CheckoutPayment,
  NewOrder,
  Order,
  OrderStatus,
  PaymentAttempt,
  PaymentLease,
  RefusedPayment,
} from './order.ts';
import type { OrderChange, PaymentRefusal, ReversalChange } from './order-states.ts';

/** The result of creating an order. */
export type CreateOutcome =
  /** The order is stored durably, with the service_order_id that the store assigned. */
  | { readonly kind: 'created'; readonly order: Order }
  /** The merchant already has an order with this order_id. The new order was not stored. */
  | { readonly kind: 'exists'; readonly order: Order }
  | StoreFailure;

/** The result of a lookup. */
export type FindOutcome<Found> = ({ readonly kind: 'found' } & Found) | { readonly kind: 'unknown' } | StoreFailure;

/** The result of looking up a merchant's order by one of its ids. */
export type OrderLookup = FindOutcome<{ readonly order: Order }>;

/** The content of a payment page: the order, and the merchant who is paid. */
export interface LinkedOrder {
  readonly order: Order;
  readonly merchant: {
    readonly clientId: string;
    readonly name: string;
    readonly mode: MerchantMode;
    /** Whether the merchant is disabled, so that no new payment may start. */
    readonly isDisabled: boolean;
    /**
     * The encrypted secrets that sign the return: the current one, and the one that it replaced in the last 24 hours.
     * Empty if the merchant has none.
     */
    readonly returnSecrets: readonly Uint8Array[];
    /** How the page looks; `null`: the default. */
    readonly brand: Brand | null;
  };
}

/**
 * Whether the customer may start a payment: the order is unpaid, no other payment is in progress, and the merchant is
 * enabled. A payment that has already started is still recorded.
 */
export function mayBePaid({ order, merchant }: LinkedOrder): boolean {
  return order.orderStatus === 'UN_PAID' && order.lease?.isLive !== true && !merchant.isDisabled;
}

/** The result of looking up an order by its payment link. */
export type LinkLookup = FindOutcome<LinkedOrder>;

/** The result of looking up an order together with a reported payment. */
export type PaymentLookup = FindOutcome<
  LinkedOrder & {
    /** Whether the checkout system has reported the payment_id for any order. The payment may have been refused. */
    readonly isKnown: boolean;
    /** The date with which the payment was reported, if it is known and was reported without a time. */
    readonly storedPaidOn: string | null;
    /** The merchant's note about a payment that it recorded itself. */
    readonly storedNote: string | null;
    /** The refused payment of this order; `null` if there is none. */
    readonly refused: RefusedPayment | null;
    /** Whether the account of the payment refunds payments: the merchant itself, or a checkout system with refunds. */
    readonly makesRefunds: boolean;
    /** The current time of the store, in milliseconds since 1970-01-01 UTC. */
    readonly nowMs: number;
  }
>;

/** The result of a conditional change. `Changed` holds the values that the store decides itself. */
export type ChangeOutcome<Changed = unknown> =
  /** The change is stored durably, with its event if it has one. */
  | ({ readonly kind: 'changed' } & Changed)
  /**
   * Since the caller read the order, its state has changed, another attempt has claimed it, or the same checkout system
   * has reported a payment with the same payment_id. This call did not change the order. The caller must read the order
   * and decide again.
   */
  | { readonly kind: 'conflict' }
  | StoreFailure;

/** When a lease ends, in milliseconds since 1970-01-01 UTC. */
export type LeaseEnd = Pick<PaymentLease, 'endsAtMs'>;

/** The position of a refund among all pending ones. */
export interface RefundPosition {
  readonly createdAtMs: number;
  readonly serviceOrderId: number;
}

/** A pending refund with what a checkout system has to know about its order. */
export interface PendingRefund extends RefundPosition {
  readonly orderId: string;
  readonly orderToken: OrderToken;
  readonly merchantClientId: string;
  readonly mode: MerchantMode;
  readonly paymentId: string;
  /** The merchant's id of the refund; `null` if it was made at the provider. */
  readonly refundId: string | null;
  readonly providerRefundId: string | null;
  readonly amount: AmountHundredths;
  readonly currency: string;
}

/** The filter and position of a list of orders. */
export interface OrderFilter {
  /** The current status; absent: all. */
  readonly status?: OrderStatus | undefined;
  /** The code of a currency; absent: all. */
  readonly currency?: string | undefined;
  /** Orders created from this time on, in milliseconds since 1970-01-01 UTC. */
  readonly createdFromMs?: number | undefined;
  /** Orders created before this time. */
  readonly createdToMs?: number | undefined;
  /** Orders whose metadata has all of these pairs. */
  readonly metadata?: Metadata | undefined;
  /** Only orders after this position in the list. */
  readonly after?: OrderPosition | undefined;
  readonly limit: number;
}

/** A page of a list, which may be empty. */
export interface OrderPage {
  readonly kind: 'found';
  readonly orders: readonly Order[];
  /** The position from which to continue, if the store stopped before the end of the list. */
  readonly scannedTo?: OrderPosition | undefined;
}

/** The maximum number of orders that `OrderStore.countByDay` reads: about 20 milliseconds of work. */
export const countedOrdersMax = 10_000;

/** Counts of the orders in one currency that were created on one day (UTC), by their current status. */
export interface DayCount {
  /** The start of the day, in milliseconds since 1970-01-01 UTC. */
  readonly dayMs: number;
  readonly currency: string;
  readonly created: number;
  readonly paid: number;
  readonly expired: number;
  /** The number of refused payments in the records of these orders. */
  readonly refusedPayments: number;
  /** The total of the paid orders in hundredths of the currency's unit. It may exceed the maximum of one order. */
  readonly paidHundredths: bigint;
}

/** The counts of a merchant's orders by day and currency, in no particular order. Days without orders are omitted. */
export interface CountOutcome {
  readonly kind: 'found';
  readonly days: readonly DayCount[];
  /**
   * The creation time of the oldest order that was read. Set if the read stopped at {@link countedOrdersMax} orders.
   */
  readonly cutOffMs?: number | undefined;
}

/** The position of an order in a list, which is sorted newest first and, within a millisecond, by descending id. */
export type OrderPosition = Pick<Order, 'createdAtMs' | 'serviceOrderId'>;

/**
 * Stores orders. An order returned as `EXPIRED` is always stored as such, with its event.
 * Every implementation passes the suite in `testing/order-store-contract.ts`.
 */
export interface OrderStore {
  /**
   * Stores the order unless its merchant has one with the same order_id. If several calls with one order_id run
   * concurrently, in any number of processes, one order is stored and all calls return it. Completes within
   * `timeoutMs`; rejects only because of a bug.
   */
  create(order: NewOrder, timeoutMs: number): Promise<CreateOutcome>;

  /**
   * Finds the merchant's order with exactly this order_id. Like `create`, every lookup completes within `timeoutMs` and
   * rejects only because of a bug.
   */
  findByOrderId(merchantId: AccountId, orderId: string, timeoutMs: number): Promise<OrderLookup>;

  /** Finds the merchant's order with this service order id. */
  findByServiceOrderId(merchantId: AccountId, serviceOrderId: number, timeoutMs: number): Promise<OrderLookup>;

  /**
   * Finds the merchant's order that a payment with this payment_id paid. If there is none, finds the order for which
   * such a payment was refused. Several checkout systems may use the same payment_id: the latest `paidAtMs` decides
   * between paid orders. If none is paid, the most recently refused payment decides.
   */
  findByPaymentId(merchantId: AccountId, paymentId: string, timeoutMs: number): Promise<OrderLookup>;

  /** Finds the order of a payment link, of any merchant. */
  findByToken(token: OrderToken, timeoutMs: number): Promise<LinkLookup>;

  /**
   * Does the same as `findByToken` for unauthenticated requests. Even many of them do not delay the other lookups.
   */
  findForPage(token: OrderToken, timeoutMs: number): Promise<LinkLookup>;

  /**
   * Finds the order of a payment link, and whether a checkout system's payment_id is stored. A payment_id that is
   * stored for this order counts only once it has had its effect: the payment paid the order, or is stored as refused.
   */
  findForPayment(token: OrderToken, payment: CheckoutPayment, timeoutMs: number): Promise<PaymentLookup>;

  /**
   * Changes an order's state and stores the event of the change, if the order is still in the state `transition.from`.
   */
  change(change: OrderChange, timeoutMs: number): Promise<ChangeOutcome>;

  /**
   * Stores a refused payment with its event, if the order is still in the state on which the decision was based and the
   * payment_id has not been reported since.
   */
  refusePayment(refusal: PaymentRefusal, timeoutMs: number): Promise<ChangeOutcome>;

  /** Stores a change of an order's refunds and disputes with its events, if no other change came first. */
  changeReversals(change: ReversalChange, timeoutMs: number): Promise<ChangeOutcome>;

  /** Lists the pending refunds of payments that a checkout system reported, oldest first. */
  listPendingRefunds(
    checkoutId: AccountId,
    page: { readonly after?: RefundPosition | undefined; readonly limit: number },
    timeoutMs: number,
  ): Promise<
    | {
        readonly kind: 'found';
        readonly refunds: readonly PendingRefund[];
        /** Whether refunds may be missing, because a part of the store is unreachable. */
        readonly isIncomplete: boolean;
      }
    | StoreFailure
  >;

  /**
   * Claims an unpaid order for a payment attempt, or extends its lease, unless another attempt holds the order. The
   * lease ends `leaseSeconds` from now by the store's clock; a lease is never shortened.
   */
  startPayment(
    order: Order,
    attempt: PaymentAttempt,
    leaseSeconds: number,
    timeoutMs: number,
  ): Promise<ChangeOutcome<LeaseEnd>>;

  /** Expires an unpaid test order now, unless a payment attempt holds it. */
  expireNow(order: Order, timeoutMs: number): Promise<ChangeOutcome>;

  /**
   * Ends a payment attempt, and its lease now, if it is the last attempt that claimed the unpaid order. Returns
   * `conflict` if the lease is no longer as it was read.
   */
  endPayment(order: Order, attempt: PaymentAttempt, timeoutMs: number): Promise<ChangeOutcome>;

  /**
   * Returns at most `limit` of the merchant's orders, newest first. With a filter by metadata or currency it reads a
   * bounded number of orders: if it stopped before the end of the list, `scannedTo` is the position from which to
   * continue.
   */
  list(merchantId: AccountId, filter: OrderFilter, timeoutMs: number): Promise<OrderPage | StoreFailure>;

  /**
   * Counts the merchant's orders that were created since this time, in milliseconds since 1970-01-01 UTC. Reads only
   * the newest {@link countedOrdersMax} of them.
   */
  countByDay(merchantId: AccountId, sinceMs: number, timeoutMs: number): Promise<CountOutcome | StoreFailure>;
}
