import { cpus, totalmem } from 'node:os';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { z } from 'zod';
import { type AuditResult, auditErrors } from '../../audit/audit.ts';
import { arrivalsOf, type LoadSettings, type Thresholds } from '../profile/profile.ts';
import type { Latencies } from '../run/latencies.ts';
import type { LoadOutcome } from '../run/run-load.ts';

/** All results of a run: `--json` writes them, and the table and page show them. Latencies are milliseconds. */
export type LoadReport = ReturnType<typeof reportOf>;

/** The number of calls, and their latencies in milliseconds, which are `undefined` if nothing was measured. */
export type LatencySummary = ReturnType<typeof summaryOf>;

export interface ReportedRun {
  readonly settings: LoadSettings;
  readonly target: string;
  readonly environment: Environment;
  /** `undefined` without an audit. */
  readonly audit: AuditResult | undefined;
}

export function reportOf(
  { recorder, startedAt, seconds, interrupted, failure }: LoadOutcome,
  { settings, target, environment, audit }: ReportedRun,
) {
  const { sent, done, errors, dropped, unanswered, right, latencies } = recorder;
  const scheduled = sent + dropped;
  const rates = {
    rate_done: seconds > 0 ? done / seconds : 0,
    error_rate: sent > 0 ? errors / sent : 0,
    dropped_rate: scheduled > 0 ? dropped / scheduled : 0,
  };
  const latency = summaryOf(latencies);
  const verdict = judge(settings.thresholds, {
    // The latency of a run without a correct outcome is meaningless.
    p99_ms: right > 0 ? latency.p99 : undefined,
    error_rate: sent > 0 ? rates.error_rate : undefined,
    dropped_rate: scheduled > 0 || arrivalsOf(settings.phases).count === 0 ? rates.dropped_rate : undefined,
    // An audit without an acknowledged order proves nothing.
    lost: audit && audit.acknowledged > 0 ? auditErrors(audit) : undefined,
  });
  return {
    settings,
    target,
    environment,
    started_at: startedAt.toISOString(),
    seconds,
    interrupted,
    failure,
    scheduled,
    sent,
    done,
    errors,
    dropped,
    unanswered,
    ...rates,
    latency,
    latency_by_protocol: Object.fromEntries([...recorder.byProtocol].map(([name, some]) => [name, summaryOf(some)])),
    // The delays of the generator, which are part of the latencies.
    lateness: summaryOf(recorder.lateness),
    // Pairs of `[percent, milliseconds]`, in ever smaller steps towards 100 %.
    percentiles: percentilesOf(latencies),
    outcomes: [...recorder.outcomes]
      .map(([outcome, counts]) => ({ outcome, ...counts }))
      .sort((a, b) => b.count - a.count),
    // The slowest first.
    slowest: recorder.slowest,
    by_second: recorder.seconds(),
    audit,
    // A run that a failure ended early does not pass, because the thresholds apply to the complete run.
    verdict: { ...verdict, passed: verdict.passed && failure === undefined },
  };
}

/** Compares the measurements with the thresholds. A threshold whose value was not measured is not met. */
export function judge(thresholds: Thresholds, actuals: { readonly [Name in keyof Thresholds]-?: number | undefined }) {
  const names = ['p99_ms', 'error_rate', 'dropped_rate', 'lost'] as const;
  const judged = names.flatMap((threshold) => {
    const limit = thresholds[threshold];
    const actual = actuals[threshold];
    return limit === undefined ? [] : [{ threshold, limit, actual, passed: actual !== undefined && actual <= limit }];
  });
  return { passed: judged.every(({ passed }) => passed), judged };
}

function summaryOf(latencies: Latencies) {
  const { count, mean, max, percentile } = latencies;
  return { count, mean, p50: percentile(50), p90: percentile(90), p99: percentile(99), p99_9: percentile(99.9), max };
}

/** After this many points, the remainder to 100 % has halved. No call lies above the last point. */
const pointsPerHalving = 10;

function percentilesOf(latencies: Latencies): [number, number][] {
  const points: [number, number][] = [];
  for (let step = 0; ; step += 1) {
    const remainder = 2 ** (-step / pointsPerHalving);
    const ms = latencies.percentile((1 - remainder) * 100);
    if (ms === undefined) return [];
    points.push([(1 - remainder) * 100, ms]);
    if (remainder * latencies.count < 1) return points;
  }
}

/** The machine of the load generator, and the versions in use. A version that could not be read is `unknown`. */
export interface Environment {
  readonly machine: string;
  readonly node: string;
  readonly gateway: string;
  readonly postgres: string;
}

const healthSchema = z.object({ version: z.string() });

/** Asks the gateway and, if its URL is known, the database for their versions. Never rejects. */
export async function readEnvironment(httpUrl: string, databaseUrl: string | undefined): Promise<Environment> {
  const gateway = async () => {
    const response = await fetch(`${httpUrl}/health/live`, { signal: AbortSignal.timeout(5_000) });
    return healthSchema.parse(await response.json()).version;
  };
  const postgres = async () => {
    if (databaseUrl === undefined) return unknown;
    const [row] = await runQuery(databaseUrl, 'show server_version');
    return String(row?.server_version);
  };
  const orUnknown = (version: Promise<string>) => version.catch(() => unknown);
  const [gatewayVersion, postgresVersion] = await Promise.all([orUnknown(gateway()), orUnknown(postgres())]);
  return { machine: machine(), node: process.version, gateway: gatewayVersion, postgres: postgresVersion };
}

const unknown = 'unknown';

function machine(): string {
  const cores = cpus();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  return `${process.platform} ${process.arch}, ${cores.length} × ${cores[0]?.model.trim() ?? unknown}, ${memory}`;
}
