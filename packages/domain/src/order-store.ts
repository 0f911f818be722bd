import type { Order } from './order.ts';

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

/** Where orders are kept. Every implementation passes the suite in `testing/order-store-contract.ts`. */
export interface OrderStore {
  /**
   * Keeps the order unless its merchant has one with the same order_id. However many calls race for one order_id, in however
   * many processes, one order is kept and all callers learn of that one. Settles within `timeoutMs`; rejects only for bugs.
   */
  create(order: Order, timeoutMs: number): Promise<CreateOutcome>;
}
