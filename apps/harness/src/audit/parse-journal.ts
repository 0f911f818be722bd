import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { JournalEntry, JournalHead } from '../load/journal.ts';

export interface ReadJournal {
  readonly head: JournalHead;
  readonly entries: readonly JournalEntry[];
  /** The numbers of the lines that were left out, such as one that was cut short as its process was killed. */
  readonly unreadable: readonly number[];
}

/** Reads a journal. Rejects with an Error where the first line does not tell what the others are about. */
export async function readJournal(file: string): Promise<ReadJournal> {
  const entries: JournalEntry[] = [];
  let head: JournalHead | undefined;
  const unreadable: number[] = [];
  let number = 0;
  for await (const line of createInterface({
    input: createReadStream(file, 'utf8'),
    crlfDelay: Number.POSITIVE_INFINITY,
  })) {
    number += 1;
    if (head === undefined) {
      head = headIn(line);
      if (head === undefined) throw new Error(`${file}, line 1: is not the first line of a journal`);
      continue;
    }
    const entry = entryIn(line, head);
    if (entry === undefined) unreadable.push(number);
    else entries.push(entry);
  }
  if (head === undefined) throw new Error(`${file}, line 1: the file is empty`);
  return { head, entries, unreadable };
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
