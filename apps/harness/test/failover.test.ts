import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ReplicatedServers, standbyName, startReplicatedServers } from '@gateway/dev-postgres/testing/replicated';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { migrateDatabase } from '@gateway/postgres/migrate';
import { runQuery } from '@gateway/postgres/testing/run-query';
import { expect, onTestFinished, test } from 'vitest';
import { auditStream, type OrderStream, startOrderStream } from '../src/failover/order-stream.ts';
import { startGatewayProcess } from '../src/gateway/gateway-process.ts';

/** Acknowledged before the failover, and after it. */
const ordersMin = 100;

/** Two gateways on a primary and its standby, and orders of two merchants that are sent to both gateways. */
async function startStream() {
  const servers = await startReplicatedServers();
  onTestFinished(() => servers.close());
  await migrateDatabase(servers.primary.url);
  const merchants = [
    await createMerchant(servers.primary.url, 'First'),
    await createMerchant(servers.primary.url, 'Second'),
  ];
  const gatewaySettings = { databaseUrl: servers.url, secretsKey: randomBytes(32).toString('base64') };
  const { signal } = new AbortController();
  const starts = [0, 1].map(() => startGatewayProcess(gatewaySettings, signal));
  onTestFinished(async () => void (await Promise.allSettled(starts.map(async (start) => (await start).stop()))));
  const gateways = await Promise.all(starts);
  const stream = startOrderStream(
    gateways.map(({ httpUrl }) => httpUrl),
    merchants,
  );
  onTestFinished(() => stream.stop());
  return { ...servers, stream };
}

const more = (stream: OrderStream) => {
  const before = stream.acknowledged.length;
  return expect.poll(() => stream.acknowledged.length - before).toBeGreaterThan(ordersMin);
};

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
  const { primary, standby, stream } = await startStream();
  await more(stream);
  await detach({ standby });
  // Blocks of ids that the standby does not know of.
  for (let round = 0; round < 3; round += 1) {
    await runQuery(primary.url, endSessions);
    await more(stream);
  }
  primary.kill();
  await standby.promote();
  await stream.timeToNextOrder();
  await more(stream);
  await stream.stop();
  expect(Object.keys(stream.errors)).toEqual(['unavailable']);
  const audit = await auditStream(stream, standby.url);
  // The lag is what an asynchronous standby can lose.
  expect(audit.lost).toBeGreaterThan(ordersMin);
  expect(audit.doubled).toBe(0);
});

test('orders whose commit was cancelled while it waited for the standby are not acknowledged: a failover loses none', async () => {
  const { primary, standby, stream } = await startStream();
  await runQuery(primary.url, `alter system set synchronous_standby_names = '${standbyName}'`);
  await runQuery(primary.url, 'select pg_reload_conf()');
  const synchronous = "select from pg_stat_replication where sync_state = 'sync'";
  await expect.poll(() => runQuery(primary.url, synchronous)).toHaveLength(1);
  await more(stream);
  await detach({ standby });
  const waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep'";
  for (let round = 0; round < 3; round += 1) {
    await expect.poll(() => runQuery(primary.url, waiting)).not.toHaveLength(0);
    await runQuery(primary.url, `select pg_cancel_backend(pid) from (${waiting})`);
    await sleep(100);
  }
  const [stored] = await runQuery(primary.url, 'select count(*)::int as orders from orders');
  expect(stored?.orders).toBeGreaterThan(stream.acknowledged.length);
  primary.kill();
  await standby.promote();
  await stream.timeToNextOrder();
  await more(stream);
  await stream.stop();
  expect(Object.keys(stream.errors)).toEqual(['unavailable']);
  expect(await auditStream(stream, standby.url)).toMatchObject({ lost: 0, doubled: 0 });
});
