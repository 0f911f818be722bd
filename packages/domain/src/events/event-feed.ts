import type { AccountId } from '../accounts/account.ts';
import type { Order } from '../orders/order.ts';
import { type EventType, transitions } from '../orders/order-states.ts';
import type { StoreFailure } from '../result.ts';

/** The filter and position of a list of events. */
export interface EventFilter {
  /** Absent: all types. */
  readonly types?: readonly EventType[] | undefined;
  /** Absent: the events of all orders. */
  readonly orderId?: string | undefined;
  /** Only events after this position; absent: all. */
  readonly after?: EventPosition | undefined;
  readonly limit: number;
}

/** The result of reading events. */
export type EventPage =
  | {
      readonly kind: 'found';
      readonly events: readonly FeedEvent[];
      /** The position from which to continue, after events that the filter excluded. Absent if no event was read. */
      readonly scannedTo?: EventPosition | undefined;
      /**
       * Whether more events may follow although the page is not full, because a read covers a limited number of events.
       */
      readonly isCut?: boolean;
    }
  /** The event of the position does not exist: it was deleted, or it belongs to another history of the database. */
  | { readonly kind: 'cursor_expired' }
  | StoreFailure;

/** An event, with the order as it is now. */
export interface OrderEvent {
  readonly eventId: string;
  readonly type: EventType;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly createdAtMs: number;
  readonly order: Order;
}

/** The position of an event in its merchant's feed. The id shows whether the event still is there. */
export interface EventPosition {
  /** Counts from 1. */
  readonly position: number;
  readonly eventId: string;
}

/** An event of a feed. */
export type FeedEvent = OrderEvent & EventPosition;

/** Lists the events of orders. */
export interface EventFeed {
  /**
   * Returns at most `limit` of the merchant's events after a position, oldest first. An event appears once no other can
   * still appear before it, so that a client that polls misses none.
   */
  listEvents(merchantId: AccountId, filter: EventFilter, timeoutMs: number): Promise<EventPage>;
}

/**
 * The order as it was after an event: an order that was expired then may be paid now, and later payments may be
 * refused.
 */
export function orderAfter({ type, createdAtMs, order }: Pick<OrderEvent, 'type' | 'createdAtMs' | 'order'>): Order {
  const refusedPayments = order.refusedPayments.filter(({ refusedAtMs }) => refusedAtMs <= createdAtMs);
  const then = refusedPayments.length === order.refusedPayments.length ? order : { ...order, refusedPayments };
  return type === transitions.expire.event ? { ...then, orderStatus: transitions.expire.to, payment: null } : then;
}
