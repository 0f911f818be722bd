import type { Credentials } from '@order-gateway/domain/accounts/credentials';
import { expect } from 'vitest';

/** What the merchant and the checkout systems know about an order. Times are milliseconds since 1970. */
export interface OrderLog {
  readonly orderId: string;
  /** The position of its merchant. */
  readonly merchant: number;
  /** When an attempt had certainly claimed the order. */
  readonly leases: { readonly sinceMs: number; untilMs: number }[];
  /** The ids of the payments that were acknowledged, and of those that were refused, with the code. */
  readonly accepted: string[];
  readonly refused: (readonly [paymentId: string, code: string])[];
  /** The outcome of the cancellation, if there was one. */
  cancelled: string | undefined;
  /** Of all other calls. */
  readonly outcomes: string[];
}

interface OrderRecord {
  readonly order_id: string;
  readonly order_status: string;
  readonly payment_id?: string;
  readonly refused_payments?: readonly {
    readonly payment_id: string;
    readonly code: string;
    readonly refused_at: string;
  }[];
}

interface OrderEvent {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly data: OrderRecord;
}

/** The outcomes of calls that no conflict and no fault can change. */
const rightOutcomes = [
  ...['ok', 'replayed', 'payment_in_progress'],
  ...['order_already_paid', 'order_cancelled', 'order_expired'],
];

/**
 * Compares what callers know with the records and the events that the API shows, and counts what happened. A violation names the
 * order.
 */
export async function findViolations(
  logs: readonly OrderLog[],
  { httpUrl, accounts }: { readonly httpUrl: string; readonly accounts: readonly Credentials[] },
) {
  const violations: string[] = [];
  const counts = { paid: 0, cancelled: 0, expired: 0, unpaid: 0, refused: 0, leases: 0 };
  for (const [merchant, account] of accounts.entries()) {
    const ofMerchant = logs.filter((log) => log.merchant === merchant);
    const list = <Item>(path: string, name: string) => readAll<Item>(`${httpUrl}${path}?limit=100`, name, account);
    const records = new Map((await list<OrderRecord>('/orders', 'orders')).map((record) => [record.order_id, record]));
    const expected = ofMerchant.reduce((sum, { refused }) => sum + refused.length, 0);
    // An event appears in the feed shortly after its change.
    const isRefusal = ({ type }: OrderEvent) => type === 'order.payment_refused';
    let events: OrderEvent[] = [];
    await expect
      .poll(
        async () => {
          events = await list<OrderEvent>('/events', 'events');
          return events.filter(isRefusal).length;
        },
        { interval: 1_000 },
      )
      .toBeGreaterThanOrEqual(expected);
    if (new Set(events.map(({ id }) => id)).size !== events.length) violations.push('an event is in the feed twice');
    const eventsOf = Map.groupBy(events, ({ data }) => data.order_id);
    for (const log of ofMerchant) {
      const record = records.get(log.orderId);
      const found = record === undefined ? ['is lost'] : violationsOf(log, record, eventsOf.get(log.orderId) ?? []);
      violations.push(...found.map((what) => `${log.orderId} ${what}`));
      const status =
        { PAID: 'paid', CANCELLED: 'cancelled', EXPIRED: 'expired' }[record?.order_status ?? ''] ?? 'unpaid';
      counts[status as keyof typeof counts] += 1;
      counts.refused += log.refused.length;
      counts.leases += log.leases.length;
    }
  }
  return { violations, ...counts };
}

function violationsOf(log: OrderLog, record: OrderRecord, events: readonly OrderEvent[]): string[] {
  const { order_status: status, payment_id, refused_payments = [] } = record;
  const times = (type: string) =>
    events.filter((event) => event.type === type).map(({ timestamp }) => Date.parse(timestamp));
  const refusals = events.filter(({ type }) => type === 'order.payment_refused');
  // Payments that are refused in the same millisecond have events with the same record.
  const announced = refusals.map(({ timestamp, data: { refused_payments: until = [] } }) => ({
    timestamp,
    last: until.at(-1),
    ids: until.filter(({ refused_at }) => refused_at === timestamp).map(({ payment_id }) => payment_id),
  }));
  const ends = [...times('order.cancelled'), ...times('order.expired')];
  const insideLease = (atMs: number) => log.leases.some(({ sinceMs, untilMs }) => atMs > sinceMs && atMs < untilMs);
  const wrong = [...log.outcomes, log.cancelled ?? 'ok'].filter((outcome) => !rightOutcomes.includes(outcome));
  const isCancelled = log.cancelled === 'ok' || log.cancelled === 'replayed';
  const pairs = (payments: readonly (readonly (string | undefined)[])[]) => payments.map(String).sort().join(' ');
  const checks: readonly (readonly [string, boolean])[] = [
    [`accepted the payments ${log.accepted}`, log.accepted.length <= 1],
    [`is ${status} with the payment ${payment_id}, and ${log.accepted} was accepted`, payment_id === log.accepted[0]],
    [`is ${status}`, (status === 'PAID') === (log.accepted.length === 1) && (!isCancelled || status === 'CANCELLED')],
    [`has ${times('order.paid').length} events of a payment`, times('order.paid').length === log.accepted.length],
    [
      `stores the refused payments ${pairs(refused_payments.map(({ payment_id, code }) => [payment_id, code]))}`,
      pairs(refused_payments.map(({ payment_id, code }) => [payment_id, code])) === pairs(log.refused),
    ],
    [`has ${announced.length} events of refused payments`, announced.length === log.refused.length],
    ['announces another payment last', announced.every(({ timestamp, last }) => last?.refused_at === timestamp)],
    [
      'does not announce each refused payment',
      log.refused.every(([paymentId]) => announced.some(({ ids }) => ids.includes(paymentId))),
    ],
    ['was cancelled or expired during a claim', !ends.some(insideLease)],
    [`has the outcomes ${wrong}`, wrong.length === 0],
  ];
  return checks.filter(([, holds]) => !holds).map(([what]) => what);
}

/** Reads all pages of a list or of the feed. */
async function readAll<Item>(url: string, name: string, { clientId, clientSecret }: Credentials): Promise<Item[]> {
  const items: Item[] = [];
  const headers = { 'x-client-id': clientId, 'x-client-secret': clientSecret };
  let cursor: string | undefined;
  for (;;) {
    const response = await fetch(cursor === undefined ? url : `${url}&cursor=${cursor}`, { headers });
    const page = Object(await response.json());
    if (!response.ok) throw new Error(`${response.status} ${page.code}: ${page.detail}`);
    items.push(...page[name]);
    cursor = page.next_cursor;
    if (cursor === undefined || page[name].length === 0) return items;
  }
}
