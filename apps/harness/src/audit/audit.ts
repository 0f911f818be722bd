import { setTimeout as sleep } from 'node:timers/promises';
import { formatAmount } from '@order-gateway/domain/money/money';
import { formatTime } from '@order-gateway/domain/orders/order';
import { expiryOf, statusAsOf } from '@order-gateway/domain/orders/order-states';
import { loadFixtures } from '@order-gateway/fixtures/load-fixtures';
import { openAccountDirectory } from '@order-gateway/postgres/accounts/account-directory';
import { type ScannedOrder, scanEvents, scanOrders } from '@order-gateway/postgres/orders/scan';
import { columns } from '../command/text.ts';
import type { WebhookReceiver } from '../webhooks/receiver.ts';
import { createOrders, orderIdPrefix, type SentOrder } from '../workload/orders.ts';
import { auditStates, type Deliveries, type OrderLife, type StateCounts } from './audit-states.ts';
import { type AuditCounts, type AuditedOrder, compareOrders, examplesMax, type StoredOrder } from './compare-orders.ts';
import { type JournalEntry, type JournalHead, readJournal } from './journal.ts';

export interface AuditResult extends AuditCounts, StateCounts {
  /** Lines of the journal that are not entries: whether their orders are stored is unknown. */
  readonly unreadable: number;
}

/**
 * Compares a journal with the database of the gateway that the run was sent to, and its events with what a receiver got, if one
 * ran. Rejects when journal or database cannot be read.
 */
export async function auditJournal(file: string, databaseUrl: string, deliveries?: Deliveries): Promise<AuditResult> {
  const { head, entries, unreadable } = await readJournal(file);
  const { validOrder } = await loadFixtures();
  const orderOf = createOrders(validOrder, { ...head, merchants: head.client_ids.length });
  const created = entries.flatMap((entry) =>
    entry.created === undefined ? [] : [{ ...entry, created: entry.created }],
  );
  const expectedOf = (entry: CreatedEntry) => acknowledgedOrder(entry, orderOf(entry.number));
  const lives = new Map<string, OrderLife>();
  const counts = await compareOrders(created, expectedOf, storedOrders(head, databaseUrl, lives));
  const orderIdOf = (number: number) => `${orderIdPrefix(head.seed)}${number}`;
  const states = auditStates(entries, orderIdOf, lives, deliveries);
  const [first] = unreadable;
  const mustSkip = first === undefined ? [] : [`line ${first} of the journal is no entry`];
  const examples = [...counts.examples, ...states.examples, ...mustSkip];
  return { ...counts, ...states, unreadable: unreadable.length, examples };
}

/** The gateway needs less, unless attempts fail: then it waits 5 s, and 5 minutes after that. */
const deliveredWithinMs = 60_000;

/**
 * Audits a journal as {@link auditJournal}, repeatedly while there are errors, for a minute: calls without a response and
 * deliveries may still be in flight. Webhooks that the receiver rejected are errors.
 */
export async function auditWhenDelivered(
  file: string,
  databaseUrl: string,
  receiver: Pick<WebhookReceiver, 'deliveries' | 'rejected'> | undefined,
): Promise<AuditResult> {
  const deadline = Date.now() + deliveredWithinMs;
  for (;;) {
    const result = await auditJournal(file, databaseUrl, receiver?.deliveries);
    if (receiver === undefined || result.undelivered === undefined) return result;
    if (auditErrors(result) === 0 || Date.now() > deadline) {
      const examples = [...result.examples, ...receiver.rejected.slice(0, examplesMax)];
      return { ...result, undelivered: result.undelivered + receiver.rejected.length, examples };
    }
    await sleep(500);
  }
}

/** The number of errors; 0 means that every acknowledged order and change is stored once, and its events were delivered. */
export function auditErrors(result: AuditResult): number {
  const { lost, duplicated, changed, unreadable, undone, backwards, illegal, undelivered = 0 } = result;
  return lost + duplicated + changed + unreadable + undone + backwards + illegal + undelivered;
}

const columnNames = [
  ...(['acknowledged', 'lost', 'duplicated', 'changed', 'unreadable', 'stored', 'unacknowledged'] as const),
  ...(['changes', 'undone', 'backwards', 'illegal', 'undelivered', 'copies'] as const),
];

export function auditTable(result: AuditResult) {
  return { head: columnNames, row: columnNames.map((name) => String(result[name] ?? '-')) };
}

/** The result as a table whose first row is its heading. */
export function auditRows(result: AuditResult): string[][] {
  const { head, row } = auditTable(result);
  return [
    ['audit', ...head],
    ['', ...row],
  ];
}

export function formatAudit(result: AuditResult): string {
  return [columns(auditRows(result)), ...result.examples.map((example) => `  ${example}`), ''].join('\n');
}

/** An entry about a creation. */
type CreatedEntry = JournalEntry & Required<Pick<JournalEntry, 'created'>>;

/** An acknowledged order as it must be stored. */
export function acknowledgedOrder({ created }: CreatedEntry, { merchant, fields, metadata }: SentOrder): AuditedOrder {
  return { merchant, members: { ...fields, ...created, ...(metadata && { metadata: JSON.stringify(metadata) }) } };
}

/** A stored order with the members of the API contract. A run does not send a locale, so that it is stored as empty. */
export function storedOrder(merchant: number, { order, sharedFields }: ScannedOrder): StoredOrder {
  const { customer_locale: locale, ...fields } = order.fields;
  return {
    ...{ merchant, sharedFields },
    members: {
      ...fields,
      ...(locale !== '' && { customer_locale: locale }),
      order_amount: formatAmount(order.fields.order_amount),
      service_order_id: order.serviceOrderId,
      order_token: order.orderToken,
      created_at: formatTime(order.createdAtMs),
      ...(order.metadata && { metadata: JSON.stringify(order.metadata) }),
    },
  };
}

/** The sweep stores an expiry within 5 seconds. Until then the stored status is the order's status. */
const sweptWithinMs = 10_000;

/** Reads all orders of the run, and adds the history of each to `lives`. */
async function* storedOrders(
  { client_ids, seed }: JournalHead,
  databaseUrl: string,
  lives: Map<string, OrderLife>,
): AsyncGenerator<StoredOrder> {
  const directory = openAccountDirectory({ url: databaseUrl });
  const nowMs = Date.now();
  try {
    for (const [merchant, clientId] of client_ids.entries()) {
      const lookup = await directory.findAccount(clientId);
      if (lookup.kind !== 'found') throw new Error(`the account ${clientId} is ${lookup.kind} in the database`);
      const scan = { merchantId: lookup.stored.account.id, orderIdPrefix: orderIdPrefix(seed) };
      // Read before the orders: an order that expires in between must not have an event and be unpaid.
      const events = Map.groupBy(await Array.fromAsync(scanEvents(databaseUrl, scan)), ({ orderId }) => orderId);
      for await (const scanned of scanOrders(databaseUrl, scan)) {
        const { order } = scanned;
        const orderId = order.fields.order_id;
        lives.set(orderId, {
          status: statusAsOf(order, nowMs - sweptWithinMs),
          paymentId: order.payment?.paymentId,
          refusedIds: order.refusedPayments.map(({ paymentId }) => paymentId),
          isLeased: order.lease !== null,
          isJustExpired: Number(expiryOf(order)) > nowMs - sweptWithinMs,
          events: events.get(orderId) ?? [],
        });
        yield storedOrder(merchant, scanned);
      }
    }
  } finally {
    await directory.close();
  }
}
