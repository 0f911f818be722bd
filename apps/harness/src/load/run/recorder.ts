import type { Protocol } from '@order-gateway/fixtures';
import { shownReversals } from '@order-gateway/order-model/observed';
import type { Journal, JournalResponse } from '../../audit/journal.ts';
import { type LoadCall, requestOf } from '../calls/call-maker.ts';
import { isResponse, type Reply, timedOut } from '../calls/sender.ts';
import { createLatencies, type Latencies } from './latencies.ts';

/** Counts what happens in a run. Times are milliseconds since its start. */
export type Recorder = ReturnType<typeof createRecorder>;

/** The counts of one second of a run. Seconds are numbered from 0. Calls without a response are wrong. */
type SecondCounts = Record<'second' | 'sent' | 'done' | 'wrong' | 'dropped', number> & ReturnType<typeof percentilesOf>;

interface EndedCall {
  readonly call: LoadCall;
  /** The number of the call in the journal; `undefined` if the journal does not have it. */
  readonly journalNumber: number | undefined;
  readonly reply: Reply;
  readonly atMs: number;
  readonly latencyMs: number;
}

export interface RecorderOptions {
  /** The planned length of the run. */
  readonly plannedSeconds: number;
  readonly journal?: Pick<Journal, 'write'> | undefined;
  /** Returns the number of an order in the run, or `undefined` for an order of another run. */
  readonly numberOf?: (orderId: string) => number | undefined;
  /** Receives the error of a journal that cannot be written. */
  readonly onFailure?: (error: unknown) => void;
}

/**
 * Creates a recorder. Responses that arrive in the same turn of the event loop are written to the journal together and
 * counted afterwards, so a response that could not be written is not counted.
 */
export function createRecorder(options: RecorderOptions) {
  const { plannedSeconds, journal, numberOf = () => undefined, onFailure = () => {} } = options;
  const seconds = createSeconds(plannedSeconds);
  let waiting: EndedCall[] = [];
  /** The calls that have no response yet, with their numbers in the journal. */
  const journalNumbers = new Map<LoadCall, number>();
  let lastNumber = 0;
  const outcomes = new Map<string, { count: number; wrong: number }>();
  const byProtocol = new Map<Protocol, Latencies>();
  const slowest = createSlowestCalls();

  const count = ({ call, reply: { outcome, requestId }, atMs, latencyMs }: EndedCall) => {
    const second = seconds.at(atMs);
    const isRight = call.expected.includes(outcome);
    const counts = outcomes.get(outcome) ?? { count: 0, wrong: 0 };
    outcomes.set(outcome, { count: counts.count + 1, wrong: counts.wrong + (isRight ? 0 : 1) });
    if (isRight) recorder.right += 1;
    else {
      recorder.errors += 1;
      second.wrong += 1;
    }
    if (isResponse(outcome)) {
      recorder.done += 1;
      second.done += 1;
    }
    // An operator's command opens a connection of its own, so its latency is not the gateway's.
    if (call.operation === 'FailRefund') return;
    // The latency of a rejected or broken connection would look like a quick response. A call that timed out was slow.
    if (!isResponse(outcome) && outcome !== timedOut) return;
    const ofProtocol = byProtocol.get(call.protocol) ?? createLatencies();
    byProtocol.set(call.protocol, ofProtocol);
    for (const latencies of [recorder.latencies, ofProtocol, seconds]) latencies.record(latencyMs);
    const { operation, protocol } = call;
    slowest.record({
      latency_ms: latencyMs,
      second: atMs / 1_000,
      operation,
      protocol,
      outcome,
      request_id: requestId,
    });
  };
  const flush = () => {
    const batch = waiting;
    waiting = [];
    try {
      journal?.write(batch.flatMap((ended) => responseOf(ended, numberOf)));
      batch.forEach(count);
    } catch (error) {
      onFailure(error);
    }
  };
  /** Writes a call to the journal before it is sent, because it may take effect even if its response is lost. */
  const writeCall = (call: LoadCall, atMs: number) => {
    const request = requestOf(call);
    if (journal === undefined || request === undefined) return;
    lastNumber += 1;
    try {
      journal.write([{ call: lastNumber, sentMs: Math.floor(atMs), number: call.order?.number, request }]);
      journalNumbers.set(call, lastNumber);
    } catch (error) {
      onFailure(error);
    }
  };
  const recorder = {
    /** Calls that wait for their response. */
    pending: 0,
    /** Calls that had no response when the run ended. */
    unanswered: 0,
    sent: 0,
    /** Calls that were scheduled but not sent. */
    dropped: 0,
    /** Calls with a response, correct or wrong. */
    done: 0,
    /** Calls with one of their correct outcomes. */
    right: 0,
    /** Calls with another outcome, including those without a response. */
    errors: 0,
    outcomes,
    byProtocol,
    slowest: slowest.calls,
    latencies: createLatencies(),
    /** The delays with which calls were sent, which are the generator's share of the latencies. */
    lateness: createLatencies(),
    recordSent(call: LoadCall, atMs: number, lateMs: number) {
      writeCall(call, atMs);
      recorder.pending += 1;
      recorder.sent += 1;
      recorder.lateness.record(lateMs);
      seconds.at(atMs).sent += 1;
    },
    recordDropped(atMs: number) {
      recorder.dropped += 1;
      seconds.at(atMs).dropped += 1;
    },
    /** Records the end of a call. The call is counted once its acknowledgement, if it has one, is in the journal. */
    recordReply(call: LoadCall, reply: Reply, atMs: number, latencyMs: number) {
      recorder.pending -= 1;
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ call, journalNumber: journalNumbers.get(call), reply: checked(call, reply), atMs, latencyMs });
      journalNumbers.delete(call);
    },
    /** Counts all pending calls as unanswered, and writes the remaining responses to the journal. */
    end() {
      flush();
      recorder.unanswered += recorder.pending;
      recorder.errors += recorder.pending;
      seconds.countUnanswered(recorder.pending);
      recorder.pending = 0;
    },
    seconds: seconds.summarize,
  };
  return recorder;
}

