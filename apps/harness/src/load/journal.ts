import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';

/** One acknowledged order, as the journal keeps it. */
export interface JournalEntry {
  /** The place of its merchant in the journal's first line. */
  readonly merchant: number;
  readonly orderId: string;
  /** As it was sent, with two decimals. */
  readonly amount: string;
  readonly serviceOrderId: number;
  readonly orderToken: string;
}

/** The first line of a journal: what its entries are about. */
export interface JournalHead {
  /** What the order ids of the run, and of no other, begin with. */
  readonly orderIdPrefix: string;
  /** The client ids of the merchants. */
  readonly clientIds: readonly string[];
}

/** Keeps acknowledgements in a file of one JSON array a line, which more than one process may append to. */
export interface Journal {
  /**
   * Hands entries to the operating system before it returns: a process that is killed afterwards has lost none of them. They
   * are on the disk after {@link close}; a machine that loses power before that may lose the last seconds.
   */
  write(entries: readonly JournalEntry[]): void;
  /** Waits for the disk. */
  close(): void;
}

/** Starts a journal. Rejects a file that is there already: an audit of two runs in one file would be of neither. */
export function startJournal(file: string, head: JournalHead): void {
  const descriptor = openSync(file, 'wx');
  writeAll(descriptor, `${JSON.stringify({ order_id_prefix: head.orderIdPrefix, client_ids: head.clientIds })}\n`);
  closeSync(descriptor);
}

/** Opens a journal that was started, to append to it. */
export function openJournal(file: string): Journal {
  const descriptor = openSync(file, 'a');
  return {
    write(entries) {
      if (entries.length > 0) writeAll(descriptor, entries.map(lineOf).join(''));
    },
    close() {
      fsyncSync(descriptor);
      closeSync(descriptor);
    },
  };
}

/** Arrays and short, as a soak run writes millions. `parseJournal` is the other side. */
function lineOf({ merchant, orderId, amount, serviceOrderId, orderToken }: JournalEntry): string {
  return `${JSON.stringify([merchant, orderId, serviceOrderId, orderToken, amount])}\n`;
}

function writeAll(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
}
