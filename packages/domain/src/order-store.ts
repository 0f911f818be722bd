import type { MerchantId } from './merchant.ts';
import type { Order } from './order.ts';
import type { OrderToken } from './order-token.ts';

/** What became of an order that was given to the store. */
export type CreateOutcome =
  /** The order is kept, durably. */
  | { readonly kind: 'created' }
  /** The merchant has an order with this order_id already; nothing was written. */
  | { readonly kind: 'exists'; readonly order: Order }
  /** Refused before any work: too many orders wait already. */
  | { readonly kind: 'overloaded' }
  /** The storage could not be reached, or its answer was lost: whether the order is kept is not known. */
  | { readonly kind: 'unavailable' }
  /** The time that the caller gave is over: whether the order is kept is not known. */
  | { readonly kind: 'deadline_exceeded' };

/** What a look-up came to. Nothing is written by one, so after each of the last three it can simply be made again. */
export type FindOutcome<Found> =
  | ({ readonly kind: 'found' } & Found)
  | { readonly kind: 'unknown' }
  /** Refused before any work: too many look-ups wait already. */
  | { readonly kind: 'overloaded' }
  /** The storage could not be reached, or its answer was lost. */
  | { readonly kind: 'unavailable' }
  /** The time that the caller gave is over. */
  | { readonly kind: 'deadline_exceeded' };

/** A merchant's order, found by one of its ids. */
export type OrderLookup = FindOutcome<{ readonly order: Order }>;

/** An order found by what its payment link holds, with the name of the merchant who is paid. */
export type LinkLookup = FindOutcome<{ readonly order: Order; readonly merchantName: string }>;

/** Where orders are kept. Every implementation passes the suite in `testing/order-store-contract.ts`. */
export interface OrderStore {
  /**
   * Keeps the order unless its merchant has one with the same order_id. However many calls race for one order_id, in however
   * many processes, one order is kept and all callers learn of that one. Settles within `timeoutMs`; rejects only for bugs.
   */
  create(order: Order, timeoutMs: number): Promise<CreateOutcome>;

  /** The merchant's order with this order_id, exactly as it is spelt. As all look-ups: settles and rejects as `create` does. */
  findByOrderId(merchantId: MerchantId, orderId: string, timeoutMs: number): Promise<OrderLookup>;

  /** The merchant's order with this service order id. */
  findByServiceOrderId(merchantId: MerchantId, serviceOrderId: number, timeoutMs: number): Promise<OrderLookup>;

  /** The order that a payment link leads to, whichever merchant's it is. */
  findByToken(token: OrderToken, timeoutMs: number): Promise<LinkLookup>;
}
