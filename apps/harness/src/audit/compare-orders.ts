/** An expected or stored order: its merchant's position in the run, and every member that was sent or returned. */
export interface AuditedOrder {
  readonly merchant: number;
  readonly members: Readonly<Record<string, string | number>>;
}

/** An order in the database. */
export interface StoredOrder extends AuditedOrder {
  /** Names of members that must be unique but have the same value in another order. */
  readonly sharedFields: readonly string[];
}

export interface AuditCounts {
  /** Orders that were acknowledged, each counted once. */
  readonly acknowledged: number;
  /** Orders of the run in the database. */
  readonly stored: number;
  /** Orders stored without an acknowledgement. They are not errors: the response was lost, or the run ended first. */
  readonly unacknowledged: number;
  /** Orders that were acknowledged but are not stored. */
  readonly lost: number;
  /** Orders with the order_id of another order of the run, or with the token or service_order_id of any other order. */
  readonly duplicated: number;
  /** Orders stored with a value that differs from the one sent or returned. The status is not compared. */
  readonly changed: number;
  /** The first few errors: the order_id, and what is wrong. */
  readonly examples: readonly string[];
}

/** The maximum number of errors that are shown. */
export const examplesMax = 20;

/**
 * Compares acknowledgements with stored orders, both in any order. `expectedOf` returns the order of an
 * acknowledgement. It is called repeatedly, because the orders of a soak run do not fit into memory. `stored` must
 * yield every order of the run.
 */
export async function compareOrders<Entry>(
  entries: Iterable<Entry>,
  expectedOf: (entry: Entry) => AuditedOrder,
  stored: AsyncIterable<StoredOrder> | Iterable<StoredOrder>,
): Promise<AuditCounts> {
  const errors = { lost: new Set<string>(), duplicated: new Set<string>(), changed: new Set<string>() };
  const examples: string[] = [];
  const report = (kind: keyof typeof errors, orderId: string, problem: string) => {
    if (!errors[kind].has(orderId) && examples.length < examplesMax) examples.push(`${orderId}: ${problem}`);
    errors[kind].add(orderId);
  };
  const acknowledged = new Map<string, Entry>();
  for (const entry of entries) {
    const order = expectedOf(entry);
    const first = acknowledged.get(idOf(order));
    const names = first === undefined ? [] : differingNames(expectedOf(first), order);
    if (names.length > 0) report('changed', idOf(order), `acknowledged twice, with different ${names.join(', ')}`);
    if (first === undefined) acknowledged.set(idOf(order), entry);
  }
  const found = new Set<string>();
  let storedCount = 0;
  for await (const order of stored) {
    const orderId = idOf(order);
    storedCount += 1;
    if (found.has(orderId)) report('duplicated', orderId, 'stored more than once');
    found.add(orderId);
    for (const name of order.sharedFields) report('duplicated', orderId, `has the ${name} of another order`);
    const entry = acknowledged.get(orderId);
    const names = entry === undefined ? [] : differingNames(expectedOf(entry), order);
    if (names.length > 0) report('changed', orderId, `stored with a different ${names.join(', ')}`);
  }
  for (const orderId of acknowledged.keys()) {
    if (!found.has(orderId)) report('lost', orderId, 'acknowledged but not stored');
  }
  return {
    acknowledged: acknowledged.size,
    stored: storedCount,
    unacknowledged: [...found].filter((orderId) => !acknowledged.has(orderId)).length,
    lost: errors.lost.size,
    duplicated: errors.duplicated.size,
    changed: errors.changed.size,
    examples,
  };
}

function idOf({ members }: AuditedOrder): string {
  return String(members.order_id);
}

function differingNames(expected: AuditedOrder, actual: AuditedOrder): string[] {
  const names = new Set([...Object.keys(expected.members), ...Object.keys(actual.members)]);
  const differing = [...names].filter((name) => expected.members[name] !== actual.members[name]);
  return expected.merchant === actual.merchant ? differing : ['merchant', ...differing];
}
