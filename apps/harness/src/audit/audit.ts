import { setTimeout as sleep } from 'node:timers/promises';
import { formatAmount } from '@order-gateway/domain/money';
import { formatTime } from '@order-gateway/domain/orders';
import { loadFixtures } from '@order-gateway/fixtures';
import type { Call, History, StoredOrder as ModelOrder } from '@order-gateway/order-model/model';
import { storedOrderOf } from '@order-gateway/order-model/observed';
import { describeUnexplained } from '@order-gateway/order-model/report';
import { findUnexplained } from '@order-gateway/order-model/search';
import { openAccountDirectory } from '@order-gateway/postgres/accounts';
import { type ScannedOrder, type StoredEvent, scanEvents, scanOrders } from '@order-gateway/postgres/orders/operators';
import { columns } from '../command/text.ts';
import type { WebhookReceiver } from '../webhooks/receiver.ts';
import { createOrders, numberOf, orderIdPrefix, type SentOrder } from '../workload/orders.ts';
import { type AuditCounts, type AuditedOrder, compareOrders, examplesMax, type StoredOrder } from './compare-orders.ts';
import { callsByOrder } from './histories.ts';
import { type JournaledCall, type JournalHead, readJournal, type ShownOrder } from './journal.ts';

/** The deliveries of webhooks to a receiver whose signatures were right, by their `webhook-id`. */
export type Deliveries = ReadonlyMap<
  string,
  { readonly orderId: string; readonly type: string; readonly copies: number }
>;

export interface AuditResult extends AuditCounts {
  /** Lines of the journal that are not entries: whether their orders are stored is unknown. */
  readonly unreadable: number;
  /** Orders that were acknowledged as paid or cancelled. */
  readonly changes: number;
  /** Orders whose calls, row and events no serial order of the calls explains, or that share a payment with another order. */
  readonly unexplained: number;
  /** Events that no webhook delivered, or delivered with other content; `undefined` if no receiver ran. */
  readonly undelivered: number | undefined;
  /** Webhooks beyond the first one of each event. */
  readonly copies: number | undefined;
}

/**
 * Compares a journal with the database of the gateway that the run was sent to, and its events with what a receiver got, if one
 * ran. Rejects when journal or database cannot be read.
 */
