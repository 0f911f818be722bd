import { closeSync, createReadStream, fsyncSync, openSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { orderStatuses } from '@order-gateway/domain/orders/order';
import { z } from 'zod';

const headSchema = z.strictObject({
  seed: z.int().min(0),
  client_ids: z.array(z.string()).min(1),
  metadata_share: z.number().optional(),
});

/** The first line of a journal: from it and an order's number the audit regenerates what was sent. */
export type JournalHead = z.infer<typeof headSchema>;

const entrySchema = z.strictObject({
  /** The order's number in the run. */
  number: z.int().min(0),
  status: z.enum(orderStatuses),
  scheduledMs: z.int(),
  receivedMs: z.int(),
  /** The payment, if the response shows it. */
  paymentId: z.string().optional(),
  /** Present in the response to its creation. */
  created: z
    .strictObject({ service_order_id: z.int().min(1), order_token: z.string(), created_at: z.string() })
    .optional(),
});

/** An order as a response showed it, a line of the journal. Times are milliseconds since the run's start. */
export type JournalEntry = z.infer<typeof entrySchema>;

/** Stores acknowledgements in a file. */
export type Journal = ReturnType<typeof createJournal>;

/** Creates a journal. Throws if the file exists, because a journal belongs to one run. */
export function createJournal(file: string, head: JournalHead) {
  const descriptor = openSync(file, 'wx');
  writeFileSync(descriptor, lineOf(head));
  return {
    /**
     * Passes entries to the operating system before it returns: a process that is killed afterwards has lost none of them. A
     * power cut before `close` may lose the last seconds. Throws if the disk is full.
     */
    write(entries: readonly JournalEntry[]): void {
      if (entries.length > 0) writeFileSync(descriptor, entries.map(lineOf).join(''));
    },
    /** Waits for the disk. */
    close(): void {
      fsyncSync(descriptor);
      closeSync(descriptor);
    },
  };
}

/** Reads a journal. Rejects if its first line is not a journal's. */
export async function readJournal(file: string) {
  const entries: JournalEntry[] = [];
  /** The numbers of the lines that are not entries, such as one that a killed process left incomplete. */
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
    const entry = entrySchema.safeParse(jsonIn(line));
    if (entry.success) entries.push(entry.data);
    else unreadable.push(number);
  }
  if (head === undefined) throw new Error(`${file} is not a journal: its first line has no seed and client_ids`);
  return { head, entries, unreadable };
}

function lineOf(value: JournalHead | JournalEntry): string {
  return `${JSON.stringify(value)}\n`;
}

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
