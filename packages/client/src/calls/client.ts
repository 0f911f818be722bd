import { formatAmount, orderChecksum } from '../signatures/order-checksum.ts';
import type {
  CreatedOrder,
  EventFilter,
  EventPage,
  ManualPayment,
  NewOrder,
  NewRefund,
  Order,
  OrderFilter,
  Refund,
} from '../types.ts';
import { bodyOf, requirePlain } from './json.ts';
import { createManagement, type Management } from './management.ts';
import { type ClientOptions, createSend, itemsOf, queryOf } from './request.ts';

/**
 * The calls that a merchant can make. Each call retries automatically (see `ClientOptions.retries`) and then rejects
 * with a `GatewayError` or a `GatewayNetworkError`.
 */
export interface GatewayClient extends Management {
  /**
   * Creates an order and returns its payment link. Sending the same order again returns the original. Sending a
   * different order with the same order_id rejects with `order_id_conflict`.
   */
  createOrder(order: NewOrder): Promise<CreatedOrder>;
  /**
   * Returns an order with its current status. Rejects with `not_found` if you have no such order. With `{ paymentId }`,
   * returns the order that this payment paid, or for which it was refused. If several checkout systems used the same
   * payment id, returns the order that was paid last, or else the order whose payment was refused last.
   */
  getOrder(order: string | { readonly paymentId: string }): Promise<Order>;
  /** Iterates over your orders, newest first, and fetches each page on demand. */
  listOrders(filter?: OrderFilter): AsyncGenerator<Order, void, void>;
  /**
   * Cancels an unpaid order and returns it. An order that is already cancelled is returned unchanged. Rejects with
   * `payment_in_progress`, `order_already_paid` or `order_expired` if the order cannot be cancelled.
   */
  cancelOrder(orderId: string): Promise<Order>;
  /**
   * Marks an order as paid with money that reached you outside any checkout system, such as cash, and returns it.
   * Sending the same payment again returns the order unchanged. Rejects with `payment_in_progress`,
   * `order_already_paid`, `order_cancelled`, `order_expired` or `payment_id_conflict` if the order cannot be marked as
   * paid.
   */
  recordManualPayment(orderId: string, payment: ManualPayment): Promise<Order>;
  /**
   * Refunds the payment of an order, or a part of it, and returns the refund. Sending the same refund again returns
   * it with its current status. Rejects with `refund_exceeds_payment`, `refund_id_conflict`, `order_not_paid`
   * or `refunds_not_supported` if the payment cannot be refunded.
   */
  createRefund(orderId: string, refund: NewRefund): Promise<Refund>;
  /**
   * Returns one page of the event feed: at most `limit` events (1 to 100; 20 by default) after the cursor, or the
   * oldest events if there is no cursor. Events are stored for 30 days. `events` is empty at the end of the feed, and
   * if a filter excludes a long run of events: wait and call again with the new cursor, or let the gateway wait for the
   * next event with `waitSeconds`. Rejects with `cursor_expired` if the cursor refers to an event that is no longer
   * stored.
   */
  listEvents(page?: EventFilter): Promise<EventPage>;
}

/** Returns a client for one merchant. Throws a TypeError if an option is invalid. Use it only in your backend. */
export function createClient(options: ClientOptions): GatewayClient {
  const send = createSend(options);
  return {
    ...createManagement(send),
    async createOrder(order) {
      const { order_amount, ...otherFields } = requirePlain(order, 'The order') as NewOrder;
      const order_checksum = await orderChecksum({ order_amount, ...otherFields }, options.clientSecret);
      // JSON.stringify cannot write a number with two decimals.
      const body = `{"order_amount":${formatAmount(order_amount)},${bodyOf({ ...otherFields, order_checksum }).slice(1)}`;
      return send('POST', '/order', body);
    },
    async getOrder(order) {
      return send(
        'GET',
        typeof order === 'string' ? pathOf(order) : `/order${queryOf({ payment_id: order.paymentId })}`,
      );
    },
    listOrders({ status, currency, createdFrom, createdTo, metadata = {}, limit } = {}) {
      const pairs = Object.entries(requirePlain(metadata, 'metadata')).map(([key, value]) => [
        `metadata.${key}`,
        value,
      ]);
      const filter = {
        status,
        currency,
        created_from: timeText(createdFrom),
        created_to: timeText(createdTo),
        limit,
        ...(Object.fromEntries(pairs) as Readonly<Record<string, string>>),
      };
      return itemsOf(send, '/orders', filter, (page: { readonly orders: readonly Order[] }) => page.orders);
    },
    async cancelOrder(orderId) {
      return send('POST', `${pathOf(orderId)}/cancel`);
    },
    async recordManualPayment(orderId, payment) {
      return send('POST', `${pathOf(orderId)}/payments`, bodyOf(requirePlain(payment, 'The payment')));
    },
    async createRefund(orderId, refund) {
      return send('POST', `${pathOf(orderId)}/refunds`, bodyOf(requirePlain(refund, 'The refund')));
    },
    async listEvents({ cursor, limit, types, orderId, waitSeconds } = {}) {
      // A program that has stored no cursor yet may pass an empty text.
      const query = queryOf({ cursor: cursor || undefined, limit, type: types?.join(','), order_id: orderId });
      return send('GET', `/events${query}`, undefined, { waitSeconds });
    },
  };
}

function pathOf(orderId: string): string {
  // URL parsers remove "." and ".." from a path, even if they are percent-encoded.
  if (/^\.{0,2}$/.test(orderId)) throw new RangeError('An empty order_id, "." and ".." cannot be in a path');
  return `/order/${encodeURIComponent(orderId)}`;
}

function timeText(time: string | Date | undefined): string | undefined {
  return time instanceof Date ? time.toISOString() : time;
}
