import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { expect, onTestFinished, test } from 'vitest';
import { leftOut } from '../../../tools/left-out.ts';
import { freePorts, missing, runProxy } from '../../../tools/proxies.ts';
import { type GatewayProcess, startGatewayProcess } from '../src/gateway/gateway-process.ts';
import { constantRate } from '../src/load/arrivals.ts';
import { parseProfile } from '../src/load/profile.ts';
import { runLoad } from '../src/load/run-load.ts';
import { openSender } from '../src/load/sender.ts';
import { testDatabase } from './test-database.ts';

const restarts = Number(process.env.RESTARTS ?? 10);

/** HAProxy notices within two checks, 400 ms, of which a busy machine makes more. */
const drainDelayMs = 1_500;

const cannotRun = leftOut('restarts behind HAProxy', missing('haproxy'));

test.skipIf(cannotRun)('restarts of one of two gateways behind HAProxy fail no request, in any protocol', async () => {
  const { url: databaseUrl, stop: dropDatabase } = await testDatabase();
  const [http, grpc, http1, grpc1, http2, grpc2] = await freePorts(6);
  const variables = { DRAIN_DELAY_MS: String(drainDelayMs), BASE_URL: `http://127.0.0.1:${http}` };
  const settings = { databaseUrl, secretsKey: randomBytes(32).toString('base64'), variables };
  const { signal } = new AbortController();
  const start = (httpPort = 0, grpcPort = 0) => startGatewayProcess({ ...settings, httpPort, grpcPort }, signal);
  const running = new Set<GatewayProcess>();
  onTestFinished(async () => {
    await Promise.all([...running].map((gateway) => gateway.stop()));
    await dropDatabase();
  }, 60_000);
  const started = async (starting: Promise<GatewayProcess>) => {
    const gateway = await starting;
    running.add(gateway);
    return gateway;
  };
  let restarted = await started(start(http1, grpc1));
  await started(start(http2, grpc2));
  await runProxy('haproxy', [
    [':443 ssl crt /etc/haproxy/pay.example.com.pem alpn h2,http/1.1 ssl-min-ver TLSv1.2', `127.0.0.1:${http}`],
    [':9443 ssl crt /etc/haproxy/pay.example.com.pem alpn h2 ssl-min-ver TLSv1.2', `127.0.0.1:${grpc} proto h2`],
    ['10.0.0.11:8080', `127.0.0.1:${http1}`],
    ['10.0.0.12:8080', `127.0.0.1:${http2}`],
    ['10.0.0.11:9090', `127.0.0.1:${grpc1}`],
    ['10.0.0.12:9090', `127.0.0.1:${grpc2}`],
    ['inter 1s', 'inter 200ms'],
  ]);
  const target = { httpUrl: `http://127.0.0.1:${http}`, grpcAddress: `127.0.0.1:${grpc}` };
  const isReady = async (url: string) => (await fetch(`${url}/health/ready`).catch(() => undefined))?.ok === true;
  await expect.poll(() => isReady(target.httpUrl)).toBe(true);
  const profile = parseProfile({ protocol: 'mixed', phases: constantRate(120, 5), connections: 4, replay_share: 0.1 });
  const credentials = [await createMerchant(databaseUrl, 'Shop')];
  let isOver = false;
  const outcomes = new Map<string, number>();
  const load = async () => {
    for (let seed = 1; !isOver; seed += 1) {
      const run = {
        settings: { ...profile, profile: 'none', seed },
        sender: openSender(target, profile.connections),
        credentials,
      };
      const { recorder } = await runLoad(run, signal);
      expect(recorder).toMatchObject({ unanswered: 0, dropped: 0 });
      for (const [outcome, { count }] of recorder.outcomes) outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
    }
  };
  const loading = load();
  for (let count = 0; count < restarts; count += 1) {
    running.delete(restarted);
    await restarted.stop();
    restarted = await started(start(http1, grpc1));
    // HAProxy sends it requests again.
    await sleep(1_000);
  }
  isOver = true;
  await loading;
  process.stderr.write(`${restarts} restarts: ${JSON.stringify(Object.fromEntries(outcomes))}\n`);
  expect([...outcomes.keys()].toSorted()).toEqual(['created', 'replayed']);
});
