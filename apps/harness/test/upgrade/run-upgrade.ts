import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '@order-gateway/dev-postgres';
import type { Credentials } from '@order-gateway/domain/accounts';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { expect, onTestFinished } from 'vitest';
import { type ProxyProgram, runProxy } from '../../../../tools/proxies.ts';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import { auditErrors, auditWhenDelivered } from '../../src/audit/audit.ts';
import {
  type GatewayProcess,
  migrate,
  runAccountCommand,
  setWebhook,
  startGatewayProcess,
  thisTree,
} from '../../src/gateway/gateway-process.ts';
import { constantRate, loadProfile } from '../../src/load/profile/profile.ts';
import { startWatchedLoad } from '../../src/load/run/watched-load.ts';
import { startWebhookReceiver } from '../../src/webhooks/receiver.ts';
import { testDatabase } from '../test-database.ts';
import {
  createRefundedOrders,
  expectRefunds,
  type RefundedOrders,
  useReleasedClient,
  writeRefundedOrders,
} from './refunded-orders.ts';

interface UpgradePlan {
  readonly proxy: ProxyProgram;
  /** The folder of the previous version. */
  readonly previous: string;
  /** The number of upgrades. Every upgrade except the last is rolled back. */
  readonly upgrades: number;
  /** Calls per second. */
  readonly rate: number;
  /** The maximum number of calls in flight. Further calls are dropped, so that none waits long on a slow machine. */
  readonly pendingMax: number;
  readonly startDatabase?: () => Promise<UpgradedDatabase>;
}

/** An empty database. */
interface UpgradedDatabase {
  readonly url: string;
  /** Distributes the tables of the previous version. */
  distribute?(): Promise<void>;
  stop(): Promise<void>;
}

/** The planned duration of the load: longer than any upgrade, which ends the load. */
const longestSeconds = 3_600;

/** The minimum number of orders created between two restarts. */
const createdBetween = 30;

/**
 * The time limit of a proxy's health check. A gateway that exceeds it counts as unavailable, even if it is only slow.
 */
const checkLimitMs = 1_000;

/**
 * The outcome of a gRPC call that can fail because version 1.0.0 stops behind nginx
 * (docs/decisions/074-goaway-during-a-call.md).
 */
const failedByRelease = 'no response: HTTP 502 without a gRPC status';

/**
 * The default lifetimes of the merchants' orders. The orders of the third merchant expire while other orders are
 * paid and cancelled.
 */
const lifetimesSeconds = [undefined, undefined, 5];

/**
 * Upgrades two gateways behind a proxy from another version to this working tree under load, rolls them back, and
 * upgrades them again. After each step, expects that no call failed, and audits all orders since the start. Orders that
 * were refunded in this version are written by the other one after a rollback, and read by the SDK of the other one. If
 * calls failed on a machine that is too slow for the proxy's health checks, returns that as the reason to skip the
 * test.
 */
