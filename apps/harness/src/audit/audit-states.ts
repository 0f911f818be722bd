import type { OrderStatus } from '@order-gateway/domain/orders/order';
import { type EventType, transitions } from '@order-gateway/domain/orders/order-states';
import { examplesMax } from './compare-orders.ts';
import type { JournalEntry } from './journal.ts';

/** The history of a stored order. */
export interface OrderLife {
  readonly status: OrderStatus;
  readonly paymentId: string | undefined;
  /** The ids of the payments that were refused. */
  readonly refusedIds: readonly string[];
  /** Whether a payment attempt has a lease on it. */
  readonly isLeased: boolean;
  /** Whether it expired so recently that its event may have been stored after the events were read. */
  readonly isJustExpired: boolean;
  /** In the order of the feed. */
  readonly events: readonly { readonly eventId: string; readonly type: EventType }[];
}

/** The deliveries of webhooks to a receiver whose signatures were right, by their `webhook-id`. */
export type Deliveries = ReadonlyMap<
  string,
  { readonly orderId: string; readonly type: string; readonly copies: number }
>;

export interface StateCounts {
  /** Orders that were acknowledged as paid or cancelled. */
  readonly changes: number;
  /** Acknowledged as paid or cancelled, and stored in another state or with another payment. */
  readonly undone: number;
  /** Shown in a state that no change leads to from the one that an earlier response showed. */
  readonly backwards: number;
  /**
   * With other events than exactly those of the changes that lead to its state and of its refused payments, with a payment that both
   * paid it and was refused, or final and still leased.
   */
  readonly illegal: number;
  /** Events that no webhook delivered, or delivered with other content; `undefined` if no receiver ran. */
  readonly undelivered: number | undefined;
  /** Webhooks beyond the first one of each event. */
  readonly copies: number | undefined;
  readonly examples: readonly string[];
}

/** The events of every life that an order can have had. */
const histories: Readonly<Record<OrderStatus, readonly string[]>> = {
  UN_PAID: [''],
  PAID: ['order.paid', 'order.expired order.paid'],
  EXPIRED: ['order.expired'],
  CANCELLED: ['order.cancelled'],
};

/**
 * Compares what responses showed of each order with each other, with its stored state and its events, and the events with what
 * was delivered. Orders that are not stored are left to the audit of the orders themselves.
 */
export function auditStates(
  entries: readonly JournalEntry[],
  orderIdOf: (number: number) => string,
  lives: ReadonlyMap<string, OrderLife>,
  deliveries: Deliveries | undefined,
): StateCounts {
  const errors = { undone: new Set<string>(), backwards: new Set<string>(), illegal: new Set<string>() };
  const examples: string[] = [];
  const report = (kind: keyof typeof errors | undefined, orderId: string, what: string) => {
    if (examples.length < examplesMax) examples.push(`${orderId}: ${what}`);
    if (kind !== undefined) errors[kind].add(orderId);
  };
  let changes = 0;
  for (const [number, ofOrder = []] of Map.groupBy(entries, (entry) => entry.number)) {
    const orderId = orderIdOf(number);
    const backwards = goingBackwards(ofOrder);
    if (backwards !== undefined) report('backwards', orderId, `shown as ${backwards.join(', then as ')}`);
    if (ofOrder.some(({ status }) => status === 'PAID' || status === 'CANCELLED')) changes += 1;
    const life = lives.get(orderId);
    const gone = life && ofOrder.find((entry) => isUndone(entry, life));
    if (life && gone) report('undone', orderId, `shown as ${gone.status} and stored as ${life.status}`);
  }
  let [undelivered, copies] = [0, 0];
  for (const [orderId, { status, paymentId, refusedIds, isLeased, isJustExpired, events }] of lives) {
    const [refusals = [], changes = []] = [true, false].map((isRefusal) =>
      events.filter(({ type }) => (type === 'order.payment_refused') === isRefusal),
    );
    const history = changes.map(({ type }) => type).join(' ');
    const isLegal = histories[status].includes(history) || (status === 'EXPIRED' && isJustExpired && history === '');
    if (!isLegal) report('illegal', orderId, `stored as ${status} with the events: ${history || 'none'}`);
    if (refusals.length !== refusedIds.length)
      report(
        'illegal',
        orderId,
        `stored with ${refusedIds.length} refused payments and ${refusals.length} events of them`,
      );
    if (new Set([paymentId, ...refusedIds]).size !== refusedIds.length + 1)
      report('illegal', orderId, 'stored with a payment that counts twice');
    if (isLeased && (status === 'PAID' || status === 'CANCELLED')) report('illegal', orderId, `${status} and leased`);
    for (const { eventId, type } of deliveries ? events : []) {
      const delivery = deliveries?.get(eventId);
      const isRight = delivery?.orderId === orderId && delivery.type === type;
      if (!isRight) {
        undelivered += 1;
        report(undefined, orderId, `${type} was ${delivery ? 'delivered as another event' : 'not delivered'}`);
      }
      copies += (delivery?.copies ?? 1) - 1;
    }
  }
  const counts = { undone: errors.undone.size, backwards: errors.backwards.size, illegal: errors.illegal.size };
  const delivered = deliveries === undefined ? { undelivered: undefined, copies: undefined } : { undelivered, copies };
  return { changes, ...counts, ...delivered, examples };
}

function isUndone({ status, paymentId }: JournalEntry, life: OrderLife): boolean {
  return !mayBecome(status, life.status) || (paymentId !== undefined && paymentId !== life.paymentId);
}

/** Two statuses of which the second was shown by a call that was sent after the response with the first, and cannot follow it. */
function goingBackwards(entries: readonly JournalEntry[]): [OrderStatus, OrderStatus] | undefined {
  for (const earlier of entries) {
    const later = entries.find(
      ({ status, scheduledMs }) => scheduledMs >= earlier.receivedMs && !mayBecome(earlier.status, status),
    );
    if (later !== undefined) return [earlier.status, later.status];
  }
  return undefined;
}

/** Whether changes lead from one status to another. */
function mayBecome(from: OrderStatus, to: OrderStatus): boolean {
  return from === to || Object.values(transitions).some((one) => one.from === from && mayBecome(one.to, to));
}
