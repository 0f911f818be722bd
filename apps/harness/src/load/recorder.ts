import type { Protocol as Door } from '@gateway/fixtures/client';
import type { Journal } from './journal.ts';
import { bandEndsMs, bandOf, createLatencies, type Latencies } from './latencies.ts';
import type { LoadCall } from './make-calls.ts';
import { isAnswer, type Reply, refusedReply, timedOut } from './senders/sender.ts';

/** What one process saw in one second of a run; the parts of all processes are added up. */
export interface SecondPart {
  /** Counted from 0. */
  readonly second: number;
  readonly sent: number;
  readonly dropped: number;
  /** Calls without an answer when the part was closed. */
  readonly underWay: number;
  /** Calls that were given up without an answer as the run ended. */
  readonly unanswered: number;
  /** How often each outcome came, and how often it was a wrong one. */
  readonly outcomes: Readonly<Record<string, { readonly count: number; readonly wrong: number }>>;
  /** Encoded latencies by door, counted from when calls were due. */
  readonly latencies: { readonly [Name in Door]?: string };
  /** Encoded: how late calls were sent. */
  readonly lateness: string;
  /** Answers in each latency band. */
  readonly bands: readonly number[];
}

/** Where the executors tell what happens. */
export interface Recorder {
  readonly underWay: number;
  /** A call was sent, so long after it was due. */
  sent(lateMs: number): void;
  dropped(): void;
  /** A call came to its end. It is counted as soon as the journal holds its acknowledgement, if it got one. */
  answered(call: LoadCall, reply: Reply, latencyMs: number): void;
  /** All calls under way are given up. */
  giveUp(): void;
  /** Gives what came together since the last time. */
  closeSecond(second: number): SecondPart;
}

interface Answered {
  readonly call: LoadCall;
  readonly reply: Reply;
  readonly latencyMs: number;
}

/**
 * Counts what happens. Answers that arrive in one turn of the event loop are written to the journal together and counted after
 * that, so that nothing is counted that the journal does not hold.
 */
export function createRecorder(journal: Pick<Journal, 'write'> | undefined): Recorder {
  let current = emptySecond();
  let underWay = 0;
  let waiting: Answered[] = [];

  const flush = () => {
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) return;
    journal?.write(batch.flatMap(({ call, reply }) => acknowledgement(call, reply)));
    for (const answered of batch) count(current, answered);
  };

  return {
    get underWay() {
      return underWay;
    },
    sent(lateMs) {
      underWay += 1;
      current.sent += 1;
      current.lateness.record(lateMs);
    },
    dropped() {
      current.dropped += 1;
    },
    answered(call, reply, latencyMs) {
      underWay -= 1;
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ call, reply: checked(call, reply), latencyMs });
    },
    giveUp() {
      current.unanswered += underWay;
      underWay = 0;
    },
    closeSecond(second) {
      flush();
      const { sent, dropped, unanswered, outcomes, bands } = current;
      const lateness = current.lateness.encode();
      const latencies = Object.fromEntries([...current.latencies].map(([door, kept]) => [door, kept.encode()]));
      current = emptySecond();
      return { second, sent, dropped, underWay, unanswered, outcomes, latencies, lateness, bands };
    },
  };
}

interface OpenSecond {
  sent: number;
  dropped: number;
  unanswered: number;
  readonly outcomes: Record<string, { count: number; wrong: number }>;
  readonly latencies: Map<Door, Latencies>;
  readonly lateness: Latencies;
  readonly bands: number[];
}

function emptySecond(): OpenSecond {
  return {
    ...{ sent: 0, dropped: 0, unanswered: 0, outcomes: {}, latencies: new Map(), lateness: createLatencies() },
    bands: Array.from({ length: bandEndsMs.length + 1 }, () => 0),
  };
}

function count(second: OpenSecond, { call, reply, latencyMs }: Answered): void {
  second.outcomes[reply.outcome] ??= { count: 0, wrong: 0 };
  const outcome = second.outcomes[reply.outcome];
  if (outcome !== undefined) {
    outcome.count += 1;
    if (!call.expected.includes(reply.outcome)) outcome.wrong += 1;
  }
  // A refused or broken connection would look like a quick answer; what nobody answered in time was slow, whatever it became.
  if (!isAnswer(reply.outcome) && reply.outcome !== timedOut) return;
  const band = bandOf(latencyMs);
  second.bands[band] = (second.bands[band] ?? 0) + 1;
  let latencies = second.latencies.get(call.door);
  if (latencies === undefined) {
    latencies = createLatencies();
    second.latencies.set(call.door, latencies);
  }
  latencies.record(latencyMs);
}

/** An acknowledgement of another order than the one that was sent is none. */
function checked(call: LoadCall, reply: Reply): Reply {
  const { acknowledged } = reply;
  if (acknowledged === undefined || acknowledged.orderId === call.order?.orderId) return reply;
  return refusedReply(call.order === undefined ? 'an order that must be refused was taken' : 'another order’s answer');
}

function acknowledgement({ order }: LoadCall, { acknowledged }: Reply) {
  if (order === undefined || acknowledged === undefined) return [];
  const { serviceOrderId, orderToken } = acknowledged;
  return [{ merchant: order.merchant, orderId: order.orderId, amount: order.amount, serviceOrderId, orderToken }];
}