export async function auditJournal(file: string, databaseUrl: string, deliveries?: Deliveries): Promise<AuditResult> {
  const { head, calls, unreadable } = await readJournal(file);
  const { validOrder } = await loadFixtures();
  const orderOf = createOrders(validOrder, { ...head, merchants: head.client_ids.length });
  const acknowledged = calls.flatMap(acknowledgements);
  const accountOf = await readAccounts(databaseUrl, calls, head);
  const examination = examine(callsByOrder(head, calls, accountOf), head.seed, deliveries);
  const expectedOf = ({ number, created }: Acknowledgement) => acknowledgedOrder(created, orderOf(number));
  const stored = storedOrders(head, databaseUrl, accountOf, examination.add);
  const counts = await compareOrders(acknowledged, expectedOf, stored);
  const { examples, ...examined } = examination.end(new Set(acknowledged.map(({ number }) => number)));
  const [first] = unreadable;
  const mustSkip = first === undefined ? [] : [`line ${first} of the journal is no entry`];
  return {
    ...{ ...counts, ...examined, unreadable: unreadable.length, changes: countChanges(calls) },
    examples: [...counts.examples, ...examples, ...mustSkip],
  };
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

/** The result as a table whose first row is its heading. */
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

/** An acknowledged order as it must be stored. */
export function acknowledgedOrder(created: Created, { merchant, fields, metadata }: SentOrder): AuditedOrder {
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

/** Searches the history of one stored order after the other, so that only the calls of a run are in memory. */
function examine(callsOf: Map<number, Call[]>, seed: number, deliveries: Deliveries | undefined) {
  const orderOfPayment = new Map<string, string>();
  const examples: string[] = [];
  let smallest: { readonly orderId: string; readonly history: History } | undefined;
  let [unexplained, undelivered, copies] = [0, 0, 0];
  const report = (example: string) => {
    if (examples.length < examplesMax) examples.push(example);
  };
  const search = (orderId: string, history: History) => {
    if (findUnexplained(history) === undefined) return;
    unexplained += 1;
    if (smallest === undefined || history.calls.length < smallest.history.calls.length) smallest = { orderId, history };
  };
  const claim = (orderId: string, { payment, refused }: ModelOrder) => {
    for (const { checkout, paymentId } of payment ? [payment, ...refused] : refused) {
      const id = `${checkout} ${paymentId}`;
      if (orderOfPayment.has(id)) {
        unexplained += 1;
        report(`${orderId}: has the payment ${paymentId}, as ${orderOfPayment.get(id)} has`);
      }
      orderOfPayment.set(id, orderId);
    }
  };
  return {
    add(orderId: string, stored: ModelOrder, events: readonly StoredEvent[]) {
      const number = numberOf(seed, orderId) ?? -1;
      search(orderId, { calls: callsOf.get(number) ?? [], stored });
      callsOf.delete(number);
      claim(orderId, stored);
      for (const { eventId, type } of deliveries ? events : []) {
        const delivery = deliveries?.get(eventId);
        const isRight = delivery?.orderId === orderId && delivery.type === type;
        if (!isRight) {
          undelivered += 1;
          report(`${orderId}: ${type} was ${delivery ? 'delivered as another event' : 'not delivered'}`);
        }
        copies += (delivery?.copies ?? 1) - 1;
      }
    },
    /** Searches the histories of orders that are not stored. Those in `lost` are counted already. */
    end(lost: ReadonlySet<number>) {
      for (const [number, calls] of callsOf) {
        if (!lost.has(number)) search(`${orderIdPrefix(seed)}${number}`, { calls, stored: null });
      }
      const example = smallest && `${smallest.orderId}: unexplained\n${describeUnexplained(smallest.history)}`;
      const delivered = deliveries ? { undelivered, copies } : { undelivered: undefined, copies: undefined };
      return { unexplained, ...delivered, examples: [...(example ? [example] : []), ...examples] };
    },
  };
}

/** Reads the accounts of the run's merchants and checkout systems. Returns the id of an account by its client id. */
async function readAccounts(databaseUrl: string, calls: readonly JournaledCall[], { client_ids }: JournalHead) {
  const clientIds = new Set(client_ids);
  for (const { request } of calls) {
    if (request.kind === 'pay') clientIds.add(request.payment.checkout);
    if (request.kind === 'start' || request.kind === 'end') clientIds.add(request.attempt.checkout);
  }
  const directory = openAccountDirectory({ url: databaseUrl });
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

/** The sweep stores an expiry within 5 seconds. Until then the stored status is the order's status. */
const sweptWithinMs = 10_000;

/** Reads all orders of the run, and passes each to `examine` with its events. */
async function* storedOrders(
  { client_ids, seed }: JournalHead,
  databaseUrl: string,
  accountOf: (clientId: string) => string,
  examine: (orderId: string, stored: ModelOrder, events: readonly StoredEvent[]) => void,
): AsyncGenerator<StoredOrder> {
  const sweptMs = Date.now() - sweptWithinMs;
  for (const [merchant, clientId] of client_ids.entries()) {
    const merchantId = Number(accountOf(clientId)) as ScannedOrder['order']['merchantId'];
    const scan = { merchantId, orderIdPrefix: orderIdPrefix(seed) };
    // Read before the orders: an order that expires in between must not have an event and be unpaid.
    const events = Map.groupBy(await Array.fromAsync(scanEvents(databaseUrl, scan)), ({ orderId }) => orderId);
    for await (const scanned of scanOrders(databaseUrl, scan)) {
      const { order } = scanned;
      const orderId = order.fields.order_id;
      const ofOrder = events.get(orderId) ?? [];
      examine(orderId, asSwept(storedOrderOf(order, ofOrder, ''), sweptMs), ofOrder);
      yield storedOrder(merchant, scanned);
    }
  }
}

/** The order as the sweep must have left it before a time. An order that expired later may be unpaid still, or lack its event. */
function asSwept(stored: ModelOrder, sweptMs: number): ModelOrder {
  const { status, expiresAtMs, lease, events } = stored;
  const expiryMs = expiresAtMs === null ? Number.POSITIVE_INFINITY : Math.max(expiresAtMs, lease?.endsAtMs ?? 0);
  if (status === 'UN_PAID' && expiryMs <= sweptMs) return { ...stored, status: 'EXPIRED' };
  const lacksEvent = status === 'EXPIRED' && !events.some(({ type }) => type === 'order.expired');
  if (!lacksEvent || expiryMs <= sweptMs) return stored;
  return { ...stored, events: [...events, { type: 'order.expired', atMs: expiryMs }] };
}
