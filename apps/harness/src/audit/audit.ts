import { setTimeout as sleep } from 'node:timers/promises';
import { formatAmount } from '@order-gateway/domain/money';
import { formatTime, isAdditional } from '@order-gateway/domain/orders';
import { loadFixtures } from '@order-gateway/fixtures';
import type { StoredOrder as ModelOrder } from '@order-gateway/order-model/model';
import { storedOrderOf } from '@order-gateway/order-model/observed';
import { openAccountDirectory } from '@order-gateway/postgres/accounts';
import { type ScannedOrder, type StoredEvent, scanEvents, scanOrders } from '@order-gateway/postgres/orders/operators';
import { columns } from '../command/text.ts';
import { createOrders, orderIdPrefix, type SentOrder } from '../workload/orders.ts';
import { type AuditCounts, type AuditedOrder, compareOrders, examplesMax, type StoredOrder } from './compare-orders.ts';
import { asSwept, createHistoryChecker, type Deliveries } from './examine.ts';
import { callsByOrder } from './histories.ts';
import { type JournaledCall, type JournalHead, readJournal, type ShownOrder } from './journal.ts';

export interface AuditResult extends AuditCounts {
  /** Invalid lines of the journal. It is unknown whether their orders are stored. */
  readonly unreadable: number;
  /** Orders that were acknowledged as paid or cancelled. */
  readonly changes: number;
  /**
   * Orders that share a payment with another order, or for which no serial sequence of the calls explains the
   * responses, the row and the events.
   */
  readonly unexplained: number;
  /** Events that were not delivered, or were delivered with different content; `undefined` if no receiver ran. */
  readonly undelivered: number | undefined;
  /** Webhooks that repeated an event already delivered; `undefined` if no receiver ran. */
  readonly copies: number | undefined;
}

/**
 * Compares a journal with the database of the gateway that received the run's calls. If a webhook receiver ran, also
 * compares the events with the webhooks that it got. Rejects if the journal or the database cannot be read.
 */
export async function auditJournal(file: string, databaseUrl: string, deliveries?: Deliveries): Promise<AuditResult> {
  const { head, calls, unreadable } = await readJournal(file);
  const { validOrder } = await loadFixtures();
  const orderOf = createOrders(validOrder, { ...head, merchants: head.client_ids.length });
  const acknowledged = calls.flatMap(acknowledgements);
  const accountOf = await readAccounts(databaseUrl, calls, head);
  const checker = createHistoryChecker(callsByOrder(head, calls, accountOf), head.seed, deliveries);
  const expectedOf = ({ number, created }: Acknowledgement) => acknowledgedOrder(created, orderOf(number));
  const stored = storedOrders(head, databaseUrl, accountOf, checker.add);
  const counts = await compareOrders(acknowledged, expectedOf, stored);
  const { examples, ...examined } = checker.end(new Set(acknowledged.map(({ number }) => number)));
  const [first] = unreadable;
  const unreadableExamples = first === undefined ? [] : [`line ${first} of the journal is invalid`];
  return {
    ...counts,
    ...examined,
    unreadable: unreadable.length,
    changes: countChanges(calls),
    examples: [...counts.examples, ...examples, ...unreadableExamples],
  };
}

/** After this time, no call without a response is still in flight. */
const callsEndWithinMs = 60_000;

/** Covers the retries after 5 s and 5 minutes: on a busy machine, the first two attempts of a delivery can time out. */
const deliveredWithinMs = 400_000;

/**
 * Audits a journal like {@link auditJournal}. If a webhook receiver ran, repeats the audit as {@link repeatUntilFinal}
 * does. Each webhook that the receiver rejected counts as an error.
 */
export async function auditWhenDelivered(
  file: string,
  databaseUrl: string,
  receiver: { readonly deliveries: Deliveries; readonly rejected: readonly string[] } | undefined,
): Promise<AuditResult> {
  const audit = () => auditJournal(file, databaseUrl, receiver?.deliveries);
  return receiver === undefined ? audit() : repeatUntilFinal(audit, receiver.rejected);
}

/**
 * Repeats an audit while it finds errors, because calls without a response and deliveries may still be in flight: for
 * up to a minute, or for up to 400 s if only deliveries are missing. Does not repeat the audit once a webhook was
 * rejected, because this error would remain.
 */
export async function repeatUntilFinal(
  audit: () => Promise<AuditResult>,
  rejected: readonly string[],
): Promise<AuditResult> {
  const startedAt = Date.now();
  for (;;) {
    const result = await audit();
    const errors = auditErrors(result);
    const limitMs = errors === result.undelivered ? deliveredWithinMs : callsEndWithinMs;
    if (errors === 0 || rejected.length > 0 || Date.now() - startedAt > limitMs) {
      const undelivered = (result.undelivered ?? 0) + rejected.length;
      return { ...result, undelivered, examples: [...result.examples, ...rejected.slice(0, examplesMax)] };
    }
    await sleep(500);
  }
}

/**
 * The number of errors; 0 means that every acknowledged order and change is stored once, and its events were delivered.
 */
export function auditErrors(result: AuditResult): number {
  const { lost, duplicated, changed, unreadable, unexplained, undelivered = 0 } = result;
  return lost + duplicated + changed + unreadable + unexplained + undelivered;
}

