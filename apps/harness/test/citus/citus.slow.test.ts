import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { missingCitus } from '@order-gateway/dev-postgres/testing/citus';
import type { GatewayAddresses } from '@order-gateway/fixtures/wire';
import { workerConnectionsMax } from '@order-gateway/postgres/connections';
import { startDistributedCluster } from '@order-gateway/postgres/testing/distributed-database';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import { auditErrors, auditWhenDelivered, formatAudit } from '../../src/audit/audit.ts';
import type { OwnGateway } from '../../src/gateway/own-gateway.ts';
import { openSender } from '../../src/load/calls/sender.ts';
import { constantRate, loadProfile, parseProfile } from '../../src/load/profile/profile.ts';
import { readEnvironment, reportOf } from '../../src/load/report/report.ts';
import { runLoad } from '../../src/load/run/run-load.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../../src/webhooks/receiver.ts';
import { medianOf, startComparedGateways, startGatewayOn } from './compared-gateways.ts';
import { type Milliseconds, measuredOperations, operationMeter } from './measure-operations.ts';

const { signal } = new AbortController();

describe.skipIf(mustSkip('Citus compared with one server', missingCitus()))(
  'compared with one server on the same machine',
  () => {
    test('the median call of each operation takes at most 2.5 times as long on Citus', async () => {
      const gateways = await startComparedGateways(5);
      const [plain, citus] = [await operationMeter(gateways.plain), await operationMeter(gateways.citus)];
      const times: Record<'plain' | 'citus', Milliseconds[]> = { plain: [], citus: [] };
      for (let round = 0; round < 250; round += 1) {
        const [onPlain, onCitus] = [await plain(), await citus()];
        // The first rounds compile the code and open connections.
        if (round < 50) continue;
        times.plain.push(onPlain);
        times.citus.push(onCitus);
      }
      const figures = measuredOperations.map((name) => {
        const [plainMs, citusMs] = [times.plain, times.citus].map((rounds) =>
          medianOf(rounds.map((round) => round[name])),
        );
        return {
          name,
          plain: Number(plainMs?.toFixed(1)),
          citus: Number(citusMs?.toFixed(1)),
          ratio: Number(((citusMs ?? 0) / (plainMs ?? 0)).toFixed(2)),
        };
      });
      process.stdout.write(`${JSON.stringify(figures)}\n`);
      for (const { name, ratio } of figures) expect.soft(ratio, name).toBeLessThanOrEqual(2.5);
    });

    test('40 merchants create at least half as many orders per second on Citus', async () => {
      const gateways = await startComparedGateways(40);
      const rates: Record<'plain' | 'citus', number[]> = { plain: [], citus: [] };
      const profile = parseProfile({ mode: 'closed', merchants: 40, connections: 64, phases: constantRate(1, 4) });
      for (let round = 0; round < 6; round += 1) {
        for (const name of ['plain', 'citus'] as const) {
          const settings = { ...profile, profile: 'none', seed: round };
          const { credentials } = gateways[name];
          const { recorder, seconds } = await runLoad(
            { settings, sender: openSender(gateways[name], 64), credentials },
            signal,
          );
          expect(recorder.errors).toBe(0);
          // The first round compiles the code.
          if (round > 0) rates[name].push(recorder.right / seconds);
        }
      }
      const [plain, citus] = [medianOf(rates.plain), medianOf(rates.citus)];
      process.stdout.write(
        `orders/s: ${Math.round(plain)}, on Citus ${Math.round(citus)}: ${(citus / plain).toFixed(2)}\n`,
      );
      expect(citus / plain).toBeGreaterThanOrEqual(0.5);
    });

    test('both meet the thresholds of the profile lifecycle at 300 calls/s', async () => {
      const gateways = await startComparedGateways(5);
      for (const name of ['plain', 'citus'] as const) {
        const { httpUrl: target, databaseUrl } = gateways[name];
        const receiver = await receiveWebhooks(gateways[name], 5);
        const load = { merchants: 5, seed: 1, rate: 300, seconds: 30, receiver };
        const { settings, outcome, audit } = await runLifecycle(gateways[name], load);
        const environment = await readEnvironment(target, databaseUrl);
        const report = reportOf(outcome, { settings, target, environment, audit });
        const { latency, rate_done, dropped_rate, outcomes, verdict } = report;
        process.stdout.write(
          `${JSON.stringify({ name, p50: latency.p50, p99: latency.p99, rate_done, dropped_rate, outcomes })}\n`,
        );
        expect
          .soft(
            verdict.judged.filter(({ passed }) => !passed),
            name,
          )
          .toEqual([]);
      }
    });
  },
);