/** Counts the calls of each second of a run. */
function createSeconds(plannedSeconds: number) {
  // No call is scheduled after the planned end, so a separate second for the last responses would look like an outage.
  const lastSecond = Math.max(0, Math.ceil(plannedSeconds) - 1);
  const seconds: SecondCounts[] = [];
  let current = createLatencies();
  const summarize = () => {
    Object.assign(seconds.at(-1) ?? {}, percentilesOf(current));
    return seconds;
  };
  return {
    /**
     * Returns the counts of the second in which a time lies. When a second begins, the percentiles of the previous one
     * are final, because times ascend.
     */
    at(atMs: number) {
      const index = Math.min(lastSecond, Math.max(0, seconds.length - 1, Math.floor(atMs / 1_000)));
      while (seconds.length <= index) {
        summarize();
        current = createLatencies();
        seconds.push({ second: seconds.length, sent: 0, done: 0, wrong: 0, dropped: 0, ...percentilesOf(current) });
      }
      return seconds[index] as SecondCounts;
    },
    /** Records a latency in the latest second. */
    record: (latencyMs: number) => current.record(latencyMs),
    /** Counts calls without a response as wrong in the latest second. */
    countUnanswered(calls: number) {
      const last = seconds.at(-1);
      if (last !== undefined) last.wrong += calls;
    },
    summarize,
  };
}

/** One of the slowest calls of a run. */
interface SlowCall {
  readonly latency_ms: number;
  /** When it ended, in seconds since the start of the run. */
  readonly second: number;
  readonly operation: string;
  readonly protocol: string;
  readonly outcome: string;
  /** The id under which the gateway logged the call; `undefined` without a response. */
  readonly request_id: string | undefined;
}

const shownMax = 10;

/** Keeps the slowest calls of a run, the slowest first. */
function createSlowestCalls() {
  const calls: SlowCall[] = [];
  return {
    calls: calls as readonly SlowCall[],
    record(call: SlowCall) {
      if (calls.length === shownMax && call.latency_ms <= (calls.at(-1)?.latency_ms ?? 0)) return;
      const position = calls.findIndex(({ latency_ms }) => latency_ms < call.latency_ms);
      calls.splice(position < 0 ? calls.length : position, 0, call);
      calls.length = Math.min(calls.length, shownMax);
    },
  };
}

function percentilesOf(latencies: Latencies) {
  const [p50_ms, p90_ms, p99_ms] = [50, 90, 99].map((percent) => latencies.percentile(percent));
  return { p50_ms, p90_ms, p99_ms, max_ms: latencies.max };
}

/** Returns a reply, or an error instead of a success that contradicts its call. */
function checked({ operation, order }: LoadCall, reply: Reply): Reply {
  if (reply.orders === undefined || operation === 'ListOrders') return reply;
  const { requestId } = reply;
  if (order === undefined) return { outcome: 'success of a call that must fail', requestId };
  const [shown] = reply.orders;
  if (shown?.order_id !== order.orderId) return { outcome: 'response about another order', requestId };
  const { order_token: token, payment_link: link } = shown;
  return link === undefined || link.endsWith(`/payment/${token}`)
    ? reply
    : { outcome: 'payment_link without the token', requestId };
}

/**
 * Returns the journal line of a response, with the run's orders that it shows. A call that is not journaled has none.
 */
function responseOf(
  { call, journalNumber, reply, atMs }: EndedCall,
  numberOf: NonNullable<RecorderOptions['numberOf']>,
): JournalResponse[] {
  if (journalNumber === undefined) return [];
  const { outcome, orders = [], reversal, leaseEndsAt } = reply;
  const shown = orders.flatMap((order) => {
    const number = call.order?.number ?? numberOf(order.order_id);
    if (number === undefined) return [];
    const { order_status: status, service_order_id, order_token, created_at, payment_id: paymentId } = order;
    const refusedIds = (order.refused_payments ?? []).map(({ payment_id }) => payment_id);
    const reversals = shownReversals(order);
    return [{ number, status, service_order_id, order_token, created_at, paymentId, refusedIds, reversals }];
  });
  const leaseEndsAtMs = leaseEndsAt === undefined ? undefined : Date.parse(leaseEndsAt);
  return [{ call: journalNumber, receivedMs: Math.ceil(atMs), outcome, shown, reversal, leaseEndsAtMs }];
}
