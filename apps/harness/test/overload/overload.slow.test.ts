import { readFileSync } from 'node:fs';
import { freePorts } from '@order-gateway/dev-postgres';
import type { Credentials } from '@order-gateway/domain/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { proxies, runProxy } from '../../../../tools/proxies.ts';
import { missing, mustSkip } from '../../../../tools/skip-if-missing.ts';
import { type OwnGateway, startOwnGateway } from '../../src/gateway/own-gateway.ts';
import type { FloodOptions, FloodResult, Latencies } from './flood.ts';
import { goodputOf, runFlood } from './run-flood.ts';

// These tests print how a gateway handles several times its capacity. The figures depend on the machine, so the tests
// check only what holds on every machine. docs/decisions/037-overload.md has results.

const protocols = ['json', 'grpc'] as const;
const ordinaryMerchants = 20;
const seconds = 5;

let gateway: OwnGateway;
beforeAll(async () => {
  const merchants = Array.from({ length: 1 + ordinaryMerchants }, (_, index) => ({ name: `Merchant ${index}` }));
  gateway = await startOwnGateway(merchants, new AbortController().signal);
});
afterAll(() => gateway?.stop());

const flood = (options: Omit<FloodOptions, 'port'>) => runFlood(gateway, options);

function firstMerchant(): readonly Credentials[] {
  return gateway.credentials.slice(0, 1);
}

/** Returns the orders created per second if the connections wait for responses, so that there is no overload. */
async function findPeak(protocol: FloodOptions['protocol']): Promise<number> {
  const connections = protocol === 'json' ? 64 : 1;
  // The first flood is not measured, because the code of a new process is not compiled yet.
  await flood({ protocol, credentials: firstMerchant(), rate: 1_000, seconds, connections });
  return goodputOf(await flood({ protocol, credentials: firstMerchant(), rate: 100_000, seconds, connections }));
}

/** Returns the resident memory of the gateway's process in MiB. */
function memory(): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid()}/status`, 'utf8'))?.[1]) / 1_024);
}

const shown = ({ count, p50, p99, max }: Latencies) => `${count} (p50 ${p50}, p99 ${p99}, max ${max} ms)`;

function print(title: string, result: FloodResult): void {
  const { created, rejected, unsent } = result;
  const figures = `created ${shown(created)}, rejected ${shown(rejected)}, not sent ${unsent}, ${memory()} MiB`;
  process.stdout.write(`${title}: ${goodputOf(result)}/s, ${figures}\n`);
}

test.each(protocols)(
  '%s: at up to 10 times its peak rate, a gateway still creates orders, and it responds to all calls afterwards',
  async (protocol) => {
    const peak = await findPeak(protocol);
    process.stdout.write(`${protocol}: peak ${peak}/s\n`);
    const connections = protocol === 'json' ? 1_000 : 64;
    for (const times of [1, 2, 5, 10]) {
      const result = await flood({ protocol, credentials: firstMerchant(), rate: times * peak, seconds, connections });
      print(`${protocol}, ${times}x`, result);
      expect(result.created.count).toBeGreaterThan(0);
      const after = await flood({
        protocol,
        credentials: firstMerchant(),
        rate: peak / 4,
        seconds: 2,
        connections: 16,
      });
      print(`${protocol}, a quarter of the peak immediately afterwards`, after);
      expect(after.unanswered).toBe(0);
    }
  },
);

test('json: 4,000 connections that retry immediately do not block an ordinary merchant', async () => {
  process.stdout.write(`json: peak ${await findPeak('json')}/s\n`);
  const [flooding, ordinary] = await Promise.all([
    flood({ protocol: 'json', credentials: gateway.credentials.slice(1), rate: 100_000, seconds, connections: 4_000 }),
    flood({ protocol: 'json', credentials: firstMerchant(), rate: 20, seconds, connections: 20 }),
  ]);
  print('json, connections that retry', flooding);
  print('json, ordinary merchant', ordinary);
  expect(ordinary.unanswered).toBe(0);
  expect(ordinary.created.count).toBeGreaterThan(0);
});

describe.each(proxies)('behind %s', (proxy) => {
  const cannotRun = mustSkip(`a flood through ${proxy}`, missing(proxy));

  test.skipIf(cannotRun)(
    'json: 4,000 connections from one address do not block a merchant at another address',
    async () => {
      const [http = 0, grpc = 0] = await freePorts(2);
      const [httpPort = 0, grpcPort = 0] = [gateway.httpUrl, gateway.grpcAddress].map((address) =>
        Number(address.split(':').at(-1)),
      );
      const ports = { http: httpPort, grpc: grpcPort };
      await runProxy(proxy, { http, grpc, gateways: [ports, ports] });
      const proxied = { httpUrl: `http://127.0.0.1:${http}`, grpcAddress: `127.0.0.1:${grpc}` };
      await expect.poll(() => fetch(proxied.httpUrl).catch(() => undefined)).toBeDefined();
      const send = (options: Omit<FloodOptions, 'port' | 'protocol'>) =>
        runFlood(proxied, { ...options, protocol: 'json' });
      const ordinary = { credentials: firstMerchant(), rate: 20, seconds, connections: 20, localAddress: '127.0.0.3' };
      print(`json behind ${proxy}, ordinary merchant alone`, await send(ordinary));
      const flooding = { ...ordinary, credentials: gateway.credentials.slice(1), rate: 100_000, connections: 4_000 };
      const [flooded, undisturbed] = await Promise.all([
        send({ ...flooding, localAddress: '127.0.0.2' }),
        send(ordinary),
      ]);
      print(`json behind ${proxy}, connections that retry`, flooded);
      print(`json behind ${proxy}, ordinary merchant`, undisturbed);
      expect(undisturbed).toMatchObject({ unanswered: 0, unsent: 0, created: { count: ordinary.rate * seconds } });
    },
  );
});

test.each(protocols)(
  '%s: a merchant that sends 5 times the peak rate does not block 20 ordinary merchants',
  async (protocol) => {
    const peak = await findPeak(protocol);
    const ordinary = gateway.credentials.slice(1);
    const connections = protocol === 'json' ? 1_000 : 64;
    const [flooded, undisturbed] = await Promise.all([
      flood({ protocol, credentials: firstMerchant(), rate: 5 * peak, seconds, connections }),
      flood({ protocol, credentials: ordinary, rate: 20 * ordinary.length, seconds, connections: 2 * ordinary.length }),
    ]);
    print(`${protocol}, flooding merchant`, flooded);
    print(`${protocol}, ordinary merchants`, undisturbed);
    expect(undisturbed.unanswered).toBe(0);
    expect(undisturbed.created.count).toBeGreaterThan(0);
  },
);
