import { formatAmount } from '@gateway/domain/money';
import { formatTime, type Order } from '@gateway/domain/order';
import { loadFixtures } from '@gateway/fixtures/load-fixtures';
import { openMerchantDirectory } from '@gateway/postgres/merchant-directory';
import { scanOrders } from '@gateway/postgres/order-scan';
import { columns } from '../command/text.ts';
import { createOrders, orderIdPrefix, type SentOrder } from '../workload/orders.ts';
import { type AuditCounts, type AuditedOrder, compareOrders } from './compare.ts';
import { type JournalEntry, type JournalHead, readJournal } from './journal.ts';

/** What the audit of a journal found. */
export interface AuditResult extends AuditCounts {
  /** Lines of the journal that are not acknowledgements: whether their orders are stored is unknown. */
  readonly unreadable: number;
}

/** Compares a journal with the database of the gateway that the run was sent to. Rejects when either cannot be read. */
export async function auditJournal(file: string, databaseUrl: string): Promise<AuditResult> {
  const { head, entries, unreadable } = await readJournal(file);
  const { validOrder } = await loadFixtures();
  const orderOf = createOrders(validOrder, { seed: head.seed, merchants: head.client_ids.length });
  const expectedOf = (entry: JournalEntry) => acknowledgedOrder(entry, orderOf(entry.number));
  const counts = await compareOrders(entries, expectedOf, storedOrders(head, databaseUrl));
  const [first] = unreadable;
  const leftOut = first === undefined ? [] : [`line ${first} of the journal is not an acknowledgement`];
  return { ...counts, unreadable: unreadable.length, examples: [...counts.examples, ...leftOut] };
}

/** The number of errors; 0 means that every acknowledged order is stored once and unchanged. */
export function auditErrors({ lost, duplicated, changed, unreadable }: AuditResult): number {
  return lost + duplicated + changed + unreadable;
}

/** What an audit found as a heading and a row. */
export function auditTable(result: AuditResult) {
  const head = ['acknowledged', 'lost', 'duplicated', 'changed', 'unreadable', 'stored', 'unacknowledged'] as const;
  return { head, rows: [head.map((name) => String(result[name]))] };
}

/** Formats what an audit found for a terminal. */
export function formatAudit(result: AuditResult): string {
  const { head, rows } = auditTable(result);
  const table = columns([['audit', ...head], ...rows.map((row) => ['', ...row])]);
  return [table, ...result.examples.map((example) => `  ${example}`), ''].join('\n');
}

/** An acknowledged order as it must be stored. */
export function acknowledgedOrder({ response }: JournalEntry, { merchant, fields }: SentOrder): AuditedOrder {
  return { merchant, members: { ...fields, ...response } };
}

/** A stored order with the members of the interface. */
export function storedOrder(merchant: number, order: Order): AuditedOrder {
  return {
    merchant,
    members: {
      ...order.fields,
      order_amount: formatAmount(order.fields.order_amount),
      service_order_id: order.serviceOrderId,
      order_token: order.orderToken,
      created_at: formatTime(order.createdAtMs),
      order_status: order.orderStatus,
    },
  };
}

async function* storedOrders({ client_ids, seed }: JournalHead, databaseUrl: string): AsyncGenerator<AuditedOrder> {
  const directory = openMerchantDirectory({ url: databaseUrl });
  try {
    for (const [merchant, clientId] of client_ids.entries()) {
      const lookup = await directory.findClient(clientId);
      if (lookup.kind !== 'found') throw new Error(`the client ${clientId} is ${lookup.kind} in the database`);
      const scan = { merchantId: lookup.client.account.id, orderIdPrefix: orderIdPrefix(seed) };
      for await (const order of scanOrders(databaseUrl, scan)) yield storedOrder(merchant, order);
    }
  } finally {
    await directory.close();
  }
}
