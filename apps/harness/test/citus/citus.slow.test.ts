import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { missingCitus } from '@order-gateway/dev-postgres/testing/citus';
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
import { startWebhookReceiver } from '../../src/webhooks/receiver.ts';
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
        const { latency, rate_done, dropped_rate, outcomes, verdict } = await runLifecycle(gateways[name]);
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
    const receiver = await startWebhookReceiver();
    onTestFinished(receiver.close);
    await gateway.sendWebhooks(16, receiver);
    const [credentials, checkout] = [gateway.credentials.slice(0, 16), gateway.credentials.at(-1)];
    const profile = { ...loadProfile('lifecycle'), merchants: 16, phases: constantRate(10, minutes * 60) };
    const running = gateways.map(async (one, index) => {
      const run = (changed: Partial<typeof profile>, seed: number, journalFile?: string) => {
        const settings = { ...profile, ...changed, profile: 'lifecycle', seed };
        const sender = openSender(one, settings.connections, gateway.databaseUrl);
        return runLoad({ settings, sender, credentials, checkout, journalFile }, signal);
      };
      // The first run compiles the code and opens connections.
      await run({ phases: constantRate(10, 20) }, gateways.length + index);
      const journalFile = join(await temporaryFolder(), 'journal.ndjson');
      const { recorder } = await run({}, index, journalFile);
      return { recorder, audit: await auditWhenDelivered(journalFile, gateway.databaseUrl, receiver) };
    });
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
    const outcomes = runs.map(({ recorder }) => Object.fromEntries(recorder.outcomes));
    process.stdout.write(`${JSON.stringify({ connections: Math.max(...used), outcomes })}\n`);
    for (const { recorder, audit } of runs) {
      expect.soft([recorder.errors, recorder.dropped, auditErrors(audit)], formatAudit(audit)).toEqual([0, 0, 0]);
      expect(audit.acknowledged).toBeGreaterThan(0);
    }
    expect(Math.max(...used)).toBeLessThanOrEqual(gateways.length * workerConnectionsMax);
  },
);

async function runLifecycle(gateway: OwnGateway) {
  const receiver = await startWebhookReceiver();
  onTestFinished(receiver.close);
  const { merchants, ...profile } = loadProfile('lifecycle');
  await gateway.sendWebhooks(merchants, receiver);
  const [credentials, checkout] = [gateway.credentials.slice(0, merchants), gateway.credentials.at(-1)];
  const journalFile = join(await temporaryFolder(), 'journal.ndjson');
  const settings = { ...profile, merchants, phases: constantRate(300, 30), profile: 'lifecycle', seed: 1 };
  const run = (changed: Partial<typeof settings>, journalFile?: string) => {
    const sender = openSender(gateway, settings.connections, gateway.databaseUrl);
    return runLoad({ settings: { ...settings, ...changed }, sender, credentials, checkout, journalFile }, signal);
  };
  // The first run compiles the code and opens connections.
  await run({ phases: constantRate(300, 10), seed: 0 });
  const outcome = await run({}, journalFile);
  const audit = await auditWhenDelivered(journalFile, gateway.databaseUrl, receiver);
  const environment = await readEnvironment(gateway.httpUrl, gateway.databaseUrl);
  return reportOf(outcome, { settings, target: gateway.httpUrl, environment, audit });
}
