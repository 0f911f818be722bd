import { closeSync, createReadStream, fsyncSync, openSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type OrderStatus, orderStatuses } from '@gateway/domain/order';
import { z } from 'zod';

const headSchema = z.strictObject({ seed: z.int().min(0), client_ids: z.array(z.string()).min(1) });

/** The first line of a journal: from it and an order's number the audit makes again what was sent. */
export type JournalHead = z.infer<typeof headSchema>;

/** The number of the order in the run, its status, and when the call was due and its response came. */
const seen = [z.int().min(0), z.enum(orderStatuses), z.number(), z.number()] as const;

/** Lines are arrays, not objects, because a soak run writes millions. What follows the first four says what else was shown. */
const lineSchema = z.union([
  z.tuple([...seen]),
  z.tuple([...seen, z.string()]),
  z.tuple([...seen, z.int().min(1), z.string(), z.string()]),
]);

/** An order as a response showed it. Times are milliseconds since the run's start. */
export interface JournalEntry {
  /** The order's number in the run. */
  readonly number: number;
  readonly status: OrderStatus;
  /** When the call was due. */
  readonly dueMs: number;
  readonly receivedMs: number;
  /** What paid it, where the response says so. */
  readonly paymentId?: string | undefined;
  /** Of a response to its creation. */
  readonly created?: { readonly service_order_id: number; readonly order_token: string; readonly created_at: string };
}

/** Stores what was acknowledged in a file. */
export interface Journal {
  /**
   * Passes entries to the operating system before it returns: a process that is killed afterwards has lost none of them. A
   * power cut before {@link close} may lose the last seconds. Throws where not all of it fits on the disk.
   */
  write(entries: readonly JournalEntry[]): void;
  /** Waits for the disk. */
  close(): void;
}

/** Creates a journal. Throws where the file exists: a journal belongs to one run. */
export function createJournal(file: string, head: JournalHead): Journal {
  const descriptor = openSync(file, 'wx');
  append(descriptor, `${JSON.stringify(head)}\n`);
  return {
    write(entries) {
      if (entries.length > 0) append(descriptor, entries.map(lineOf).join(''));
    },
    close() {
      fsyncSync(descriptor);
      closeSync(descriptor);
    },
  };
}

/** A journal as it was read. */
export interface ReadJournal {
  readonly head: JournalHead;
  readonly entries: readonly JournalEntry[];
  /** The numbers of the lines that are no entries, such as one that a killed process left incomplete. */
  readonly unreadable: readonly number[];
}

/** Reads a journal. Rejects where its first line is not that of a journal. */
export async function readJournal(file: string): Promise<ReadJournal> {
  const entries: JournalEntry[] = [];
  const unreadable: number[] = [];
  let head: JournalHead | undefined;
  let number = 0;
  for await (const line of createInterface({ input: createReadStream(file, 'utf8') })) {
    number += 1;
    if (head === undefined) {
      head = headSchema.safeParse(jsonIn(line)).data;
      if (head === undefined) break;
      continue;
    }
    const entry = lineSchema.safeParse(jsonIn(line));
    if (entry.success) entries.push(entryOf(entry.data));
    else unreadable.push(number);
  }
  if (head === undefined) throw new Error(`${file} is not a journal: its first line has no seed and client_ids`);
  return { head, entries, unreadable };
}

function lineOf({ number, status, dueMs, receivedMs, paymentId, created }: JournalEntry): string {
  const { service_order_id, order_token, created_at } = created ?? {};
  const more = created ? [service_order_id, order_token, created_at] : paymentId === undefined ? [] : [paymentId];
  return `${JSON.stringify([number, status, Math.floor(dueMs), Math.ceil(receivedMs), ...more])}\n`;
}

function entryOf([number, status, dueMs, receivedMs, ...more]: z.infer<typeof lineSchema>): JournalEntry {
  const entry = { number, status, dueMs, receivedMs };
  if (more.length === 0) return entry;
  if (more.length === 1) return { ...entry, paymentId: more[0] };
  const [service_order_id, order_token, created_at] = more;
  return { ...entry, created: { service_order_id, order_token, created_at } };
}

function append(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  const written = writeSync(descriptor, bytes);
  if (written < bytes.length)
    throw new Error(`the journal took ${written} of ${bytes.length} bytes: is the disk full?`);
}

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
