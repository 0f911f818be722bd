import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { JournalEntry, JournalHead } from '../load/journal.ts';

/** A journal that cannot be held against anything: its file and line, and why. */
class JournalFault extends Error {
  constructor(file: string, line: number, reason: string) {
    super(`${file}, line ${line}: ${reason}`);
  }
}

export interface ReadJournal {
  readonly head: JournalHead;
  readonly entries: readonly JournalEntry[];
  /** Whether the last line is cut short, as a machine that lost power leaves it. It is left out. */
  readonly cut: boolean;
}

/** Reads a journal. Rejects with a JournalFault for the first bad line. */
export async function readJournal(file: string): Promise<ReadJournal> {
  const entries: JournalEntry[] = [];
  let head: JournalHead | undefined;
  let bad: JournalFault | undefined;
  let number = 0;
  for await (const line of createInterface({
    input: createReadStream(file, 'utf8'),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    number += 1;
    // Only the last line may be cut.
    if (bad !== undefined) throw bad;
    if (head === undefined) {
      head = headIn(line);
      if (head === undefined) throw new JournalFault(file, number, 'is not the first line of a journal');
      continue;
    }
    const entry = entryIn(line, head);
    if (entry === undefined) bad = new JournalFault(file, number, 'is not an acknowledgement of one of its merchants');
    else entries.push(entry);
  }
  if (head === undefined) throw new JournalFault(file, 1, 'the file is empty');
  return { head, entries, cut: bad !== undefined };
}

function headIn(line: string): JournalHead | undefined {
  const value = jsonIn(line);
  if (typeof value !== 'object' || value === null) return undefined;
  const orderIdPrefix: unknown = Reflect.get(value, 'order_id_prefix');
  const clientIds: unknown = Reflect.get(value, 'client_ids');
  const told = typeof orderIdPrefix === 'string' && orderIdPrefix !== '' && Array.isArray(clientIds);
  return told && clientIds.every((id) => typeof id === 'string') ? { orderIdPrefix, clientIds } : undefined;
}

function entryIn(line: string, { orderIdPrefix, clientIds }: JournalHead): JournalEntry | undefined {
  const value = jsonIn(line);
  if (!Array.isArray(value) || value.length !== 5) return undefined;
  const [merchant, orderId, serviceOrderId, orderToken, amount]: unknown[] = value;
  if (typeof merchant !== 'number' || clientIds[merchant] === undefined || !Number.isSafeInteger(serviceOrderId))
    return undefined;
  if (typeof orderId !== 'string' || !orderId.startsWith(orderIdPrefix)) return undefined;
  if (typeof orderToken !== 'string' || typeof amount !== 'string') return undefined;
  return { merchant, orderId, serviceOrderId: Number(serviceOrderId), orderToken, amount };
}

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
