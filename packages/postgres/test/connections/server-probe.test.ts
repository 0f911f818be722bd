import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { startTestServer, type TestServer } from '@order-gateway/dev-postgres/testing';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type DatabaseClient, openClient } from '../../src/connections/client.ts';
import { redact, statementFailure } from '../../src/connections/errors.ts';
import { createServerProbe } from '../../src/connections/server-probe.ts';
import type { ServerProbe } from '../../src/connections/session-watch.ts';
import { startHangingProxy } from '../../testing/database-proxy.ts';
import { runQuery } from '../../testing/run-query.ts';

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer({ max_connections: '30' });
});

afterAll(() => server?.stop());

function openTestClient(url: string, probe = createServerProbe(url)): DatabaseClient<PostgresJsDatabase> {
  const options = { url, applicationName: 'probed', probe };
  const client = openClient(options, (db) => db);
  onTestFinished(() => client.close());
  return client;
}

const pid = (client: DatabaseClient<PostgresJsDatabase>) =>
  client.run((db) => db.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`)).then(([row]) => row?.pid);

/** Returns how and why a statement failed. */
const failure = (running: Promise<unknown>) =>
  running.then(
    () => undefined,
    (error: unknown) => ({ outcome: statementFailure(error), reason: redact(error).message }),
  );

/** The failure that a probe causes. A missed deadline has a different reason. */
const gone = { outcome: 'unavailable', reason: 'the database server no longer responds' };
const stuck = { outcome: 'unavailable', reason: 'the database waits for its synchronous standby, or for a disk' };

describe('a server that hangs', () => {
  test('is noticed before the deadline by all clients, which share their probes, and its connections are replaced', async () => {
    const proxy = await startHangingProxy(server.url);
    onTestFinished(() => proxy.close());
    const probe = createServerProbe(proxy.url);
    const clients = Array.from({ length: 6 }, () => openTestClient(proxy.url, probe));
    await Promise.all(clients.map(pid));
    proxy.hang();
    const opened = proxy.opened();
    expect(await Promise.all(clients.map((client) => failure(pid(client))))).toEqual(clients.map(() => gone));
    expect(proxy.opened() - opened).toBeLessThanOrEqual(2);
    proxy.acceptAgain();
    for (const client of clients) expect(await pid(client)).toBeGreaterThan(0);
  });

  test('is also dropped by idle clients, before their next statement', async () => {
    const proxy = await startHangingProxy(server.url);
    onTestFinished(() => proxy.close());
    const probe = createServerProbe(proxy.url);
    const [busy, idle] = [openTestClient(proxy.url, probe), openTestClient(proxy.url, probe)];
    await pid(busy);
    const pidBefore = await pid(idle);
    proxy.hang();
    expect(await failure(pid(busy))).toEqual(gone);
    proxy.acceptAgain();
    const pidAfter = await pid(idle);
    expect(pidAfter).toBeGreaterThan(0);
    expect(pidAfter).not.toBe(pidBefore);
  });

  test('is replaced by another host of the URL', async () => {
    const otherServer = await startTestServer();
    onTestFinished(() => otherServer.stop());
    const { host, username, password } = new URL(server.url);
    await runQuery(otherServer.url, `alter role ${username} password '${decodeURIComponent(password)}'`);
    const proxy = await startHangingProxy(server.url);
    onTestFinished(() => proxy.close());
    const url = server.url.replace(host, `${new URL(proxy.url).host},${new URL(otherServer.url).host}`);
    const client = openTestClient(url);
    await pid(client);
    proxy.hang();
    expect(await failure(pid(client))).toEqual(gone);
    expect(await pid(client)).toBeGreaterThan(0);
  });

  test('is noticed even if its address now leads to another server', async () => {
    const real = createServerProbe(server.url);
    const probe: ServerProbe = {
      ...real,
      stateOf: (session, address) => real.stateOf(session && { ...session, server: '1.5' }, address),
    };
    const client = openTestClient(server.url, probe);
    expect(await failure(client.run((db) => db.execute(sql`select pg_sleep(20)`)))).toEqual(gone);
  });
});

test('if all hosts are down, statements fail before their deadline, and no host is flooded', async () => {
  let attempts = 0;
  const closing = createServer((socket) => {
    attempts += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(closing, 'listening');
  onTestFinished(() => void closing.close());
  const host = `127.0.0.1:${(closing.address() as AddressInfo).port}`;
  const client = openTestClient(`postgres://${host},${host}/gateway`);
  const start = performance.now();
  expect(await failure(pid(client))).toEqual(gone);
  // There are at most ten attempts per second, and a probe.
  expect(attempts).toBeLessThan((performance.now() - start) / 100 + 5);
});

