import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import type { Credentials } from '@order-gateway/domain/accounts';
import { enableTls } from '@order-gateway/postgres/testing/enable-tls';
import { selfSigned } from '@order-gateway/postgres/testing/self-signed';
import { expect, onTestFinished } from 'vitest';
import { type AuditResult, auditErrors, auditTable, auditWhenDelivered } from '../../src/audit/audit.ts';
import { columns, formatSeconds } from '../../src/command/text.ts';
import { type OwnGateway, startOwnGateway } from '../../src/gateway/own-gateway.ts';
import { constantRate, loadProfile } from '../../src/load/profile/profile.ts';
import { type Environment, readEnvironment } from '../../src/load/report/report.ts';
import type { Recorder } from '../../src/load/run/recorder.ts';
import { startWatchedLoad, type WatchedRun } from '../../src/load/run/watched-load.ts';
import { startWebhookReceiver } from '../../src/webhooks/receiver.ts';
import { seededAt } from '../../src/workload/seeded.ts';
import { startFaultProxy } from './fault-proxy.ts';
import type { Fault, FaultOf, GatewayTarget, ServerTarget } from './faults.ts';

/** The faults of a run. The seed determines their order. */
export interface FaultPlan<Target> {
  readonly seed: number;
  readonly faults: readonly { readonly fault: FaultOf<Target>; readonly times: number }[];
  /** Starts the database, which `started` stops. */
  readonly startDatabase: (started: AsyncDisposableStack) => Promise<FaultyDatabase<Target>>;
  /** The number of merchants in addition to those of every run. */
  readonly extraMerchants?: number;
  /** The calls per second; 100 by default. */
  readonly rate?: number;
  /** The maximum number of calls without a response; further calls are dropped. */
  readonly pendingMax?: number | undefined;
  /** The pause after each fault; random and short by default. */
  readonly pauseMs?: number;
  /** Watches the run from its start. */
  readonly watch?: (run: Started<Target>) => Pick<WatchedRun, 'onReply'>;
}

/** The database of the gateways. */
export interface FaultyDatabase<Target> {
  readonly url: string;
  /** The URL of the same database without a proxy. */
  readonly auditUrl: string;
  /** The parts that faults act on. */
  readonly target: Target;
}

/** What a run has started. */
type Started<Target> = Target & GatewayTarget & { readonly credentials: readonly Credentials[] };

/** The result of a run. */
export interface FaultRun {
  readonly recorder: Recorder;
  readonly audit: AuditResult;
  /** Calls that took more than 250 ms longer than the gateway's deadline, with or without a response. */
  readonly late: number;
  /**
   * Seconds from the end of each fault until both gateways had created an order. For a fault that lasts as long as a
   * connection, the time is measured from its start.
   */
  readonly recoveries: readonly number[];
  readonly environment: Environment;
}

/** The planned duration of the load. It exceeds that of any run, because a run ends the load after its last fault. */
const longestSeconds = 7_200;
const usualRate = 100;

/**
 * This limit makes a slow machine drop calls instead of sending payments for orders whose tokens it does not have yet.
 */
const usualPendingMax = 64;

const usualMerchants = [
  { name: 'First' },
  { name: 'Second' },
  // The orders of these merchants expire while other orders are paid and cancelled.
  { name: 'Third', defaultLifetimeSeconds: 1 },
  { name: 'Fourth', defaultLifetimeSeconds: 5 },
];

/** Allows slightly more connections than two gateways use. The write-ahead log fits a small disk. */
const serverSettings = { max_connections: '64', shared_buffers: '128MB', max_wal_size: '64MB' };

/** The default maximum of the pause between faults, in addition to the time until both gateways create orders again. */
const pauseMaxMs = 100;
const recoveryMaxMs = 120_000;

/** The time of the load after the last fault. */
const afterLastMs = 1_000;

/** Returns a function that starts a PostgreSQL server behind a proxy. The faults can disturb both. */
export function faultyServer(seed: number, faults: readonly Fault[], dataParent?: string) {
  return async (started: AsyncDisposableStack): Promise<FaultyDatabase<ServerTarget>> => {
    const cuts = seededAt(seed, 1);
    const server = await startTestServer(serverSettings, dataParent);
    started.defer(server.stop);
    const certificate = selfSigned('127.0.0.1');
    const tlsQuery = await enableTls(server.url, certificate);
    const isTlsEndedByProxy = faults.some(({ readsResponses }) => readsResponses);
    const isReset = () => cuts.below(2) === 0;
    const proxy = await startFaultProxy(server.url, isReset, isTlsEndedByProxy ? certificate : undefined);
    started.defer(proxy.close);
    return { url: `${proxy.url}?${tlsQuery}`, auditUrl: server.url, target: { server, proxy } };
  };
}

/**
 * Sends the calls of the profile `lifecycle` to two gateways, injects faults into the gateways and their database, and
 * audits orders, states, events and webhooks. Rejects if a gateway exits unexpectedly, if the load ends early, or if a
 * gateway creates no order within two minutes of a fault. Everything stops when the test ends.
 */
