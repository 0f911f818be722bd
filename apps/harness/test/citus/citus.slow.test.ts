import { join } from 'node:path';
import { missingCitus } from '@order-gateway/dev-postgres/testing/citus';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import { auditWhenDelivered } from '../../src/audit/audit.ts';
import type { OwnGateway } from '../../src/gateway/own-gateway.ts';
import { openSender } from '../../src/load/calls/sender.ts';
import { constantRate, loadProfile, parseProfile } from '../../src/load/profile/profile.ts';
import { readEnvironment, reportOf } from '../../src/load/report/report.ts';
import { runLoad } from '../../src/load/run/run-load.ts';
import { startWebhookReceiver } from '../../src/webhooks/receiver.ts';
import { medianOf, startComparedGateways } from './compared-gateways.ts';
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