export async function runUpgrade({
  proxy,
  previous,
  upgrades,
  rate,
  pendingMax,
  startDatabase = testDatabase,
}: UpgradePlan): Promise<string | undefined> {
  const { version: previousVersion } = JSON.parse(await readFile(join(previous, 'package.json'), 'utf8'));
  const folder = await temporaryFolder();
  const database: UpgradedDatabase = await startDatabase();
  const databaseUrl = database.url;
  const [http = 0, grpc = 0, http1 = 0, grpc1 = 0, http2 = 0, grpc2 = 0] = await freePorts(6);
  const ports = [
    { http: http1, grpc: grpc1 },
    { http: http2, grpc: grpc2 },
  ] as const;
  const variables = { DRAIN_DELAY_MS: '5000', BASE_URL: `http://127.0.0.1:${http}` };
  const secretsKey = randomBytes(32).toString('base64');
  const settings = { databaseUrl, secretsKey, isMigrated: true, variables };
  const ended = new AbortController();
  const gateways: GatewayProcess[] = [];
  const knownBefore = new Set(await membersOfOrders(previous));
  const addedMembers = (await membersOfOrders(thisTree)).filter((member) => !knownBefore.has(member));
  // An attempt whose result was not stored is repeated, and the other version may repeat it.
  const receiver = await startWebhookReceiver(addedMembers);
  onTestFinished(async () => {
    ended.abort();
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await receiver.close();
    await database.stop();
  });
  const start = async (index: 0 | 1, tree: string) => {
    gateways[index] = await startGatewayProcess({ ...settings, tree, ports: ports[index] }, ended.signal);
  };

  let reasonToSkip: string | undefined;
  await migrate({ ...settings, tree: previous });
  await database.distribute?.();
  // The accounts of this version need a newer schema.
  const create = async (program: 'merchant' | 'checkout', name: string): Promise<Credentials> => {
    const args = [program, 'create', '--name', name, '--json'] as const;
    const { client_id: clientId = '', client_secret: clientSecret = '' } = await runAccountCommand(
      { ...settings, tree: previous },
      args,
    );
    return { clientId, clientSecret };
  };
  const credentials = await Promise.all(lifetimesSeconds.map((_, index) => create('merchant', `Shop ${index}`)));
  const checkout = await create('checkout', 'Checkout');
  const accounts = openAccountAdmin({ url: databaseUrl });
  for (const [index, { clientId }] of credentials.entries()) {
    const seconds = lifetimesSeconds[index];
    if (seconds !== undefined) await accounts.setDefaultLifetime(clientId, seconds);
    receiver.trust(index, await setWebhook({ ...settings, tree: previous }, clientId, receiver.url(index)));
  }
  await accounts.close();
  await start(0, previous);
  await start(1, previous);
  await runProxy(proxy, { http, grpc, gateways: ports });
  const target = { httpUrl: `http://127.0.0.1:${http}`, grpcAddress: `127.0.0.1:${grpc}` };
  const isReady = async () => (await fetch(`${target.httpUrl}/health/ready`).catch(() => undefined))?.ok === true;
  await expect.poll(isReady).toBe(true);

  const limits = { connections: 8, max_pending: pendingMax, merchants: credentials.length };
  // Version 1.0.0 has neither refunds nor disputes.
  const shares = { refund_share: 0, report_share: 0, fail_share: 0 };
  const profile = { ...loadProfile('lifecycle'), ...shares, ...limits, phases: constantRate(rate, longestSeconds) };
  const journals: string[] = [];
  const refundAccounts = { merchant: credentials[0] as Credentials, checkout };
  let refunded: RefundedOrders | undefined;
  const steps = Array.from({ length: 2 * upgrades - 1 }, (_, step) => (step % 2 === 0 ? 'upgrade' : 'rollback'));
  for (const [step, direction] of steps.entries()) {
    const stepFolder = join(folder, `${step}`);
    mkdirSync(stepFolder);
    const load = startWatchedLoad([target], { profile, seed: step + 1, credentials, checkout, folder: stepFolder });
    journals.push(load.journalFile);
    const checks = watchChecks(
      ports.map((port) => port.http),
      ended.signal,
    );
    const roll = async () => {
      if (direction === 'upgrade') await migrate(settings);
      for (const index of [0, 1] as const) {
        await gateways[index]?.stop();
        await start(index, direction === 'upgrade' ? thisTree : previous);
        const before = load.created();
        await expect.poll(() => load.created() - before).toBeGreaterThan(createdBetween);
      }
    };
    await Promise.race([
      roll(),
      load.running.then(({ failure }) => Promise.reject(new Error(`the load ended early: ${failure}`))),
    ]);
    load.end();
    const { recorder } = await load.running;
    const slowestMs = await checks.end();
    const isFailedByRelease = (outcome: string) =>
      proxy === 'nginx' && direction === 'upgrade' && previousVersion === '1.0.0' && outcome === failedByRelease;
    // Calls in flight when the load ended are not included.
    const failed = [...recorder.outcomes].filter(([outcome, { wrong }]) => wrong > 0 && !isFailedByRelease(outcome));
    const calls = recorder.outcomes.values().reduce((sum, { count }) => sum + count, 0);
    const failedCalls = failed.reduce((sum, [, { wrong }]) => sum + wrong, 0);
    const failedByStop = recorder.outcomes.get(failedByRelease)?.wrong ?? 0;
    process.stderr.write(
      `${JSON.stringify({ proxy, step: step + 1, direction, calls, failed: failedCalls, failedByStop, slowestMs })}\n`,
    );
    if (slowestMs <= checkLimitMs) expect(failed).toEqual([]);
    if (failed.length > 0) reasonToSkip = `calls failed while a health check took ${slowestMs} ms`;
    for (const [index, journal] of journals.entries()) {
      const audit = await auditWhenDelivered(journal, databaseUrl, receiver);
      expect(audit.acknowledged).toBeGreaterThan(0);
      expect([index, audit.examples, auditErrors(audit)]).toEqual([index, [], 0]);
    }
    if (direction === 'upgrade') {
      if (refunded !== undefined) await expectRefunds(target, refundAccounts, refunded);
      await setMakesRefunds(databaseUrl, checkout);
      refunded = await createRefundedOrders(target, refundAccounts, step);
    } else if (refunded !== undefined) await writeRefundedOrders(target, refundAccounts, refunded);
    if (refunded !== undefined) {
      const events = await useReleasedClient(previous, target, refundAccounts, refunded);
      expect(events).toContain('order.refunded');
      const delivered = () => receiver.deliveries.values().filter(isOfReversal).toArray().length;
      await expect.poll(delivered).toBe(events.filter((type) => isOfReversal({ type })).length);
      expect(receiver.rejected).toEqual([]);
    }
  }
  return reasonToSkip;
}

/** Returns the names of all members of an order in the contract of a version. */
async function membersOfOrders(tree: string): Promise<string[]> {
  const proto = await readFile(join(tree, 'proto/gateway/v1/order.proto'), 'utf8');
  return [...proto.matchAll(/^ +(?:optional |repeated )?[\w.]+ (\w+) = \d+/gm)].map(([, member = '']) => member);
}

/** Lets the checkout system make refunds. Accounts of 1.0.0 make none. */
async function setMakesRefunds(databaseUrl: string, { clientId }: Credentials): Promise<void> {
  await using accounts = openAccountAdmin({ url: databaseUrl });
  await accounts.setMakesRefunds(clientId, true);
}

/** Whether an event announces a refund or a dispute. */
function isOfReversal({ type }: { readonly type: string }): boolean {
  return /refunded|refund_failed|disput/.test(type);
}

/** Checks gateways as often as a proxy does. `end` returns the longest response time. */
function watchChecks(ports: readonly number[], signal: AbortSignal) {
  let slowestMs = 0;
  let isOver = false;
  const watching = ports.map(async (port) => {
    while (!isOver && !signal.aborted) {
      const startedAt = performance.now();
      // A gateway that restarts refuses connections.
      await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => {});
      slowestMs = Math.max(slowestMs, Math.round(performance.now() - startedAt));
      await sleep(checkLimitMs);
    }
  });
  return {
    async end(): Promise<number> {
      isOver = true;
      await Promise.all(watching);
      return slowestMs;
    },
  };
}