const columnNames = [
  ...(['acknowledged', 'lost', 'duplicated', 'changed', 'unreadable', 'stored', 'unacknowledged'] as const),
  ...(['changes', 'unexplained', 'undelivered', 'copies'] as const),
];

export function auditTable(result: AuditResult) {
  return { head: columnNames, row: columnNames.map((name) => String(result[name] ?? '-')) };
}

/** Returns the result as a table whose first row is its heading. */
export function auditRows(result: AuditResult): string[][] {
  const { head, row } = auditTable(result);
  return [
    ['audit', ...head],
    ['', ...row],
  ];
}

export function formatAudit(result: AuditResult): string {
  const examples = result.examples.map((example) => `  ${example.replaceAll('\n', '\n    ')}`);
  return [columns(auditRows(result)), ...examples, ''].join('\n');
}

type Created = Readonly<Record<'order_token' | 'created_at', string>> & Pick<ShownOrder, 'service_order_id'>;

/** The acknowledgement of a creation. */
interface Acknowledgement {
  readonly number: number;
  readonly created: Created;
}

function acknowledgements({ request, response }: JournaledCall): Acknowledgement[] {
  if (request.kind !== 'create') return [];
  return (response?.shown ?? []).map(({ number, service_order_id, order_token = '', created_at = '' }) => ({
    number,
    created: { service_order_id, order_token, created_at },
  }));
}

function countChanges(calls: readonly JournaledCall[]): number {
  const final = { order_already_paid: 'PAID', order_cancelled: 'CANCELLED' };
  return new Set(
    calls.flatMap(({ number, response }) => [
      ...(response !== undefined && response.outcome in final && number !== undefined ? [number] : []),
      ...(response?.shown ?? [])
        .filter(({ status }) => Object.values(final).includes(status))
        .map((shown) => shown.number),
    ]),
  ).size;
}

/** Returns an acknowledged order as it must be stored. */
export function acknowledgedOrder(created: Created, { merchant, fields, metadata }: SentOrder): AuditedOrder {
  return { merchant, members: { ...fields, ...created, ...(metadata && { metadata: JSON.stringify(metadata) }) } };
}

/** Returns a stored order with the members of the API contract. Omits empty additional fields: a run sends none. */
export function storedOrder(merchant: number, { order, sharedFields }: ScannedOrder): StoredOrder {
  const sent = Object.entries(order.fields).filter(([name, value]) => value !== '' || !isAdditional(name));
  return {
    merchant,
    sharedFields,
    members: {
      ...Object.fromEntries(sent),
      order_amount: formatAmount(order.fields.order_amount),
      service_order_id: order.serviceOrderId,
      order_token: order.orderToken,
      created_at: formatTime(order.createdAtMs),
      ...(order.metadata && { metadata: JSON.stringify(order.metadata) }),
    },
  };
}

/** Reads the accounts of the run. Returns a function that maps a client id to the id of its account. */
async function readAccounts(databaseUrl: string, calls: readonly JournaledCall[], { client_ids }: JournalHead) {
  const clientIds = new Set(client_ids);
  for (const { request } of calls) {
    if (request.kind === 'pay') clientIds.add(request.payment.checkout);
    if (request.kind === 'start' || request.kind === 'end') clientIds.add(request.attempt.checkout);
    if (request.kind === 'record refund' || request.kind === 'record dispute') clientIds.add(request.checkout);
  }
  // An audit waits for a busy database. A gateway would reject the call instead.
  const directory = openAccountDirectory({ url: databaseUrl, patience: 12 });
  const ids = new Map<string, string>();
  try {
    for (const clientId of clientIds) {
      const lookup = await directory.findAccount(clientId);
      if (lookup.kind !== 'found') throw new Error(`the account ${clientId} is ${lookup.kind} in the database`);
      ids.set(clientId, String(lookup.stored.account.id));
    }
  } finally {
    await directory.close();
  }
  return (clientId: string) => ids.get(clientId) ?? '';
}

/** Yields all stored orders of the run, and passes each with its events to `check`. */
async function* storedOrders(
  { client_ids, seed }: JournalHead,
  databaseUrl: string,
  accountOf: (clientId: string) => string,
  check: (orderId: string, stored: ModelOrder, events: readonly StoredEvent[]) => void,
): AsyncGenerator<StoredOrder> {
  const startedAtMs = Date.now();
  for (const [merchant, clientId] of client_ids.entries()) {
    const merchantId = Number(accountOf(clientId)) as ScannedOrder['order']['merchantId'];
    const scan = { merchantId, orderIdPrefix: orderIdPrefix(seed) };
    // Events are read before orders. Otherwise an order that expires in between would have an event but be read as
    // unpaid.
    const events = Map.groupBy(await Array.fromAsync(scanEvents(databaseUrl, scan)), ({ orderId }) => orderId);
    for await (const scanned of scanOrders(databaseUrl, scan)) {
      const { order } = scanned;
      const orderId = order.fields.order_id;
      const orderEvents = events.get(orderId) ?? [];
      check(orderId, asSwept(storedOrderOf(order, orderEvents, ''), startedAtMs), orderEvents);
      yield storedOrder(merchant, scanned);
    }
  }
}