export async function runFaults<Target>(plan: FaultPlan<Target>): Promise<FaultRun> {
  const { seed, faults, extraMerchants = 0, rate = usualRate, pendingMax = usualPendingMax, pauseMs } = plan;
  const ended = new AbortController();
  const started = new AsyncDisposableStack();
  onTestFinished(async () => {
    ended.abort();
    await started.disposeAsync();
  });
  const { path: folder } = started.use(await mkdtempDisposable(join(tmpdir(), 'faults-')));
  const random = seededAt(seed, 0);
  const { url, auditUrl, target } = await plan.startDatabase(started);
  const receiver = await startWebhookReceiver();
  started.defer(receiver.close);
  const merchants = [
    ...usualMerchants,
    ...Array.from({ length: extraMerchants }, (_, index) => ({ name: `Extra ${index}` })),
  ];
  const setups = [...merchants, { name: 'Checkout', kind: 'checkout' as const, makesRefunds: true as const }];
  const first: OwnGateway = await startOwnGateway(setups, ended.signal, async () => ({ url, stop: async () => {} }));
  started.defer(first.stop);
  await first.sendWebhooks(merchants.length, receiver);
  const gateways: GatewayTarget['gateways'] = [first, await first.startAnother()];
  const disturbed = { ...target, gateways, random, signal: ended.signal };

  const [credentials, checkout] = [first.credentials.slice(0, merchants.length), first.credentials.at(-1)];
  const phases = constantRate(rate, longestSeconds);
  const limits = { connections: pendingMax, max_pending: pendingMax };
  const profile = { ...loadProfile('lifecycle'), ...limits, merchants: merchants.length, phases };
  const watch = plan.watch?.({ ...disturbed, credentials });
  const accounts = { credentials, checkout };
  const load = startWatchedLoad(gateways, { profile, seed, ...accounts, folder, databaseUrl: auditUrl, ...watch });
  started.defer(load.end);

  const environment = await readEnvironment(first.httpUrl, auditUrl);
  const waitUntilRecovered = async (fault: string) => {
    const limit = AbortSignal.timeout(recoveryMaxMs);
    const waiting = load.timeToCreated('every', AbortSignal.any([ended.signal, limit]));
    const elapsedMs = await waiting.catch((error: unknown) => {
      throw limit.aborted ? new Error(`no order within ${recoveryMaxMs} ms after: ${fault}`) : error;
    });
    return elapsedMs / 1_000;
  };
  const recoveries: number[] = [];
  const disturb = async () => {
    const planned = faults.flatMap(({ fault, times }) => Array.from({ length: times }, () => fault));
    const shuffled = planned.map((fault) => ({ fault, rank: random.fraction() })).sort((a, b) => a.rank - b.rank);
    await waitUntilRecovered('the start');
    for (const [index, { fault }] of shuffled.entries()) {
      await fault.inject(disturbed);
      const seconds = await waitUntilRecovered(fault.name);
      recoveries.push(seconds);
      if ((index + 1) % 50 === 0 || faults.length > 1) {
        process.stdout.write(
          `${index + 1} of ${shuffled.length}: ${fault.name}, order after ${formatSeconds(seconds)}\n`,
        );
      }
      await sleep(pauseMs ?? random.below(pauseMaxMs), undefined, { signal: ended.signal });
    }
    await sleep(afterLastMs, undefined, { signal: ended.signal });
    // A fault can stop nearly all changes, and a slow machine makes few. There must be some to audit.
    await load.untilShownChange(ended.signal);
  };
  const endsEarly = load.running.then(({ failure }) => Promise.reject(new Error(`the run ended early: ${failure}`)));
  await Promise.race([disturb(), endsEarly, ...gateways.map(({ exited }) => exited)]);
  ended.abort();
  load.end();
  const { recorder } = await load.running;
  const audit = await auditWhenDelivered(load.journalFile, auditUrl, receiver);
  return { recorder, audit, late: load.late(), recoveries, environment };
}

/** The outcomes that faults may cause temporarily. After such an outcome, the caller can send the call again. */
export const temporaryOutcomes = /^(unavailable|overloaded|deadline_exceeded)$/;

/** A call to a gateway that is killed may have no response, but its connection ends, so the call must not time out. */
const endedConnection = /^no response: (?!timeout)/;

/**
 * Expects that no acknowledged order was lost or changed, and that each call got a correct or temporary response. If a
 * gateway was killed, calls may also end without a response, but not with a timeout.
 */
export function expectNothingLost(run: FaultRun, isGatewayKilled: boolean): void {
  const { audit } = run;
  expect(audit.examples).toEqual([]);
  expect(auditErrors(audit)).toBe(0);
  expect(audit.acknowledged).toBeGreaterThan(0);
  expect(audit.changes).toBeGreaterThan(0);
  expect(wrongOutcomes(run, isGatewayKilled)).toEqual({});
}

/** Counts the calls by their outcome, if it is neither correct nor one that the faults may cause. */
export function wrongOutcomes({ recorder }: FaultRun, isGatewayKilled: boolean): Readonly<Record<string, number>> {
  const isAllowed = (outcome: string) =>
    temporaryOutcomes.test(outcome) || (isGatewayKilled && endedConnection.test(outcome));
  const wrong = [...recorder.outcomes].filter(([outcome, { wrong }]) => wrong > 0 && !isAllowed(outcome));
  return Object.fromEntries(wrong.map(([outcome, { wrong }]) => [outcome, wrong]));
}

/** Formats runs as a table, one row each. */
export function faultTable(runs: readonly (FaultRun & { readonly name: string })[]): string {
  const rows = runs.map(({ name, recoveries, recorder, late, audit }) => {
    const sorted = recoveries.toSorted((a, b) => a - b);
    const [median = 0, longest = 0] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
    const { sent, errors } = recorder;
    const figures = [recoveries.length, formatSeconds(median), formatSeconds(longest), sent, errors, late];
    return { cells: [name, ...figures.map(String)], audited: auditTable(audit) };
  });
  const heading = ['fault', 'times', 'order after', 'at most', 'calls', 'errors', 'late'];
  return `${columns([[...heading, ...(rows[0]?.audited.head ?? [])], ...rows.map(({ cells, audited }) => [...cells, ...audited.row])])}\n`;
}
