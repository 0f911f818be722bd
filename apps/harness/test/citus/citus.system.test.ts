import { type CitusCluster, missingCitus } from '@order-gateway/dev-postgres/testing/citus';
import { loadFixtures } from '@order-gateway/fixtures';
import { openClients } from '@order-gateway/fixtures/wire';
import { startDistributedCluster } from '@order-gateway/postgres/testing/distributed-database';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { startFixtureGateway, startOwnGateway } from '../../src/gateway/own-gateway.ts';
import { createCallMaker } from '../../src/load/calls/call-maker.ts';
import { openSender } from '../../src/load/calls/sender.ts';
import { constantRate, parseProfile } from '../../src/load/profile/profile.ts';
import { replayFixtures } from '../../src/replay/replay-fixtures.ts';
import { formatDifferences } from '../../src/replay/report.ts';
import { placementsOf } from './citus-faults.ts';

const { signal } = new AbortController();

describe.skipIf(mustSkip('gateways on Citus', missingCitus()))('a gateway on a Citus cluster', () => {
  let cluster: CitusCluster;
  beforeAll(async () => {
    cluster = await startDistributedCluster();
  });
  afterAll(() => cluster?.close());
  const database = async () => ({ url: cluster.url, stop: async () => {} });

  test('responds to every fixture like a gateway on a single server', async () => {
    const gateway = await startFixtureGateway(signal, database);
    onTestFinished(gateway.stop);
    const clients = openClients(gateway);
    onTestFinished(() => {
      for (const client of Object.values(clients)) client.close();
    });
    const { fixtures, validOrder } = await loadFixtures();
    const target = { ...gateway, clients, validOrder, runId: 'citus' };
    const replays = await replayFixtures(fixtures, target, signal);
    const replayedAs = (outcome: string) => replays.filter((replay) => replay.outcome === outcome);
    expect(replayedAs('differs').map(formatDifferences).join('\n')).toBe('');
    expect(replayedAs('ok').length).toBeGreaterThan(fixtures.length);
  });

  test('responds with unavailable for the merchants of a lost worker, and still serves other merchants', async () => {
    const names = Array.from({ length: 8 }, (_, index) => ({ name: `Merchant ${index}` }));
    const gateway = await startOwnGateway(names, signal, database);
    onTestFinished(gateway.stop);
    const { credentials } = gateway;
    const sender = openSender(gateway, 4);
    onTestFinished(sender.close);
    const shares = { replay_share: 0.25, get_share: 0.25, list_share: 0.25 };
    const profile = parseProfile({
      protocol: 'mixed',
      merchants: names.length,
      phases: constantRate(1, 1),
      ...shares,
    });
    const makeCall = createCallMaker({ ...profile, seed: 1 }, await loadFixtures(), credentials);
    const [lostWorker] = cluster.workers;
    const placements = await placementsOf(cluster);
    const isOnLostWorker = (clientId = '') => placements.get(clientId)?.port === lostWorker?.port;
    let number = 0;
    /**
     * Creates, repeats, finds and lists orders. Returns the outcomes for merchants on the lost worker, and for all
     * other merchants.
     */
    const sendCalls = async () => {
      const outcomes = { lost: new Set<string>(), others: new Set<string>() };
      for (const last = number + 100; number < last; number += 1) {
        const call = makeCall(number);
        const { outcome } = await sender.send(call);
        outcomes[isOnLostWorker(call.headers['x-client-id']) ? 'lost' : 'others'].add(
          call.expected.includes(outcome) ? 'ok' : outcome,
        );
      }
      return { lost: [...outcomes.lost], others: [...outcomes.others] };
    };
    expect(await sendCalls()).toEqual({ lost: ['ok'], others: ['ok'] });
    lostWorker?.kill();
    expect(await sendCalls()).toEqual({ lost: ['unavailable'], others: ['ok'] });
    await lostWorker?.start();
    await expect.poll(sendCalls).toEqual({ lost: ['ok'], others: ['ok'] });
  });
});
