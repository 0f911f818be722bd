import { formatAmount } from '@gateway/domain/money';
import { openClientDirectory } from '@gateway/postgres/client-directory';
import { scanOrders } from '@gateway/postgres/order-scan';
import type { JournalHead } from '../load/journal.ts';
import { type AuditCounts, holdJournal, type KeptOrder } from './hold-journal.ts';
import { readJournal } from './parse-journal.ts';

/** Holds a journal against the database that its gateway wrote to. Rejects when either cannot be read. */
export async function auditJournal(file: string, databaseUrl: string): Promise<AuditCounts> {
  const { head, entries, cut } = await readJournal(file);
  const counts = await holdJournal(entries, keptOrders(head, databaseUrl));
  const leftOut = cut ? ['the last line of the journal is cut short and was left out'] : [];
  return { ...counts, examples: [...counts.examples, ...leftOut] };
}

async function* keptOrders({ clientIds, orderIdPrefix }: JournalHead, databaseUrl: string): AsyncGenerator<KeptOrder> {
  const directory = openClientDirectory(databaseUrl);
  try {
    for (const [merchant, clientId] of clientIds.entries()) {
      const lookup = await directory.findClient(clientId);
      if (lookup.kind === 'unknown') throw new Error(`the database has no client ${clientId}: is it the gateway's?`);
      if (lookup.kind !== 'found') throw new Error(`the database is ${lookup.kind}`);
      const scan = { merchantId: lookup.client.merchant.id, orderIdPrefix };
      for await (const { fields, serviceOrderId, orderToken } of scanOrders(databaseUrl, scan)) {
        const amount = formatAmount(fields.order_amount);
        yield { merchant, orderId: fields.order_id, amount, serviceOrderId, orderToken };
      }
    }
  } finally {
    await directory.close();
  }
}

/** Whether everything acknowledged is there, once and unchanged. */
export function isClean({ lost, duplicated, changed }: AuditCounts): boolean {
  return lost + duplicated + changed === 0;
}

/** What an audit found, in lines for a terminal. */
export function auditTold(counts: AuditCounts): string {
  const { acknowledged, kept, unacknowledged, lost, duplicated, changed, examples } = counts;
  const verdict = `audit  ${acknowledged} acknowledged: ${lost} lost, ${duplicated} duplicated, ${changed} changed`;
  const context = `       ${kept} kept, ${unacknowledged} of them without an acknowledgement`;
  return [verdict, context, ...examples.map((example) => `       ${example}`), ''].join('\n');
}
