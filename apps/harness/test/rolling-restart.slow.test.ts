import { randomBytes } from 'node:crypto';
import { freePorts } from '@order-gateway/dev-postgres';
import { createMerchant } from '@order-gateway/postgres/accounts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ProxyProgram, proxies, runProxy } from '../../../tools/proxies.ts';
import { missing, mustSkip } from '../../../tools/skip-if-missing.ts';
import { type GatewayProcess, startGatewayProcess } from '../src/gateway/gateway-process.ts';
import { openSender } from '../src/load/calls/sender.ts';
import { constantRate, parseProfile } from '../src/load/profile/profile.ts';
import { runLoad } from '../src/load/run/run-load.ts';
import { testDatabase } from './test-database.ts';

const restarts = Number(process.env.RESTARTS ?? 10);

/**
 * More than this many calls must succeed between two restarts. An operator would also wait until one gateway works
 * before stopping the next.
 */
const callsBetween = 60;

/** At least this many calls are in flight when a gateway is killed. */
const callsInFlight = 10;

describe.each(proxies)('one of two gateways behind %s', (proxy) => {
  const cannotRun = mustSkip(`restarts behind ${proxy}`, missing(proxy));

  test.skipIf(cannotRun)('can be restarted after SIGTERM without a failed call in any protocol', async () => {
    const { outcomes } = await restartUnderLoad(proxy, 'SIGTERM');
    expect([...outcomes.keys()].toSorted()).toEqual(['created', 'replayed']);
  });

  test.skipIf(cannotRun)('can be restarted after SIGKILL, and at most the calls in flight fail', async () => {
    const { failed, inFlight } = await restartUnderLoad(proxy, 'SIGKILL');
    expect(failed).toBeLessThanOrEqual(inFlight);
  });
});

/** Restarts one gateway after the other while calls are sent in all protocols. Prints and returns their outcomes. */
async function restartUnderLoad(proxy: ProxyProgram, restartSignal: 'SIGTERM' | 'SIGKILL') {
  const { url: databaseUrl, stop: dropDatabase } = await testDatabase();
  const [http = 0, grpc = 0, http1 = 0, grpc1 = 0, http2 = 0, grpc2 = 0] = await freePorts(6);
  // Production uses this delay. HAProxy notices within two checks (2 s) that a gateway stops, and nginx only when a
  // call fails.
  const variables = { DRAIN_DELAY_MS: '5000', BASE_URL: `http://127.0.0.1:${http}` };
  const settings = { databaseUrl, secretsKey: randomBytes(32).toString('base64'), variables };
  const { signal } = new AbortController();
  const ports = [
    { http: http1, grpc: grpc1 },
    { http: http2, grpc: grpc2 },
  ] as const;
  const gateways: GatewayProcess[] = [];
  onTestFinished(async () => {
    await Promise.all(gateways.map((gateway) => gateway.stop()));
    await dropDatabase();
  }, 60_000);
  const start = async (index: number) => {
    gateways[index] = await startGatewayProcess({ ...settings, ports: ports[index] }, signal);
  };
  await start(0);
  await start(1);
  await runProxy(proxy, { http, grpc, gateways: ports });
  const target = { httpUrl: `http://127.0.0.1:${http}`, grpcAddress: `127.0.0.1:${grpc}` };
  const isReady = async (url: string) => (await fetch(`${url}/health/ready`).catch(() => undefined))?.ok === true;
  await expect.poll(() => isReady(target.httpUrl)).toBe(true);
  const profile = parseProfile({ protocol: 'mixed', phases: constantRate(120, 5), connections: 4, replay_share: 0.1 });
  const credentials = [await createMerchant(databaseUrl, 'Shop')];
  let isOver = false;
  const outcomes = new Map<string, number>();
  /** The number of calls in flight, and the number of calls that succeeded. */
  let pending = 0;
  let succeeded = 0;
  const load = async () => {
    for (let seed = 1; !isOver; seed += 1) {
      const sender = openSender(target, profile.connections);
      const counting: typeof sender = {
        ...sender,
        async send(call) {
          pending += 1;
          const reply = await sender.send(call);
          pending -= 1;
          if (isSuccess(reply.outcome)) succeeded += 1;
          return reply;
        },
      };
      const run = { settings: { ...profile, profile: 'none', seed }, sender: counting, credentials };
      const { recorder } = await runLoad(run, signal);
      expect(recorder.dropped).toBe(0);
      for (const [outcome, { count }] of recorder.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
    }
  };
  const loading = load();
  let inFlight = 0;
  for (let count = 0; count < restarts; count += 1) {
    const index = count % gateways.length;
    if (restartSignal === 'SIGTERM') {
      await gateways[index]?.stop();
      await start(index);
    } else {
      // Only calls to the suspended gateway stay in flight: those to the other gateway end within milliseconds.
      process.kill(gateways[index]?.pid() ?? Number.NaN, 'SIGSTOP');
      await expect.poll(() => pending, { timeout: 30_000 }).toBeGreaterThanOrEqual(callsInFlight);
      inFlight += pending;
      await gateways[index]?.crash();
    }
    const before = succeeded;
    await expect.poll(() => succeeded - before, { timeout: 30_000 }).toBeGreaterThan(callsBetween);
  }
  isOver = true;
  await loading;
  const calls = outcomes.values().reduce((sum, count) => sum + count, 0);
  const failed = calls - succeeded;
  const row = { proxy, signal: restartSignal, restarts, calls, failed, in_flight: inFlight };
  process.stderr.write(`${JSON.stringify({ ...row, outcomes: Object.fromEntries(outcomes) })}\n`);
  return { outcomes, failed, inFlight };
}

function isSuccess(outcome: string): boolean {
  return outcome === 'created' || outcome === 'replayed';
}