test('a statement that is only slow is not interrupted, even if many wait, and few probes are sent', async () => {
  const proxy = await startHangingProxy(server.url);
  onTestFinished(() => proxy.close());
  const probe = createServerProbe(proxy.url, 20);
  const clients = Array.from({ length: 10 }, () => openTestClient(proxy.url, probe));
  const pids = await Promise.all(clients.map(pid));
  const opened = proxy.opened();
  const slow = sql`select pg_sleep(2.5), pg_backend_pid() as pid`;
  const rows = await Promise.all(clients.map((client) => client.run((db) => db.execute(slow))));
  expect(rows.map(([row]) => row?.pid)).toEqual(pids);
  const probes = proxy.opened() - opened;
  expect(probes).toBeGreaterThan(0);
  expect(probes).toBeLessThan(10);
});

test('a server that opens no session in time is busy, not lost, while it responds on others', async () => {
  const proxy = await startHangingProxy(server.url);
  onTestFinished(() => proxy.close());
  const probe = createServerProbe(proxy.url);
  const [slow, quick] = [openTestClient(proxy.url, probe), openTestClient(proxy.url, probe)];
  const pids = await Promise.all([slow, quick].map(pid));
  const opened = proxy.opened();
  proxy.hangNew();
  const sleeping = slow.run((db) => db.execute(sql`select pg_sleep(3.5), pg_backend_pid() as pid`));
  const ended = sleeping.then(
    () => true,
    () => true,
  );
  while (!(await Promise.race([ended, sleep(50)]))) await pid(quick);
  expect([(await sleeping)[0]?.pid, await pid(quick)]).toEqual(pids);
  expect(proxy.opened()).toBeGreaterThan(opened);
});

test('a server that accepts no more connections counts as running', async () => {
  await runQuery(server.url, "create role clerk login password 'clerk' connection limit 1");
  const client = openTestClient(server.url.replace(/\/\/[^@]*@/, '//clerk:clerk@'));
  const ownPid = await pid(client);
  const rows = await client.run((db) => db.execute(sql`select pg_sleep(2), pg_backend_pid() as pid`));
  expect(rows[0]?.pid).toBe(ownPid);
});

describe('while a commit waits for its synchronous standby', () => {
  /** Starts a server on which commits wait, except in sessions opened with its `local` URL. */
  const startWaitingServer = async () => {
    const waitingServer = await startTestServer();
    onTestFinished(() => waitingServer.stop());
    const setStandby = async (name: string) => {
      await runQuery(waitingServer.url, `alter system set synchronous_standby_names = '${name}'`);
      await runQuery(waitingServer.url, 'select pg_reload_conf()');
      const shown = () => runQuery(waitingServer.url, 'show synchronous_standby_names');
      await expect.poll(shown).toEqual([{ synchronous_standby_names: name }]);
    };
    const local = Object.assign(new URL(waitingServer.url), { search: '?synchronous_commit=local' }).href;
    await runQuery(local, 'create table kept (id int)');
    await setStandby('no_standby');
    return { url: waitingServer.url, local, endWait: () => setStandby('') };
  };
  const insertWith = (client: DatabaseClient<PostgresJsDatabase>) => () =>
    client.run((db) => db.execute(sql`insert into kept values (1)`));

  test('no further session is opened, and the waiting session continues afterwards', async () => {
    const { url, local, endWait } = await startWaitingServer();
    const client = openTestClient(url);
    const ownPid = await pid(client);
    const insert = insertWith(client);
    expect(await failure(insert())).toEqual(stuck);
    for (let attempt = 0; attempt < 100; attempt += 1) expect(await failure(insert())).toEqual(stuck);
    const sessions = "select pid from pg_stat_activity where application_name = 'probed'";
    expect(await runQuery(local, sessions)).toEqual([{ pid: ownPid }]);
    await endWait();
    await expect.poll(() => pid(client).catch(() => undefined)).toBe(ownPid);
    // The statements after the first were never sent.
    expect(await runQuery(local, 'select count(*)::int as stored from kept')).toEqual([{ stored: 1 }]);
  });

  test('if its response is lost, the connection is replaced', async () => {
    const { url, endWait } = await startWaitingServer();
    const proxy = await startHangingProxy(url);
    onTestFinished(() => proxy.close());
    const client = openTestClient(proxy.url);
    expect(await failure(insertWith(client)())).toEqual(stuck);
    proxy.hang();
    proxy.acceptAgain();
    await endWait();
    await expect.poll(() => pid(client).catch(() => undefined)).toBeGreaterThan(0);
  });
});
