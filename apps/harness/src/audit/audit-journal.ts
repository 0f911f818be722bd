import { formatAmount } from '@gateway/domain/money';
import { openMerchantDirectory } from '@gateway/postgres/merchant-directory';
import { scanOrders } from '@gateway/postgres/order-scan';
import type { JournalHead } from '../load/journal.ts';
import { holdJournal, type JournalAudit, type KeptOrder } from './hold-journal.ts';
import { readJournal } from './parse-journal.ts';

/** Holds a journal against the database that its gateway wrote to. Rejects when either cannot be read. */
export async function auditJournal(file: string, databaseUrl: string): Promise<JournalAudit> {
  const { head, entries, unreadable } = await readJournal(file);
  const counts = await holdJournal(entries, keptOrders(head, databaseUrl));
  const [first] = unreadable;
  const leftOut = first === undefined ? [] : [`line ${first} of the journal is no acknowledgement and was left out`];
  return { ...counts, unreadable: unreadable.length, examples: [...counts.examples, ...leftOut] };
}

async function* keptOrders({ clientIds, orderIdPrefix }: JournalHead, databaseUrl: string): AsyncGenerator<KeptOrder> {
  const directory = openMerchantDirectory({ url: databaseUrl });
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

/** What an audit found, in lines for a terminal. */
export function auditTold(counts: JournalAudit): string {
  const { acknowledged, kept, unacknowledged, lost, duplicated, changed, unreadable, examples } = counts;
  const verdict = `audit  ${acknowledged} acknowledged: ${lost} lost, ${duplicated} duplicated, ${changed} changed`;
  const context = `       ${kept} kept, ${unacknowledged} of them without an acknowledgement`;
  const leftOut = unreadable === 0 ? [] : [`       ${unreadable} unreadable in the journal`];
  return [verdict, context, ...leftOut, ...examples.map((example) => `       ${example}`), ''].join('\n');
}
