import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ReplicatedServers,
  standbyName,
  startReplicatedServers,
} from '@order-gateway/dev-postgres/testing/replicated';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, onTestFinished, test } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { auditJournal } from '../src/audit/audit.ts';
import { startOwnGateway } from '../src/gateway/own-gateway.ts';
import { constantRate, parseProfile } from '../src/load/profile/profile.ts';
import { startWatchedLoad } from '../src/load/run/watched-load.ts';
import { temporaryOutcomes } from './faults/run-faults.ts';
import { folder, useFolder } from './load/load-program.ts';

useFolder();

/** The minimum number of orders created in each part of a test. */
const ordersMin = 100;

/** Few calls are in flight. While no server responds, further calls are dropped. The test ends the load. */
const profile = parseProfile({ merchants: 2, phases: constantRate(200, 600), connections: 8, max_pending: 8 });

/** Starts two gateways on a primary and its standby, and sends the orders of two merchants to both gateways. */
async function startLoad() {
  const servers = await startReplicatedServers();
  onTestFinished(() => servers.close());
  const { primary, standby } = servers;
  await migrateDatabase(primary.url);
  const database = async () => ({ url: primary.url, gatewayUrl: servers.url, stop: async () => {} });
  const merchants = [{ name: 'First' }, { name: 'Second' }];
  const first = await startOwnGateway(merchants, new AbortController().signal, database);
  onTestFinished(first.stop);
  const gateways = [first, await first.startAnother()];
  const load = startWatchedLoad(gateways, { profile, seed: 1, credentials: first.credentials, folder });
  onTestFinished(load.end);
  const waitForMore = () => {
    const before = load.created();
    return expect.poll(() => load.created() - before).toBeGreaterThan(ordersMin);
  };
  /** Kills the primary, promotes the standby, and audits the acknowledged orders. */
  const failOver = async () => {
    primary.kill();
    await standby.promote();
    await load.timeToCreated('every', AbortSignal.timeout(waitLimitMs));
    await waitForMore();
    load.end();
    const { recorder } = await load.running;
    expect([...recorder.outcomes.keys()].filter((outcome) => !temporaryOutcomes.test(outcome))).toEqual(['created']);
    return auditJournal(load.journalFile, standby.url);
  };
  return { primary, standby, created: load.created, waitForMore, failOver };
}

/** Disconnects the standby, which never receives what the primary commits from now on. */
async function detach({ standby }: Pick<ReplicatedServers, 'standby'>): Promise<void> {
  await runQuery(standby.url, "alter system set primary_conninfo = ''");
  await runQuery(standby.url, 'select pg_reload_conf()');
  await expect.poll(() => runQuery(standby.url, 'select from pg_stat_wal_receiver')).toHaveLength(0);
}

/** Ends the gateways' sessions. Each session that replaces one of them reserves another block of ids. */
const endSessions =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'order-gateway%'";

test('after a failover to a standby that lags, both gateways create orders again, and no service_order_id exists twice', async () => {
  const { primary, standby, waitForMore, failOver } = await startLoad();
  await waitForMore();
  await detach({ standby });
  // Makes the gateways reserve blocks of ids that the standby does not know.
  for (let round = 0; round < 3; round += 1) {
    await runQuery(primary.url, endSessions);
    await waitForMore();
  }
  const audit = await failOver();
  // A failover to an asynchronous standby can lose the orders by which it lags.
  expect(audit.lost).toBeGreaterThan(ordersMin);
  expect(audit.duplicated).toBe(0);
});

test('an order is not acknowledged if its commit was cancelled while waiting for the standby, so a failover loses no order', async () => {
  const { primary, standby, created, waitForMore, failOver } = await startLoad();
  await runQuery(primary.url, `alter system set synchronous_standby_names = '${standbyName}'`);
  await runQuery(primary.url, 'select pg_reload_conf()');
  const synchronous = "select from pg_stat_replication where sync_state = 'sync'";
  await expect.poll(() => runQuery(primary.url, synchronous)).toHaveLength(1);
  await waitForMore();
  await detach({ standby });
  const waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep'";
  for (let round = 0; round < 3; round += 1) {
    await expect.poll(() => runQuery(primary.url, waiting)).not.toHaveLength(0);
    await runQuery(primary.url, `select pg_cancel_backend(pid) from (${waiting})`);
    await sleep(100);
  }
  const [stored] = await runQuery(primary.url, 'select count(*)::int as orders from orders');
  expect(stored?.orders).toBeGreaterThan(created());
  expect(await failOver()).toMatchObject({ lost: 0, duplicated: 0, changed: 0 });
});
