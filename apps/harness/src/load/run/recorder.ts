import type { OrderStatus } from '@order-gateway/domain/orders/order';
import type { Protocol } from '@order-gateway/fixtures/operations';
import type { Journal, JournalEntry } from '../../audit/journal.ts';
import type { LoadCall } from '../calls/call-maker.ts';
import { isResponse, type Reply, timedOut } from '../calls/sender.ts';
import { createLatencies, type Latencies } from './latencies.ts';

/** Counts what happens in a run. Times are milliseconds since its start. */
export type Recorder = ReturnType<typeof createRecorder>;

/** One second of a run, counted from 0. Calls without a response are wrong. */
type SecondCounts = Record<'second' | 'sent' | 'done' | 'wrong' | 'dropped', number> & ReturnType<typeof percentilesOf>;

interface EndedCall {
  readonly call: LoadCall;
  readonly reply: Reply;
  readonly atMs: number;
  readonly latencyMs: number;
}

export interface RecorderOptions {
  /** The planned length of the run. */
  readonly plannedSeconds: number;
  readonly journal?: Pick<Journal, 'write'> | undefined;
  /** The number of an order in the run by its order_id; `undefined` for an order of another run. */
  readonly numberOf?: (orderId: string) => number | undefined;
  /** Receives the error of a journal that cannot be written. */
  readonly onFailure?: (error: unknown) => void;
}

/**
 * Responses that arrive in one turn of the event loop are written to the journal together and counted after that, so that
 * nothing is counted that the journal lacks.
 */
export function createRecorder(options: RecorderOptions) {
  const { plannedSeconds, journal, numberOf = () => undefined, onFailure = () => {} } = options;
  // No call is scheduled after the planned end, so a separate second for the last responses would look like an outage.
  const lastSecond = Math.max(0, Math.ceil(plannedSeconds) - 1);
  const seconds: SecondCounts[] = [];
  let current = createLatencies();
  let waiting: EndedCall[] = [];
  const outcomes = new Map<string, { count: number; wrong: number }>();
  const byProtocol = new Map<Protocol, Latencies>();

  /** The second of a time. Percentiles of the previous one are final then, because times ascend. */
  const secondAt = (atMs: number) => {
    const index = Math.min(lastSecond, Math.max(0, seconds.length - 1, Math.floor(atMs / 1_000)));
    while (seconds.length <= index) {
      summarize();
      current = createLatencies();
      seconds.push({ second: seconds.length, sent: 0, done: 0, wrong: 0, dropped: 0, ...percentilesOf(current) });
    }
    return seconds[index] as SecondCounts;
  };
  const summarize = () => Object.assign(seconds.at(-1) ?? {}, percentilesOf(current));
  const count = ({ call, reply: { outcome }, atMs, latencyMs }: EndedCall) => {
    const second = secondAt(atMs);
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
    // A rejected or broken connection would look like a quick response; a call that timed out was slow.
    if (!isResponse(outcome) && outcome !== timedOut) return;
    const ofProtocol = byProtocol.get(call.protocol) ?? createLatencies();
    byProtocol.set(call.protocol, ofProtocol);
    for (const latencies of [recorder.latencies, ofProtocol, current]) latencies.record(latencyMs);
  };
  const flush = () => {
    const batch = waiting;
    waiting = [];
    try {
      journal?.write(batch.flatMap((one) => entriesOf(one, numberOf)));
      batch.forEach(count);
    } catch (error) {
      onFailure(error);
    }
  };
  const recorder = {
    /** Calls without a response, and those that had none when the run ended. */
    ...{ pending: 0, unanswered: 0 },
    /** Calls that were sent, that were scheduled but not sent, and that have a response, correct or wrong. */
    ...{ sent: 0, dropped: 0, done: 0 },
    /** Calls with one of their correct outcomes, and all others, including those without a response. */
    ...{ right: 0, errors: 0 },
    ...{ outcomes, byProtocol, latencies: createLatencies() },
    /** How late calls were sent: the generator's share of the latencies. */
    lateness: createLatencies(),
    recordSent(atMs: number, lateMs: number) {
      recorder.pending += 1;
      recorder.sent += 1;
      recorder.lateness.record(lateMs);
      secondAt(atMs).sent += 1;
    },
    recordDropped(atMs: number) {
      recorder.dropped += 1;
      secondAt(atMs).dropped += 1;
    },
    /** A call ended. It is counted as soon as the journal has its acknowledgement, if it got one. */
    recordReply(call: LoadCall, reply: Reply, atMs: number, latencyMs: number) {
      recorder.pending -= 1;
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ call, reply: checked(call, reply), atMs, latencyMs });
    },
    /** Counts all pending calls as unanswered, and writes what the journal lacks. */
    end() {
      flush();
      recorder.unanswered += recorder.pending;
      recorder.errors += recorder.pending;
      const last = seconds.at(-1);
      if (last !== undefined) last.wrong += recorder.pending;
      recorder.pending = 0;
    },
    seconds() {
      summarize();
      return seconds;
    },
  };
  return recorder;
}

function percentilesOf(latencies: Latencies) {
  const [p50_ms, p90_ms, p99_ms] = [50, 90, 99].map((percent) => latencies.percentile(percent));
  return { p50_ms, p90_ms, p99_ms, max_ms: latencies.max };
}

/** A response about another order than the one sent is wrong. */
function checked({ operation, order }: LoadCall, reply: Reply): Reply {
  if (reply.orders === undefined || operation === 'ListOrders') return reply;
  if (order === undefined) return { outcome: 'success of a call that must fail' };
  const [shown] = reply.orders;
  if (shown?.order_id !== order.orderId) return { outcome: 'response about another order' };
  const { order_token: token, payment_link: link } = shown;
  return link === undefined || link.endsWith(`/payment/${token}`)
    ? reply
    : { outcome: 'payment_link without the token' };
}

const statusOfError: Readonly<Record<string, OrderStatus>> = {
  order_already_paid: 'PAID',
  order_cancelled: 'CANCELLED',
  order_expired: 'EXPIRED',
};

/** The statuses of the run's orders that a reply shows. */
function entriesOf(
  { call, reply, atMs, latencyMs }: EndedCall,
  numberOf: NonNullable<RecorderOptions['numberOf']>,
): JournalEntry[] {
  const times = { scheduledMs: Math.floor(atMs - latencyMs), receivedMs: Math.ceil(atMs) };
  const status = statusOfError[reply.outcome];
  if (status !== undefined && call.order !== undefined) return [{ number: call.order.number, status, ...times }];
  return (reply.orders ?? []).flatMap((shown) => {
    const number = call.order?.number ?? numberOf(shown.order_id);
    if (number === undefined) return [];
    const { service_order_id, order_token = '', created_at = '' } = shown;
    const more =
      call.operation === 'CreateOrder'
        ? { created: { service_order_id, order_token, created_at } }
        : { paymentId: shown.payment_id };
    return [{ number, status: shown.order_status, ...times, ...more }];
  });
}
