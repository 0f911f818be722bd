import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ReplicatedServers, standbyName, startReplicatedServers } from '@gateway/dev-postgres/testing/replicated';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { migrateDatabase } from '@gateway/postgres/migrate';
import { runQuery } from '@gateway/postgres/testing/run-query';
import { expect, onTestFinished, test } from 'vitest';
import { auditJournal } from '../src/audit/audit.ts';
import { startGatewayProcess } from '../src/gateway/gateway-process.ts';
import { constantRate } from '../src/load/arrivals.ts';
import { parseProfile } from '../src/load/profile.ts';
import { runLoad } from '../src/load/run-load.ts';
import { createWatchingSender } from '../src/load/watching-sender.ts';
import { folder, useFolder } from './load-program.ts';

useFolder();

/** Acknowledged before the failover, and after it. */
const ordersMin = 100;

/** Few calls at a time: others are not sent while the server hangs. It is ended by the test. */
const profile = parseProfile({ merchants: 2, phases: constantRate(200, 600), max_pending: 8 });

/** Two gateways on a primary and its standby, and orders of two merchants that are sent to both gateways. */
async function startLoad() {
  const servers = await startReplicatedServers();
  onTestFinished(() => servers.close());
  const { primary, standby } = servers;
  await migrateDatabase(primary.url);
  const credentials = [await createMerchant(primary.url, 'First'), await createMerchant(primary.url, 'Second')];
  const gatewaySettings = { databaseUrl: servers.url, secretsKey: randomBytes(32).toString('base64') };
  const { signal } = new AbortController();
  const starts = [0, 1].map(() => startGatewayProcess(gatewaySettings, signal));
  onTestFinished(async () => void (await Promise.allSettled(starts.map(async (start) => (await start).stop()))));
  const sender = createWatchingSender(await Promise.all(starts), 8);
  const enough = new AbortController();
  const journalFile = join(folder, 'journal.ndjson');
  const settings = { ...profile, profile: 'none', seed: 1 };
  const loading = runLoad({ settings, sender, credentials, journalFile }, enough.signal);
  onTestFinished(() => enough.abort());
  const more = () => {
    const before = sender.created();
    return expect.poll(() => sender.created() - before).toBeGreaterThan(ordersMin);
  };
  /** Ends the primary, promotes the standby, and audits what was acknowledged. */
  const failOver = async () => {
    primary.kill();
    await standby.promote();
    await sender.timeToCreated('every', enough.signal);
    await more();
    enough.abort();
    const { recorder } = await loading;
    expect([...recorder.outcomes.keys()].toSorted()).toEqual(['created', 'unavailable']);
    return auditJournal(journalFile, standby.url);
  };
  return { primary, standby, created: sender.created, more, failOver };
}

/** Cuts the standby off: what the primary commits from now on it never gets. */
async function detach({ standby }: Pick<ReplicatedServers, 'standby'>): Promise<void> {
  await runQuery(standby.url, "alter system set primary_conninfo = ''");
  await runQuery(standby.url, 'select pg_reload_conf()');
  await expect.poll(() => runQuery(standby.url, 'select from pg_stat_wal_receiver')).toHaveLength(0);
}

/** Ends the gateways' sessions, so that each reserves another block of ids. */
const endSessions =
  "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'order-gateway%'";

test('after a failover to a standby that lags, both gateways go on and no service_order_id is there twice', async () => {
  const { primary, standby, more, failOver } = await startLoad();
  await more();
  await detach({ standby });
  // Blocks of ids that the standby does not know of.
  for (let round = 0; round < 3; round += 1) {
    await runQuery(primary.url, endSessions);
    await more();
  }
  const audit = await failOver();
  // The lag is what an asynchronous standby can lose.
  expect(audit.lost).toBeGreaterThan(ordersMin);
  expect(audit.duplicated).toBe(0);
});

test('orders whose commit was cancelled while it waited for the standby are not acknowledged: a failover loses none', async () => {
  const { primary, standby, created, more, failOver } = await startLoad();
  await runQuery(primary.url, `alter system set synchronous_standby_names = '${standbyName}'`);
  await runQuery(primary.url, 'select pg_reload_conf()');
  const synchronous = "select from pg_stat_replication where sync_state = 'sync'";
  await expect.poll(() => runQuery(primary.url, synchronous)).toHaveLength(1);
  await more();
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
