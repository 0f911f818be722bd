import { closeSync, createReadStream, fsyncSync, openSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { disputeStatuses, orderStatuses, refundStatuses } from '@order-gateway/domain/orders';
import { z } from 'zod';

const headSchema = z.strictObject({
  seed: z.int().min(0),
  client_ids: z.array(z.string()).min(1),
  metadata_share: z.number().optional(),
  /** The start of the run, from which the journal's times count, in milliseconds since 1970. */
  started_at_ms: z.number().min(0),
});

/** The first line of a journal. From it and an order's number, the audit regenerates the order that was sent. */
export type JournalHead = z.infer<typeof headSchema>;

const text = z.string();
const attempt = z.strictObject({ checkout: text, attemptId: text });

/** The request of a call. Checkout systems are identified by their client ids. */
const requestSchema = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('create') }),
  z.strictObject({ kind: z.literal('read') }),
  z.strictObject({ kind: z.literal('cancel') }),
  z.strictObject({ kind: z.literal('start'), attempt, leaseMs: z.int() }),
  z.strictObject({ kind: z.literal('end'), attempt }),
  z.strictObject({
    kind: z.literal('pay'),
    payment: z.strictObject({ checkout: text, paymentId: text, paidAtMs: z.int(), amount: text, currency: text }),
    attempt: attempt.optional(),
  }),
  z.strictObject({ kind: z.literal('refund'), refundId: text, amount: text.optional() }),
  z.strictObject({
    kind: z.literal('record refund'),
    checkout: text,
    paymentId: text,
    refundId: text.nullable(),
    providerId: text.nullable(),
    amount: text,
    status: z.enum(refundStatuses),
    refundedAtMs: z.int().optional(),
    reason: text.optional(),
  }),
  z.strictObject({ kind: z.literal('fail refund'), refundId: text }),
  z.strictObject({
    kind: z.literal('record dispute'),
    checkout: text,
    paymentId: text,
    disputeId: text,
    amount: text,
    currency: text,
    status: z.enum(disputeStatuses),
    reason: text.optional(),
  }),
]);

/** The request of a call about orders of the run. */
export type JournalRequest = z.infer<typeof requestSchema>;

/** A call that is about to be sent. Times are milliseconds since the run's start. */
const callSchema = z.strictObject({
  call: z.int().min(0),
  sentMs: z.int(),
  /** The order's number in the run; absent for a list. */
  number: z.int().min(0).optional(),
  request: requestSchema,
});

const shownSchema = z.strictObject({
  number: z.int().min(0),
  status: z.enum(orderStatuses),
  service_order_id: z.int().min(1),
  order_token: text.optional(),
  created_at: text.optional(),
  paymentId: text.optional(),
  /** Absent if the response does not show refused payments. */
  refusedIds: z.array(text).optional(),
  /** The refunds and disputes; absent if the response does not show them. */
  reversals: z.array(text).optional(),
});

/** The response to a call of an earlier line. */
const responseSchema = z.strictObject({
  call: z.int().min(0),
  receivedMs: z.int(),
  outcome: text,
  /** The run's orders as the response showed them. */
  shown: z.array(shownSchema).default([]),
  leaseEndsAtMs: z.int().optional(),
  /** The refund or dispute as the response showed it. */
  reversal: text.optional(),
});

/** An order as a response showed it. */
export type ShownOrder = z.infer<typeof shownSchema>;

/** The journal line of a call. */
export type JournalCall = z.infer<typeof callSchema>;

/** The journal line of a response. */
export type JournalResponse = z.infer<typeof responseSchema>;

/** A call with its response, if the journal has one. */
export interface JournaledCall extends JournalCall {
  response?: JournalResponse;
}

/** Stores calls and responses in a file. */
export type Journal = ReturnType<typeof createJournal>;

/** Creates a journal. Throws if the file exists, because a journal belongs to one run. */
export function createJournal(file: string, head: JournalHead) {
  const descriptor = openSync(file, 'wx');
  writeFileSync(descriptor, lineOf(head));
  return {
    /**
     * Passes the lines to the operating system before it returns, so a process that is killed afterwards loses none of
     * them. A power failure before `close` may lose the lines of the last seconds. Throws if the disk is full.
     */
    write(lines: readonly (JournalCall | JournalResponse)[]): void {
      writeFileSync(descriptor, lines.map(lineOf).join(''));
    },
    /** Waits until the file is on disk, and closes it. */
    close(): void {
      fsyncSync(descriptor);
      closeSync(descriptor);
    },
  };
}

/**
 * Reads a journal. Returns its head, its calls with their responses, and the numbers of its unreadable lines. Rejects
 * if its first line is not a {@link JournalHead}.
 */
export async function readJournal(file: string) {
  const calls = new Map<number, JournaledCall>();
  /** The numbers of the lines that are neither a call nor the response to one, such as an incomplete last line. */
  const unreadable: number[] = [];
  let head: JournalHead | undefined;
  let number = 0;
  for await (const line of createInterface({ input: createReadStream(file, 'utf8') })) {
    number += 1;
    const value = jsonIn(line);
    if (head === undefined) {
      head = headSchema.safeParse(value).data;
      if (head === undefined) break;
      continue;
    }
    const call = callSchema.safeParse(value).data;
    const response = call === undefined ? responseSchema.safeParse(value).data : undefined;
    const respondedCall = response && calls.get(response.call);
    if (call !== undefined) calls.set(call.call, call);
    else if (respondedCall !== undefined) respondedCall.response = response as JournalResponse;
    else unreadable.push(number);
  }
  if (head === undefined) throw new Error(`${file} is not a journal: its first line has no seed and client_ids`);
  return { head, calls: [...calls.values()], unreadable };
}

function lineOf(value: JournalHead | JournalCall | JournalResponse): string {
  return `${JSON.stringify(value)}\n`;
}

function jsonIn(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
