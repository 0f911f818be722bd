import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestServer } from '@gateway/dev-postgres/testing';
import { enableTls } from '@gateway/postgres/testing/enable-tls';
import { selfSigned } from '@gateway/postgres/testing/self-signed';
import { expect, onTestFinished } from 'vitest';
import { type AuditResult, auditErrors, auditTable, auditWhenDelivered } from '../../src/audit/audit.ts';
import { columns, formatSeconds } from '../../src/command/text.ts';
import { type OwnGateway, startOwnGateway } from '../../src/gateway/own-gateway.ts';
import { constantRate } from '../../src/load/profile/arrivals.ts';
import { loadProfile } from '../../src/load/profile/profile.ts';
import type { Recorder } from '../../src/load/run/recorder.ts';
import { startWatchedLoad } from '../../src/load/run/watched-load.ts';
import { startWebhookReceiver } from '../../src/webhooks/receiver.ts';
import { seededAt } from '../../src/workload/seeded.ts';
import { startFaultProxy } from './fault-proxy.ts';
import type { Disturbed, Fault } from './faults.ts';

/** The faults of a run. The seed determines their order. */
export interface FaultPlan {
  readonly seed: number;
  readonly faults: readonly { readonly fault: Fault; readonly times: number }[];
  /** The folder of the server's data. */
  readonly dataParent?: string | undefined;
}

/** The result of a run. */
export interface FaultRun {
  readonly recorder: Recorder;
  readonly audit: AuditResult;
  /** Calls with a response later than the gateway's deadline and 250 ms. */
  readonly late: number;
  /** Seconds from the end of each fault until both gateways created an order. */
  readonly recoveries: readonly number[];
}

/** The run is ended by its faults, not by its time. */
const longestSeconds = 7_200;
const rate = 100;

/** Few enough that a slow machine drops calls instead of sending payments before the responses with their tokens. */
const pendingMax = 64;

const merchants = [
  ...[{ name: 'First' }, { name: 'Second' }],
  // Their orders expire while others are paid and cancelled.
  ...[
    { name: 'Third', defaultLifetimeSeconds: 1 },
    { name: 'Fourth', defaultLifetimeSeconds: 5 },
  ],
];

/** A few connections more than two gateways use, and a log of transactions that fits a small disk. */
const serverSettings = { max_connections: '64', shared_buffers: '128MB', max_wal_size: '64MB' };

/** The maximum pause between two faults, besides the time until both gateways create orders again. */
const pauseMaxMs = 100;
const recoveryMaxMs = 60_000;

/** Ensures that there are changes to audit, even if one fault stopped nearly all of them. */
const afterLastMs = 1_000;

/**
 * Sends the profile `lifecycle` to two gateways that reach their own PostgreSQL through a proxy, injects faults, and
 * audits orders, states, events and webhooks. Rejects when a gateway exits unexpectedly. Everything ends with the test.
 */
export async function runFaults({ seed, faults, dataParent }: FaultPlan): Promise<FaultRun> {
  const ended = new AbortController();
  const started = new AsyncDisposableStack();
  onTestFinished(async () => {
    ended.abort();
    await started.disposeAsync();
  }, 60_000);
  const { path: folder } = started.use(await mkdtempDisposable(join(tmpdir(), 'faults-')));
  const [random, cuts] = [seededAt(seed, 0), seededAt(seed, 1)];
  const server = await startTestServer(serverSettings, dataParent);
  started.defer(server.stop);
  const certificate = selfSigned('127.0.0.1');
  const tlsQuery = await enableTls(server.url, certificate);
  const isTlsEndedByProxy = faults.some(({ fault }) => fault.readsResponses);
  const isReset = () => cuts.below(2) === 0;
  const proxy = await startFaultProxy(server.url, isReset, isTlsEndedByProxy ? certificate : undefined);
  started.defer(proxy.close);
  const receiver = await startWebhookReceiver();
  started.defer(receiver.close);
  const setups = [...merchants, { name: 'Checkout', kind: 'checkout' as const }];
  const database = async () => ({ url: `${proxy.url}?${tlsQuery}`, stop: async () => {} });
  const first: OwnGateway = await startOwnGateway(setups, ended.signal, database);
  started.defer(first.stop);
  await first.sendWebhooks(merchants.length, receiver);
  const gateways: Disturbed['gateways'] = [first, await first.startAnother()];

  const [credentials, checkout] = [first.credentials.slice(0, merchants.length), first.credentials.at(-1)];
  const phases = constantRate(rate, longestSeconds);
  const limits = { connections: pendingMax, max_pending: pendingMax };
  const profile = { ...loadProfile('lifecycle'), ...limits, merchants: merchants.length, phases };
  const load = startWatchedLoad(gateways, { profile, seed, credentials, checkout, folder });
  started.defer(load.end);

  const recovered = async (fault: string) => {
    const limit = AbortSignal.timeout(recoveryMaxMs);
    const waiting = load.timeToCreated('every', AbortSignal.any([ended.signal, limit]));
    const elapsedMs = await waiting.catch((error: unknown) => {
      throw limit.aborted ? new Error(`no order within ${recoveryMaxMs} ms after: ${fault}`) : error;
    });
    return elapsedMs / 1_000;
  };
  const recoveries: number[] = [];
  const disturb = async () => {
    const all = faults.flatMap(({ fault, times }) => Array.from({ length: times }, () => fault));
    const drawn = all.map((fault) => ({ fault, order: random.fraction() })).sort((a, b) => a.order - b.order);
    await recovered('the start');
    for (const [index, { fault }] of drawn.entries()) {
      await fault.inject({ server, proxy, gateways, random, signal: ended.signal });
      const seconds = await recovered(fault.name);
      recoveries.push(seconds);
      if ((index + 1) % 50 === 0 || faults.length > 1) {
        process.stdout.write(`${index + 1} of ${drawn.length}: ${fault.name}, order after ${formatSeconds(seconds)}\n`);
      }
      await sleep(random.below(pauseMaxMs), undefined, { signal: ended.signal });
    }
    await sleep(afterLastMs, undefined, { signal: ended.signal });
  };
  const endsEarly = load.running.then(({ failure }) => Promise.reject(new Error(`the run ended early: ${failure}`)));
  await Promise.race([disturb(), endsEarly, ...gateways.map(({ exited }) => exited)]);
  ended.abort();
  load.end();
  const { recorder } = await load.running;
  const audit = await auditWhenDelivered(load.journalFile, server.url, receiver);
  return { recorder, audit, late: load.late(), recoveries };
}

/** Responses that a client may get under faults, after which it can send its call again. */
const temporaryOutcomes = /^(unavailable|overloaded|deadline_exceeded)$/;

/** After a gateway was killed, calls may have no response, but no connection is silent. */
const endedConnection = /^no response: (?!timeout)/;

/** Expects that nothing acknowledged was lost or changed, and that each call got a correct or temporary response. */
export function expectNothingLost({ audit, recorder }: FaultRun, isGatewayKilled: boolean): void {
  expect(audit.examples).toEqual([]);
  expect(auditErrors(audit)).toBe(0);
  expect(audit.acknowledged).toBeGreaterThan(0);
  expect(audit.changes).toBeGreaterThan(0);
  const wrong = [...recorder.outcomes].filter(([, { wrong }]) => wrong > 0).map(([outcome]) => outcome);
  const isAllowed = (outcome: string) =>
    temporaryOutcomes.test(outcome) || (isGatewayKilled && endedConnection.test(outcome));
  expect(wrong.filter((outcome) => !isAllowed(outcome))).toEqual([]);
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