const connectionsMax = 100;
const minutes = 10;

test.skipIf(mustSkip('three gateways on Citus', missingCitus()))(
  `three gateways have no failed call in ${minutes} minutes on workers that accept ${connectionsMax} connections`,
  async () => {
    const cluster = await startDistributedCluster({ workerConnectionsMax: connectionsMax });
    onTestFinished(cluster.close);
    const gateway = await startGatewayOn(cluster.url, 16);
    const gateways = [gateway, await gateway.startAnother(), await gateway.startAnother()];
    const receiver = await receiveWebhooks(gateway, 16);
    const load = { merchants: 16, rate: 10, seconds: minutes * 60, receiver };
    const running = gateways.map((target, seed) => runLifecycle(gateway, { ...load, seed }, target));
    let isRunning = true;
    const ended = Promise.all(running).finally(() => {
      isRunning = false;
    });
    const used: number[] = [];
    while (isRunning) {
      for (const { url } of cluster.workers) {
        const [row] = await runQuery(
          url,
          "select count(*)::int - 1 as others from pg_stat_activity where backend_type = 'client backend'",
        );
        used.push(Number(row?.others));
      }
      await sleep(1_000);
    }
    const runs = await ended;
    const outcomes = runs.map(({ outcome }) => Object.fromEntries(outcome.recorder.outcomes));
    process.stdout.write(`${JSON.stringify({ connections: Math.max(...used), outcomes })}\n`);
    for (const { outcome, audit } of runs) {
      const { errors, dropped } = outcome.recorder;
      expect.soft([errors, dropped, auditErrors(audit)], formatAudit(audit)).toEqual([0, 0, 0]);
      expect(audit.acknowledged).toBeGreaterThan(0);
    }
    expect(Math.max(...used)).toBeLessThanOrEqual(gateways.length * workerConnectionsMax);
  },
);

/** Starts a receiver of the webhooks of a gateway's first merchants. */
async function receiveWebhooks(gateway: OwnGateway, merchants: number): Promise<WebhookReceiver> {
  const receiver = await startWebhookReceiver();
  onTestFinished(receiver.close);
  await gateway.sendWebhooks(merchants, receiver);
  return receiver;
}

interface LifecycleRun {
  readonly merchants: number;
  readonly seed: number;
  readonly rate: number;
  readonly seconds: number;
  readonly receiver: WebhookReceiver;
}

/**
 * Sends calls of the profile `lifecycle`, and audits them. `target` is the gateway or another one on its database; only
 * `gateway` has the credentials.
 */
async function runLifecycle(
  gateway: OwnGateway,
  { merchants, seed, rate, seconds, receiver }: LifecycleRun,
  target: GatewayAddresses = gateway,
) {
  const [credentials, checkout] = [gateway.credentials.slice(0, merchants), gateway.credentials.at(-1)];
  const journalFile = join(await temporaryFolder(), 'journal.ndjson');
  const phases = constantRate(rate, seconds);
  const settings = { ...loadProfile('lifecycle'), merchants, phases, profile: 'lifecycle', seed };
  const run = (changed: Partial<typeof settings>, journalFile?: string) => {
    const sender = openSender(target, settings.connections, gateway.databaseUrl);
    return runLoad({ settings: { ...settings, ...changed }, sender, credentials, checkout, journalFile }, signal);
  };
  // The first run compiles the code and opens connections.
  await run({ phases: constantRate(rate, 10), seed: seed + 100 });
  const outcome = await run({}, journalFile);
  return { settings, outcome, audit: await auditWhenDelivered(journalFile, gateway.databaseUrl, receiver) };
}
