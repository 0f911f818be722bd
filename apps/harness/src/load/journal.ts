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

/**
 * Keeps acknowledgements in a file of one JSON array a line, which more than one process may append to: every line brings the
 * line break before it, so that what a killed process left of its last line spoils no line of another's.
 */
export interface Journal {
  /**
   * Hands entries to the operating system before it returns: a process that is killed afterwards has lost none of them. They
   * are on the disk after {@link close}; a machine that loses power before that may lose the last seconds. Throws where not all
   * of it fits on the disk.
   */
  write(entries: readonly JournalEntry[]): void;
  /** Waits for the disk. */
  close(): void;
}

/** Starts a journal. Rejects a file that is there already: an audit of two runs in one file would be of neither. */
export function startJournal(file: string, head: JournalHead): void {
  const descriptor = openSync(file, 'wx');
  append(descriptor, JSON.stringify({ order_id_prefix: head.orderIdPrefix, client_ids: head.clientIds }));
  closeSync(descriptor);
}

/** Opens a journal that was started, to append to it. */
export function openJournal(file: string): Journal {
  const descriptor = openSync(file, 'a');
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

/** Arrays and short, as a soak run writes millions. `parseJournal` is the other side. */
function lineOf({ merchant, orderId, amount, serviceOrderId, orderToken }: JournalEntry): string {
  return `\n${JSON.stringify([merchant, orderId, serviceOrderId, orderToken, amount])}`;
}

/** In one piece: the rest of a line that was written later could stand behind another process's. */
function append(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  const written = writeSync(descriptor, bytes);
  if (written < bytes.length)
    throw new Error(`the journal took ${written} of ${bytes.length} bytes: is the disk full?`);
}
