import type { MerchantId } from './merchant.ts';
import type { Order } from './order.ts';
import type { OrderToken } from './order-token.ts';

/** The result of creating an order. */
export type CreateOutcome =
  /** The order is stored durably. */
  | { readonly kind: 'created' }
  /** The merchant already has an order with this order_id. Nothing was written. */
  | { readonly kind: 'exists'; readonly order: Order }
  /** Too many orders are waiting. Nothing was written. */
  | { readonly kind: 'overloaded' }
  /** The database was not reachable, or its response was lost: the order may be stored. */
  | { readonly kind: 'unavailable' }
  /** `timeoutMs` passed: the order may be stored. */
  | { readonly kind: 'deadline_exceeded' };

/** The result of a look-up. After each of the last three it can be repeated. */
export type FindOutcome<Found> =
  | ({ readonly kind: 'found' } & Found)
  | { readonly kind: 'unknown' }
  /** Too many look-ups are waiting. */
  | { readonly kind: 'overloaded' }
  /** The database was not reachable, or its response was lost. */
  | { readonly kind: 'unavailable' }
  /** `timeoutMs` passed. */
  | { readonly kind: 'deadline_exceeded' };

/** The result of looking up a merchant's order by one of its ids. */
export type OrderLookup = FindOutcome<{ readonly order: Order }>;

/** An order and the name of the merchant who is paid: what a payment page shows. */
export interface LinkedOrder {
  readonly order: Order;
  readonly merchantName: string;
}

/** The result of looking up an order by its payment link. */
export type LinkLookup = FindOutcome<LinkedOrder>;

/** Stores orders. Every implementation passes the suite in `testing/order-store-contract.ts`. */
export interface OrderStore {
  /**
   * Stores the order unless its merchant has one with the same order_id. If several calls with one order_id race, in any number
   * of processes, one order is stored and all calls return it. Settles within `timeoutMs`; rejects only because of a bug.
   */
  create(order: Order, timeoutMs: number): Promise<CreateOutcome>;

  /** Finds the merchant's order with exactly this order_id. Every look-up settles and rejects as `create` does. */
  findByOrderId(merchantId: MerchantId, orderId: string, timeoutMs: number): Promise<OrderLookup>;

  /** Finds the merchant's order with this service order id. */
  findByServiceOrderId(merchantId: MerchantId, serviceOrderId: number, timeoutMs: number): Promise<OrderLookup>;

  /** Finds the order of a payment link, of any merchant. */
  findByToken(token: OrderToken, timeoutMs: number): Promise<LinkLookup>;
}
