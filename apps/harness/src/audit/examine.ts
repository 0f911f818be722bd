import type { Call, History, StoredOrder } from '@order-gateway/order-model/model';
import { describeUnexplained } from '@order-gateway/order-model/report';
import { findUnexplained } from '@order-gateway/order-model/search';
import type { StoredEvent } from '@order-gateway/postgres/orders/operators';
import { numberOf, orderIdPrefix } from '../workload/orders.ts';
import { examplesMax } from './compare-orders.ts';

/** The webhooks that a receiver got with a correct signature, by `webhook-id`. */
export type Deliveries = ReadonlyMap<
  string,
  { readonly orderId: string; readonly type: string; readonly copies: number }
>;

/**
 * Returns a checker that finds orders whose history the order model can't explain. Add orders one at a time, so that
 * only the calls of the run are in memory.
 */
export function createHistoryChecker(callsOf: Map<number, Call[]>, seed: number, deliveries: Deliveries | undefined) {
  const orderOfPayment = new Map<string, string>();
  const examples: string[] = [];
  let smallest: { readonly orderId: string; readonly history: History } | undefined;
  let [unexplained, undelivered, duplicateDeliveries] = [0, 0, 0];
  const report = (example: string) => {
    if (examples.length < examplesMax) examples.push(example);
  };
  const search = (orderId: string, history: History) => {
    if (findUnexplained(history) === undefined) return;
    unexplained += 1;
    if (smallest === undefined || history.calls.length < smallest.history.calls.length) smallest = { orderId, history };
  };
  const checkPaymentsAreUnique = (orderId: string, { payment, refused }: StoredOrder) => {
    for (const { checkout, paymentId } of payment ? [payment, ...refused] : refused) {
      const id = `${checkout} ${paymentId}`;
      if (orderOfPayment.has(id)) {
        unexplained += 1;
        report(`${orderId}: shares the payment ${paymentId} with ${orderOfPayment.get(id)}`);
      }
      orderOfPayment.set(id, orderId);
    }
  };
  return {
    add(orderId: string, stored: StoredOrder, events: readonly StoredEvent[]) {
      const number = numberOf(seed, orderId) ?? -1;
      search(orderId, { calls: callsOf.get(number) ?? [], stored });
      callsOf.delete(number);
      checkPaymentsAreUnique(orderId, stored);
      for (const { eventId, type } of deliveries ? events : []) {
        const delivery = deliveries?.get(eventId);
        const isCorrect = delivery?.orderId === orderId && delivery.type === type;
        if (!isCorrect) {
          undelivered += 1;
          report(`${orderId}: ${type} was ${delivery ? 'delivered as another event' : 'not delivered'}`);
        }
        duplicateDeliveries += (delivery?.copies ?? 1) - 1;
      }
    },
    /**
     * Checks the histories of orders that are not stored, except those in `lost`, which are already counted. Returns
     * the counts and examples of all errors.
     */
    end(lost: ReadonlySet<number>) {
      for (const [number, calls] of callsOf) {
        if (!lost.has(number)) search(`${orderIdPrefix(seed)}${number}`, { calls, stored: null });
      }
      const example = smallest && `${smallest.orderId}: unexplained\n${describeUnexplained(smallest.history)}`;
      const delivered = deliveries
        ? { undelivered, copies: duplicateDeliveries }
        : { undelivered: undefined, copies: undefined };
      return { unexplained, ...delivered, examples: [...(example ? [example] : []), ...examples] };
    },
  };
}

/**
 * The sweep runs every second, but a busy machine delays it. Within this time after its expiry, an order may still be
 * stored as unpaid.
 */
const sweptWithinMs = 10_000;

/**
 * Returns the order as the sweep must have stored it before an audit that began at `auditedAtMs`. An order that expired
 * later may still be unpaid or lack its event.
 */
export function asSwept(stored: StoredOrder, auditedAtMs: number): StoredOrder {
  const sweptMs = auditedAtMs - sweptWithinMs;
  const { status, expiresAtMs, lease, events } = stored;
  const expiryMs = expiresAtMs === null ? Number.POSITIVE_INFINITY : Math.max(expiresAtMs, lease?.endsAtMs ?? 0);
  if (status === 'UN_PAID' && expiryMs <= sweptMs) return { ...stored, status: 'EXPIRED' };
  const lacksEvent = status === 'EXPIRED' && !events.some(({ type }) => type === 'order.expired');
  if (!lacksEvent || expiryMs <= sweptMs) return stored;
  return { ...stored, events: [...events, { type: 'order.expired', atMs: expiryMs }] };
}
