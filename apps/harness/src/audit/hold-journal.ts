import type { JournalEntry } from '../load/journal.ts';

/** An order as the database keeps it, in the words of the journal. */
export type KeptOrder = JournalEntry;

/** What an audit found. */
export interface AuditCounts {
  /** Orders that were acknowledged, each counted once. */
  readonly acknowledged: number;
  /** Orders of the run in the database. */
  readonly kept: number;
  /** Kept without an acknowledgement: their answers were lost on the way, or the run was stopped first. No fault. */
  readonly unacknowledged: number;
  /** Acknowledged and not kept. */
  readonly lost: number;
  /** Kept, or acknowledged as one kept order, more than once: an id, a token or a service order id with two orders. */
  readonly duplicated: number;
  /** Kept with another id, token or amount than some acknowledgement of theirs said. */
  readonly changed: number;
  /** The first few orders at fault, and how; and what was left out of the audit. */
  readonly examples: readonly string[];
}

/** What was found of a whole journal. */
export interface JournalAudit extends AuditCounts {
  /** Lines of the journal that are no acknowledgement: it is not known whether what they told of is kept. */
  readonly unreadable: number;
}

/** How much keeps an audit from being clean. */
export function faultsIn({ lost, duplicated, changed, unreadable }: JournalAudit): number {
  return lost + duplicated + changed + unreadable;
}

const examplesMax = 20;

/**
 * Holds what was acknowledged against what is kept. `kept` gives every order of the run, of all its merchants, and may give them
 * in any order.
 */
export async function holdJournal(
  entries: AsyncIterable<JournalEntry> | Iterable<JournalEntry>,
  kept: AsyncIterable<KeptOrder> | Iterable<KeptOrder>,
): Promise<AuditCounts> {
  const acknowledged = new Map<string, JournalEntry>();
  const changed = new Set<string>();
  const duplicated = new Set<string>();
  const examples: string[] = [];
  const fault = (kind: Set<string>, { orderId }: JournalEntry, told: string) => {
    if (!kind.has(orderId) && examples.length < examplesMax) examples.push(`${orderId}: ${told}`);
    kind.add(orderId);
  };
  for await (const entry of entries) {
    const before = acknowledged.get(entry.orderId);
    const difference = before && differenceOf(before, entry);
    if (difference !== undefined) fault(changed, entry, `acknowledged twice, and not with the same ${difference}`);
    if (before === undefined) acknowledged.set(entry.orderId, entry);
  }
  const found = new Set<string>();
  const owners = { token: new Map<string, string>(), serviceOrderId: new Map<string, string>() };
  let keptCount = 0;
  for await (const order of kept) {
    keptCount += 1;
    if (found.has(order.orderId)) fault(duplicated, order, 'kept more than once');
    found.add(order.orderId);
    claim(owners.token, order.orderToken, order, () => fault(duplicated, order, 'its token is another order’s too'));
    // Unique for each merchant is all that the table promises, and unique for all is what the gateway hands out.
    claim(owners.serviceOrderId, String(order.serviceOrderId), order, () =>
      fault(duplicated, order, 'its service order id is another order’s too'),
    );
    const said = acknowledged.get(order.orderId);
    const difference = said && differenceOf(said, order);
    if (difference !== undefined) fault(changed, order, `kept with another ${difference} than was acknowledged`);
  }
  const lost = new Set<string>();
  for (const entry of acknowledged.values()) {
    if (!found.has(entry.orderId)) fault(lost, entry, 'acknowledged and not kept');
  }
  return {
    acknowledged: acknowledged.size,
    kept: keptCount,
    unacknowledged: [...found].filter((orderId) => !acknowledged.has(orderId)).length,
    ...{ lost: lost.size, duplicated: duplicated.size, changed: changed.size, examples },
  };
}

function claim(owners: Map<string, string>, key: string, { orderId }: KeptOrder, taken: () => void): void {
  const owner = owners.get(key);
  if (owner === undefined) owners.set(key, orderId);
  else if (owner !== orderId) taken();
}

function differenceOf(one: JournalEntry, other: JournalEntry): string | undefined {
  if (one.merchant !== other.merchant) return 'merchant';
  if (one.serviceOrderId !== other.serviceOrderId) return 'service order id';
  if (one.orderToken !== other.orderToken) return 'token';
  return one.amount === other.amount ? undefined : 'amount';
}
