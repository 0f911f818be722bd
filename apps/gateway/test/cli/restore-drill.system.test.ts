import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startDevPostgres } from '@order-gateway/dev-postgres';
import { startTestServer, type TestServer, withSession } from '@order-gateway/dev-postgres/testing';
import { startStandbyOf } from '@order-gateway/dev-postgres/testing/replicated';
import type { Credentials } from '@order-gateway/domain/accounts';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import postgres from 'postgres';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { missing, mustSkip } from '../../../../tools/skip-if-missing.ts';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { temporaryFolder } from '../../../../tools/test-resources.ts';
import type { OrderResponse } from '../../src/operations/orders.ts';
import { endProcesses, newDataDir, startProcess } from '../helpers/gateway-process.ts';
import { type RunningGateway, runGateway } from '../helpers/running-gateway.ts';
import { callJson, postOrder, readOrder } from '../helpers/send-order.ts';

const run = promisify(execFile);

/** Returns the commands of the guide, with `backups` as the folder for the backups. */
async function guide(backups: string): Promise<[settings: string, backup: string, restore: string, reset: string]> {
  const page = await readFile(new URL('../../../../docs/production.md', import.meta.url), 'utf8');
  const section = page.split(/^## /m).find((text) => text.startsWith('Backup and restore\n')) ?? '';
  const blocks = [...section.matchAll(/^```(?:sql|sh)\n(.+?)^```$/gms)].map(([, code = '']) =>
    code.replaceAll('/backups', backups),
  );
  expect(blocks).toHaveLength(4);
  return blocks as [string, string, string, string];
}

afterAll(endProcesses);

/** Creates orders continuously until `stop` is called, and records those that the gateway acknowledges. */
function sendOrders(gateway: RunningGateway) {
  const acknowledged = new Map<string, OrderResponse>();
  let isStopping = false;
  let sentCount = 0;
  const loop = async () => {
    while (!isStopping) {
      sentCount += 1;
      const orderId = `drill-${sentCount}`;
      const response = await postOrder(gateway, validOrderInput({ order_id: orderId }));
      // On a busy machine, a call can fail although its order may have been stored.
      expect([201, 503]).toContain(response.status);
      if (response.status === 201) acknowledged.set(orderId, await readOrder(response));
      else await response.text();
    }
  };
  const loops = Promise.all(Array.from({ length: 16 }, loop));
  return {
    acknowledged,
    sentCount: () => sentCount,
    /** Resolves when `count` more orders have been acknowledged. */
    acknowledge: async (count: number) => {
      const goal = acknowledged.size + count;
      await vi.waitUntil(() => acknowledged.size >= goal, waitLimitMs);
    },
    stop: async () => {
      isStopping = true;
      await loops;
    },
  };
}

const title =
  'a point-in-time restore has the orders acknowledged before that time, none sent later, and its event feed continues';

test.skipIf(mustSkip('the restore of a backup', missing('tar')))(title, async () => {
  const backups = await temporaryFolder();
  await mkdir(join(backups, 'wal'));
  // The server may run as a different user.
  for (const folder of [backups, join(backups, 'wal')]) await chmod(folder, 0o777);
  const [settings, backup, restore, reset] = await guide(backups);

  // archive_mode is the only setting of the guide that requires a restart.
  const server = await startTestServer({ archive_mode: 'on' });
  onTestFinished(server.stop);
  const gateway = await runGateway({ server });
  const superuser = postgres(server.url, { max: 1, fetch_types: false, onnotice: () => {} });
  onTestFinished(() => superuser.end({ timeout: 1 }));
  for (const statement of settings.split('\n')) await superuser.unsafe(statement);
  await superuser`select pg_reload_conf()`;

  const orders = sendOrders(gateway);
  onTestFinished(orders.stop);
  await orders.acknowledge(20);
  await baseBackup(server, backup, backups);
  await orders.acknowledge(100);
  const [cancelled, kept] = orders.acknowledged.keys();
  await cancel(gateway, cancelled);
  const { next_cursor: cursorBefore } = await pollEvents(gateway);
  const before = new Map(orders.acknowledged);
  const [{ target = '' } = {}] = await superuser<{ target: string }[]>`select clock_timestamp()::text as target`;
  // Calls in flight at this moment may be stored before or after the target time.
  const sentBefore = orders.sentCount();
  await orders.acknowledge(100);
  await orders.stop();
  const after = [...orders.acknowledged.keys()].filter((orderId) => Number(orderId.slice(6)) > sentBefore);
  expect(after.length).toBeGreaterThan(50);
  const [lost] = after;
  await cancel(gateway, lost);
  const { next_cursor: lostCursor } = await pollEvents(gateway, `?cursor=${cursorBefore}`);
  const [{ wal = '' } = {}] = await superuser<{ wal: string }[]>`select pg_walfile_name(pg_switch_wal()) as wal`;
  const archived = async () => {
    const [row] = await superuser`select last_archived_wal >= ${wal} as is_archived from pg_stat_archiver`;
    return row?.is_archived === true;
  };
  await vi.waitUntil(archived, waitLimitMs);

  const restored = await startRestored(server, restore, target);
  await withSession(restored.superuserUrl, async (session) => {
    for (const statement of reset.trim().split('\n')) await session.unsafe(statement);
  });
  const databaseUrl = new URL(gateway.databaseUrl);
  databaseUrl.port = new URL(restored.url).port;
  const { url } = await startProcess({ DATABASE_URL: databaseUrl.href });
  const listed = await listOrders(url, gateway.credentials);
  for (const [orderId, { service_order_id, created_at, order_token }] of before)
    expect(listed.get(orderId)).toMatchObject({ service_order_id, created_at, order_token });
  for (const orderId of after) expect(listed.has(orderId)).toBe(false);
  const recreated = await postOrder({ url, credentials: gateway.credentials }, validOrderInput({ order_id: lost }));
  expect(recreated.status).toBe(201);
  const restoredFeed = { url, credentials: gateway.credentials };
  await cancel(restoredFeed, kept);
  expect(await pollEvents(restoredFeed, `?cursor=${cursorBefore}`)).toMatchObject({
    events: [{ data: { order_id: kept } }],
  });
  const { status, body } = await callJson(restoredFeed, 'GET', `/events?cursor=${lostCursor}`);
  expect([status, body.code]).toEqual([410, 'cursor_expired']);

  // With the settings of the restore, a standby would promote itself at the first commit after the target time.
  const standby = await startStandbyOf({ url: restored.superuserUrl, dataDir: restored.dataDir });
  onTestFinished(standby.close);
  await postOrder(restoredFeed, validOrderInput({ order_id: 'replicated' }));
  const [committed] = await withSession(
    restored.superuserUrl,
    (session) => session`select pg_current_wal_flush_lsn()::text as lsn`,
  );
  await withSession(standby.url.replace(/gateway$/, 'postgres'), async (session) => {
    const hasReplayed = async () => {
      const [row] = await session`
        select not pg_is_in_recovery() or pg_last_wal_replay_lsn() >= ${String(committed?.lsn)}::pg_lsn as done`;
      return row?.done === true;
    };
    await vi.waitUntil(hasReplayed, waitLimitMs);
    expect(await session`select pg_is_in_recovery() as is_standby`).toEqual([{ is_standby: true }]);
  });
});

/** Cancels an order, again if a busy machine makes the call fail. */
function cancel(merchant: { url: string; credentials: Credentials }, orderId = '') {
  return vi.waitFor(async () => {
    expect((await callJson(merchant, 'POST', `/order/${orderId}/cancel`)).status).toBe(200);
  }, waitLimitMs);
}

/** Polls the feed until it returns an event. */
function pollEvents(merchant: { url: string; credentials: Credentials }, query = '') {
  return vi.waitFor(async () => {
    const { body } = await callJson(merchant, 'GET', `/events${query}`);
    expect(body.events?.length).toBeGreaterThan(0);
    return body;
  }, waitLimitMs);
}

async function listOrders(url: string, credentials: Credentials): Promise<Map<string, OrderResponse>> {
  const listed = new Map<string, OrderResponse>();
  let cursor = '';
  do {
    const query = new URLSearchParams({ limit: '100', ...(cursor === '' ? {} : { cursor }) });
    const { orders, next_cursor = '' } = (await callJson({ url, credentials }, 'GET', `/orders?${query}`)).body;
    for (const order of orders) listed.set(order.order_id, order);
    cursor = next_cursor;
  } while (cursor !== '');
  return listed;
}

/**
 * Takes a base backup with pg_basebackup. If version 18 of the program is missing, sends the replication command that
 * the program would send, and the server writes the same file.
 */
async function baseBackup(server: TestServer, command: string, backups: string): Promise<void> {
  const { stdout } = await run('pg_basebackup', ['--version']).catch(() => ({ stdout: '' }));
  const isInstalled = Number(/\d+/.exec(stdout)?.[0]) >= 18;
  if (!mustSkip('pg_basebackup itself', isInstalled ? undefined : 'pg_basebackup 18 is not installed')) {
    await run('sh', ['-c', command], { env: { PATH: process.env.PATH, SUPERUSER_URL: server.url } });
    return;
  }
  const connection = { replication: 'true' } as Record<string, string>;
  const session = postgres(server.url, { max: 1, fetch_types: false, onnotice: () => {}, connection });
  try {
    const options = `TARGET 'server', TARGET_DETAIL '${backups}/base', WAL false, CHECKPOINT 'fast'`;
    const progress = await session.unsafe(`BASE_BACKUP (${options})`).readable();
    for await (const _chunk of progress);
  } finally {
    await session.end({ timeout: 1 });
  }
}

/** Restores a data folder with the guide's commands, starts a server on it, and waits until it accepts writes. */
async function startRestored(server: TestServer, command: string, target: string) {
  const dataDir = await newDataDir();
  const folder = join(dataDir, 'postgres');
  const data = join(folder, 'cluster');
  await mkdir(data, { recursive: true, mode: 0o700 });
  await copyFile(join(server.dataDir, 'postgres', 'password'), join(folder, 'password'));
  // As root, tar would otherwise restore the owners recorded in the archive.
  const variables = { PGDATA: data, TARGET_TIME: target, TAR_OPTIONS: '--no-same-owner' };
  await run('sh', ['-c', command], { env: { PATH: process.env.PATH, ...variables } });
  await run('chown', ['-R', `--reference=${join(server.dataDir, 'postgres')}`, folder]);
  const restored = await startDevPostgres({ dataDir });
  onTestFinished(restored.stop);
  const session = postgres(restored.url, { max: 1, fetch_types: false });
  const isRestored = async () => (await session`select not pg_is_in_recovery() as done`)[0]?.done === true;
  onTestFinished(() => session.end({ timeout: 1 }));
  await vi.waitUntil(isRestored, waitLimitMs);
  return { ...restored, dataDir };
}
