import type { AccountId } from '../accounts/account.ts';
import type { Order } from '../orders/order.ts';
import { type EventType, statusAsOf, transitions } from '../orders/order-states.ts';
import { reversalsAt } from '../orders/reversals.ts';
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
      /**
       * The position of the last event that was read, whether or not the filter excluded it. The next page begins after
       * it. Absent if no event was read.
       */
      readonly scannedTo?: EventPosition | undefined;
      /**
       * Whether more events may follow although the page is not full, because a read covers a limited number of events.
       */
      readonly isCut?: boolean;
    }
  /** The event at the position does not exist: it was deleted, or the database was restored to a time before it. */
  | { readonly kind: 'cursor_expired' }
  | StoreFailure;

/** The form of an event's id. */
export const eventIdForm = /^evt_[0-9a-f]{32}$/;

/** An event with the current state of its order. */
export interface OrderEvent {
  readonly eventId: string;
  readonly type: EventType;
  /** Milliseconds since 1970-01-01 UTC. */
  readonly createdAtMs: number;
  readonly order: Order;
}

/** The position of an event in its merchant's feed. The id shows whether the event still exists. */
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
   * Returns at most `limit` of the merchant's events after a position, oldest first. An event is listed only once no
   * other event can still be added before it, so that a caller that polls misses none.
   */
  listEvents(merchantId: AccountId, filter: EventFilter, timeoutMs: number): Promise<EventPage>;
}

/**
 * Returns the order as it was right after an event. Since then, it may have been paid or cancelled or have expired, and
 * more payments may have been refused, refunded or disputed. An event of a refund or dispute has the current status of
 * the order, because the order does not show when its payment was stored.
 */
export function orderAfter({ type, createdAtMs, order }: Pick<OrderEvent, 'type' | 'createdAtMs' | 'order'>): Order {
  const refusedPayments = order.refusedPayments.filter(({ refusedAtMs }) => refusedAtMs <= createdAtMs);
  const reversals = reversalsAt(order.reversals, createdAtMs);
  const isSame = refusedPayments.length === order.refusedPayments.length && reversals === order.reversals;
  const afterEvent = isSame ? order : { ...order, refusedPayments, reversals };
  if (type === transitions.expire.event) return { ...afterEvent, orderStatus: transitions.expire.to, payment: null };
  // With any other code, the order already had its final status.
  const code = type === 'order.payment_refused' ? refusedPayments.at(-1)?.code : undefined;
  if (code !== 'payment_mismatch' && code !== 'order_expired') return afterEvent;
  // A paid order has no lease any more, so one that a lease kept unpaid beyond its expiry is shown as expired.
  const orderStatus = statusAsOf({ ...order, orderStatus: 'UN_PAID' }, createdAtMs);
  return { ...afterEvent, orderStatus, payment: null, cancelledAtMs: null };
}
