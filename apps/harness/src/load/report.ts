import type { Protocol as Door } from '@gateway/fixtures/client';
import { faultsIn, type JournalAudit } from '../audit/hold-journal.ts';
import { arrivalsOf } from './arrivals.ts';
import type { Latencies } from './latencies.ts';
import type { LoadSettings, Thresholds } from './settings.ts';
import type { SecondTotals, Totals } from './totals.ts';

/** Everything that is told of a run: what `--json` writes, and what the table and the page show. Times are milliseconds. */
export interface LoadReport {
  readonly settings: LoadSettings;
  readonly target: string;
  /** ISO 8601 in UTC. */
  readonly started_at: string;
  /** From the first call due to the last answer. */
  readonly seconds: number;
  readonly interrupted: boolean;
  /** Why sending processes died, which ended the run; none usually. */
  readonly deaths: readonly string[];
  /** Calls that were due by the end. */
  readonly due: number;
  readonly sent: number;
  readonly done: number;
  readonly errors: number;
  readonly dropped: number;
  readonly unanswered: number;
  readonly rate_done: number;
  readonly error_rate: number;
  readonly dropped_rate: number;
  readonly latency: LatencySummary;
  readonly latency_by_door: { readonly [Name in Door]?: LatencySummary };
  /** How late the generator sent: its own part in the latencies. */
  readonly lateness: LatencySummary;
  /** `[percent, milliseconds]`, ever closer to 100. */
  readonly percentiles: readonly (readonly [number, number])[];
  readonly outcomes: readonly { readonly outcome: string; readonly count: number; readonly wrong: number }[];
  readonly by_second: readonly SecondTotals[];
  readonly audit: JournalAudit | undefined;
  readonly verdict: Verdict;
}

export interface LatencySummary {
  readonly count: number;
  readonly mean: number | undefined;
  readonly p50: number | undefined;
  readonly p75: number | undefined;
  readonly p90: number | undefined;
  readonly p95: number | undefined;
  readonly p99: number | undefined;
  readonly p99_9: number | undefined;
  readonly max: number | undefined;
}

export interface Verdict {
  readonly passed: boolean;
  readonly judged: readonly {
    readonly threshold: keyof Thresholds;
    readonly limit: number;
    /** `undefined` where there is nothing to judge, which does not pass. */
    readonly actual: number | undefined;
    readonly passed: boolean;
  }[];
}

export interface ReportFacts {
  readonly settings: LoadSettings;
  readonly target: string;
  readonly startedAt: Date;
  readonly seconds: number;
  readonly interrupted: boolean;
  readonly deaths: readonly string[];
  readonly audit: JournalAudit | undefined;
}

/** Puts a run's report together. */
export function reportOf(totals: Totals, facts: ReportFacts): LoadReport {
  const { settings, target, startedAt, seconds, interrupted, deaths, audit } = facts;
  const { sent, done, errors, dropped, unanswered } = totals;
  const due = sent + dropped;
  const rates = {
    rate_done: seconds > 0 ? done / seconds : 0,
    error_rate: sent > 0 ? errors / sent : 0,
    dropped_rate: due > 0 ? dropped / due : 0,
  };
  const latency = summaryOf(totals.latencies);
  const verdict = judge(settings.thresholds, {
    // How fast a run was in which nothing went right says nothing.
    p99_ms: totals.right > 0 ? latency.p99 : undefined,
    error_rate: sent > 0 ? rates.error_rate : undefined,
    dropped_rate: due > 0 || arrivalsOf(settings.phases).count === 0 ? rates.dropped_rate : undefined,
    // Nothing is lost where nothing was acknowledged.
    lost: audit && audit.acknowledged > 0 ? faultsIn(audit) : undefined,
  });
  return {
    ...{ settings, target, started_at: startedAt.toISOString(), seconds, interrupted, deaths },
    ...{ due, sent, done, errors, dropped, unanswered, ...rates, latency },
    latency_by_door: Object.fromEntries([...totals.byDoor].map(([door, latencies]) => [door, summaryOf(latencies)])),
    lateness: summaryOf(totals.lateness),
    percentiles: percentilesOf(totals.latencies),
    outcomes: [...totals.outcomes]
      .map(([outcome, counts]) => ({ outcome, ...counts }))
      .sort((a, b) => b.count - a.count),
    by_second: totals.seconds(),
    audit,
    // A run that ended before its time is not the one whose limits these are.
    verdict: { ...verdict, passed: verdict.passed && deaths.length === 0 },
  };
}

/** Holds what was measured against the limits; a limit whose value is not known is not met. */
export function judge(
  thresholds: Thresholds,
  actuals: { readonly [Name in keyof Thresholds]-?: number | undefined },
): Verdict {
  const names = ['p99_ms', 'error_rate', 'dropped_rate', 'lost'] as const;
  const judged = names.flatMap((threshold) => {
    const limit = thresholds[threshold];
    const actual = actuals[threshold];
    return limit === undefined ? [] : [{ threshold, limit, actual, passed: actual !== undefined && actual <= limit }];
  });
  return { passed: judged.every(({ passed }) => passed), judged };
}

function summaryOf(latencies: Latencies): LatencySummary {
  const at = (percent: number) => latencies.percentile(percent);
  return {
    ...{ count: latencies.count, mean: latencies.mean, p50: at(50), p75: at(75), p90: at(90), p95: at(95) },
    ...{ p99: at(99), p99_9: at(99.9), max: latencies.max },
  };
}

/** Ten points for every halving of what is left to 100, until one call is left. */
const pointsPerHalving = 10;

function percentilesOf(latencies: Latencies): [number, number][] {
  const points: [number, number][] = [];
  for (let step = 0; ; step += 1) {
    const left = 2 ** (-step / pointsPerHalving);
    const ms = latencies.percentile((1 - left) * 100);
    if (ms === undefined) return [];
    points.push([(1 - left) * 100, ms]);
    if (left * latencies.count < 1) return points;
  }
}
