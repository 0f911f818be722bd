import { type Protocol as Door, protocols as doors } from '@gateway/fixtures/client';
import { bandEndsMs, createLatencies, decodeLatencies, type Latencies } from './latencies.ts';
import type { SecondPart } from './recorder.ts';
import { isAnswer } from './senders/sender.ts';

/** One second of a run, of all processes. */
export interface SecondTotals {
  readonly second: number;
  readonly sent: number;
  readonly done: number;
  readonly wrong: number;
  readonly dropped: number;
  readonly p50_ms: number | undefined;
  readonly p99_ms: number | undefined;
  readonly max_ms: number | undefined;
  /** Answers in each band of `bandEndsMs`, and beyond. */
  readonly bands: readonly number[];
}

/** What a run came to so far. */
export interface Totals {
  add(part: SecondPart): void;
  /** Calls that are known to be under way come to no answer any more. */
  giveUp(calls: number): void;
  readonly sent: number;
  /** Calls that a gateway answered, rightly or not. */
  readonly done: number;
  /** Calls that got one of the answers that they must get. */
  readonly right: number;
  /** Answers that were wrong, and calls that came to none. */
  readonly errors: number;
  readonly dropped: number;
  readonly unanswered: number;
  /** Without an answer at the end of the last second that is known. */
  readonly underWay: number;
  readonly outcomes: ReadonlyMap<string, { readonly count: number; readonly wrong: number }>;
  readonly latencies: Latencies;
  readonly lateness: Latencies;
  readonly byDoor: ReadonlyMap<Door, Latencies>;
  seconds(): SecondTotals[];
}

interface OpenSecond extends Omit<SecondTotals, 'p50_ms' | 'p99_ms' | 'max_ms' | 'bands'> {
  sent: number;
  done: number;
  wrong: number;
  dropped: number;
  underWay: number;
  readonly bands: number[];
  /** Gone, once the second is far behind: a soak run has thousands of seconds, and a histogram takes many kilobytes. */
  latencies: Latencies | undefined;
  summary: Pick<SecondTotals, 'p50_ms' | 'p99_ms' | 'max_ms'>;
}

/** Parts of a second that is this far behind the newest have all arrived. */
const openSecondsMax = 30;

export function createTotals(): Totals {
  const seconds = new Map<number, OpenSecond>();
  let newest = 0;
  const totals = {
    ...{ sent: 0, done: 0, right: 0, errors: 0, dropped: 0, unanswered: 0 },
    outcomes: new Map<string, { count: number; wrong: number }>(),
    latencies: createLatencies(),
    lateness: createLatencies(),
    byDoor: new Map<Door, Latencies>(),
    add(part: SecondPart) {
      const second = seconds.get(part.second) ?? emptySecond(part.second);
      seconds.set(part.second, second);
      newest = Math.max(newest, part.second);
      addCounts(part, totals, second);
      addOutcomes(part, totals, second);
      addLatencies(part, totals, second);
      closeOld(seconds.get(newest - openSecondsMax));
    },
    giveUp(calls: number) {
      totals.unanswered += calls;
      totals.errors += calls;
      const second = seconds.get(newest);
      if (second !== undefined) second.wrong += calls;
    },
    get underWay() {
      return seconds.get(newest)?.underWay ?? 0;
    },
    seconds: () => Array.from({ length: seconds.size === 0 ? 0 : newest + 1 }, (_, at) => told(seconds.get(at), at)),
  };
  return totals;
}

/** What grows with each part, for the run as a whole. */
interface Sums {
  sent: number;
  done: number;
  right: number;
  errors: number;
  dropped: number;
  unanswered: number;
  readonly outcomes: Map<string, { count: number; wrong: number }>;
  readonly latencies: Latencies;
  readonly lateness: Latencies;
  readonly byDoor: Map<Door, Latencies>;
}

function addCounts(part: SecondPart, sums: Sums, second: OpenSecond): void {
  second.sent += part.sent;
  second.dropped += part.dropped;
  second.wrong += part.unanswered;
  second.underWay += part.underWay;
  sums.sent += part.sent;
  sums.dropped += part.dropped;
  sums.unanswered += part.unanswered;
  sums.errors += part.unanswered;
}

function addOutcomes(part: SecondPart, sums: Sums, second: OpenSecond): void {
  for (const [outcome, { count, wrong }] of Object.entries(part.outcomes)) {
    const before = sums.outcomes.get(outcome) ?? { count: 0, wrong: 0 };
    sums.outcomes.set(outcome, { count: before.count + count, wrong: before.wrong + wrong });
    const answers = isAnswer(outcome) ? count : 0;
    second.done += answers;
    second.wrong += wrong;
    sums.done += answers;
    sums.right += count - wrong;
    sums.errors += wrong;
  }
}

function addLatencies(part: SecondPart, sums: Sums, second: OpenSecond): void {
  for (const door of doors) {
    const encoded = part.latencies[door];
    if (encoded === undefined) continue;
    const decoded = decodeLatencies(encoded);
    const kept = sums.byDoor.get(door) ?? createLatencies();
    sums.byDoor.set(door, kept);
    for (const into of [sums.latencies, kept, second.latencies]) into?.add(decoded);
  }
  sums.lateness.add(decodeLatencies(part.lateness));
  part.bands.forEach((count, band) => {
    second.bands[band] = (second.bands[band] ?? 0) + count;
  });
}

function emptySecond(second: number): OpenSecond {
  return {
    ...{ second, sent: 0, done: 0, wrong: 0, dropped: 0, underWay: 0, latencies: createLatencies() },
    summary: { p50_ms: undefined, p99_ms: undefined, max_ms: undefined },
    bands: Array.from({ length: bandEndsMs.length + 1 }, () => 0),
  };
}

function closeOld(second: OpenSecond | undefined): void {
  if (second?.latencies === undefined) return;
  second.summary = summaryOf(second.latencies);
  second.latencies = undefined;
}

function summaryOf(latencies: Latencies): OpenSecond['summary'] {
  return { p50_ms: latencies.percentile(50), p99_ms: latencies.percentile(99), max_ms: latencies.max };
}

function told(second: OpenSecond | undefined, at: number): SecondTotals {
  const { sent, done, wrong, dropped, bands, latencies, summary } = second ?? emptySecond(at);
  const known = latencies === undefined ? summary : summaryOf(latencies);
  return { second: at, sent, done, wrong, dropped, ...known, bands };
}
