import { randomInt } from 'node:crypto';
import { missingCitus } from '@order-gateway/dev-postgres/testing/citus';
import { startDistributedCluster } from '@order-gateway/postgres/testing/distributed-database';
import { expect, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { createLatencies } from '../../src/load/run/latencies.ts';
import { expectNothingLost, type FaultPlan, faultTable, runFaults } from '../faults/run-faults.ts';
import { type CitusTarget, citusFaults } from './citus-faults.ts';
import { type FollowedFeed, followFeed } from './feed-followers.ts';

const { FAULTS_SEED = randomInt(2 ** 32), FAULTS_PERCENT = 100 } = process.env;
const seed = Number(FAULTS_SEED);
const rate = 40;

const timesOf = (name: string) => Math.ceil(((name === 'shard moved' ? 5 : 10) * Number(FAULTS_PERCENT)) / 100);

const isSkipped = mustSkip('faults of workers of Citus', missingCitus());

test.skipIf(isSkipped)(
  'when workers fail and shards move, no acknowledged order is lost, duplicated or changed, and no event is missed',
  async () => {
    process.stdout.write(`FAULTS_SEED=${seed} repeats the calls and the faults\n`);
    const latencies = { quiet: createLatencies(), unaffected: createLatencies(), affected: createLatencies() };
    const failedUnaffected = new Map<string, number>();
    const feeds: FollowedFeed[] = [];
    const following = new AbortController();
    const plan: FaultPlan<CitusTarget> = {
      seed,
      faults: citusFaults.map((fault) => ({ fault, times: timesOf(fault.name) })),
      extraMerchants: 8,
      // At 100 calls per second, two slow cores were overloaded before any fault, and the load generator with them.
      rate,
      // A call waits for at most 5 s, so that no call is dropped while the merchants of a worker wait.
      pendingMax: rate * 5,
      pauseMs: 3_000,
      async startDatabase(started) {
        const cluster = await startDistributedCluster();
        started.defer(cluster.close);
        return { url: cluster.url, auditUrl: cluster.url, target: { cluster, current: {} } };
      },
      watch({ gateways, credentials, current }) {
        for (const [index, merchant] of credentials.entries()) {
          feeds.push(followFeed(gateways[index % gateways.length]?.httpUrl ?? '', merchant, following.signal));
        }
        return {
          onReply({ headers, expected }, { outcome }, ms) {
            const clientId = headers['x-client-id'] ?? '';
            if (!credentials.some((merchant) => merchant.clientId === clientId)) return;
            const group =
              current.isAffected === undefined ? 'quiet' : current.isAffected(clientId) ? 'affected' : 'unaffected';
            latencies[group].record(ms);
            if (group === 'unaffected' && !expected.includes(outcome))
              failedUnaffected.set(outcome, (failedUnaffected.get(outcome) ?? 0) + 1);
          },
        };
      },
    };
    const run = await runFaults(plan);
    process.stdout.write(faultTable([{ name: 'Citus', ...run }]));
    const figures = Object.entries(latencies).map(([name, { count, percentile }]) => [
      name,
      { count, p50: percentile(50), p99: percentile(99) },
    ]);
    process.stdout.write(
      `${JSON.stringify({ ...Object.fromEntries(figures), failedUnaffected: Object.fromEntries(failedUnaffected), outcomes: Object.fromEntries(run.recorder.outcomes) })}\n`,
    );
    expectNothingLost(run, false);
    following.abort();
    for (const { httpUrl, done, credentials, eventIds, failures } of feeds) {
      await done;
      expect(failures.filter((status) => status !== 503 && status !== 504)).toEqual([]);
      const completeFeed = followFeed(httpUrl, credentials, following.signal);
      await completeFeed.done;
      // More orders may have expired since the first reader ended.
      expect(eventIds).toEqual(completeFeed.eventIds.slice(0, eventIds.length));
      expect(eventIds.length).toBeGreaterThan(0);
    }
  },
);
