import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  dataDir,
  query,
  serverPid,
  serverPids,
  start,
  startElsewhere,
  type User,
  useServerFolder,
} from './server-folder.ts';

useServerFolder();

const exited = 'embedded PostgreSQL exited, restarting';
const restarted = 'embedded PostgreSQL restarted';

const expectRunning = (user: User) =>
  expect.poll(() => query(user.url, 'select 1 as one').catch(() => [])).toEqual([{ one: 1 }]);

test.each(['SIGKILL', 'SIGINT', 'SIGQUIT'] as const)(
  'a server ended by %s is restarted for all users, on the same port and with its data',
  async (signal) => {
    const users = [await start(), await start(), await start()];
    const [first] = users as [User];
    await query(first.url, 'create table numbers (id int)');
    await query(first.url, 'insert into numbers values (1), (2)');
    const pid = serverPid();
    process.kill(pid, signal);
    await expect.poll(() => serverPids().includes(pid)).toBe(false);
    for (const user of users) await expectRunning(user);
    expect(await query(first.url, 'select id from numbers order by id')).toEqual([{ id: 1 }, { id: 2 }]);
    await expect.poll(() => users.flatMap(({ reports }) => reports)).toContain(restarted);

    await users[1]?.stop();
    await users[2]?.stop();
    // If the first user had not yet rejoined when the last other user left, that user stopped the server. The first
    // user then starts it again.
    await expectRunning(first);
    await first.stop();
    expect(serverPids()).toEqual([]);
  },
);

test('a user that joined a running server restarts it each time it is killed', async () => {
  const otherProcess = await startElsewhere();
  const user = await start();
  otherProcess.child.kill('SIGKILL');
  for (let kills = 1; kills <= 3; kills += 1) {
    process.kill(serverPid(), 'SIGKILL');
    await expect.poll(() => user.reports).toEqual(Array(kills).fill([exited, restarted]).flat());
    expect(await query(user.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  }
});

/** Kills the server and makes restarts fail until the returned function is called. */
async function breakServer(): Promise<() => Promise<void>> {
  const configuration = join(dataDir(), 'postgres/cluster/postgresql.conf');
  const original = await readFile(configuration, 'utf8');
  await writeFile(configuration, 'no_such_setting = 1\n');
  process.kill(serverPid(), 'SIGKILL');
  return () => writeFile(configuration, original);
}

test('a restart waits for its port, which a process of the lost server can still hold', async () => {
  const user = await start();
  const port = Number(new URL(user.url).port);
  const repair = await breakServer();
  const holder = createServer();
  const isHeld = () =>
    new Promise((resolve) => {
      holder.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
  await expect.poll(isHeld).toBe(true);
  await repair();
  await sleep(500);
  holder.close();
  await expectRunning(user);
});

test('a failed restart is reported with the reason and repeated', async () => {
  const user = await start();
  const repair = await breakServer();
  await expect
    .poll(() => user.reports[1])
    .toMatch(/^embedded PostgreSQL did not restart: PostgreSQL failed: .*no_such_setting/);
  await repair();
  await expect.poll(() => user.reports.at(-1)).toBe(restarted);
  expect(user.reports[0]).toBe(exited);
});

test('a user whose connection was cut rejoins without a report', async () => {
  const first = await start();
  const second = await start();
  const pids = async () =>
    // A connected process becomes a user when it gets the lock.
    (await query(first.url, `select pid from pg_locks where locktype = 'advisory' and granted`)).map(({ pid }) => pid);
  const before = await pids();
  expect(before).toHaveLength(2);
  await query(
    first.superuserUrl,
    `select pg_terminate_backend(pid) from pg_stat_activity where pid = any('{${before}}')`,
  );
  await expect.poll(async () => (await pids()).filter((pid) => !before.includes(pid)).length).toBe(2);
  await first.stop();
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  expect([...first.reports, ...second.reports]).toEqual([]);
});

test('no server remains after its only user stops, even during a restart', async () => {
  const early = await start();
  process.kill(serverPid(), 'SIGKILL');
  await early.stop();
  expect(serverPids()).toEqual([]);

  const launching = await start();
  process.kill(serverPid(), 'SIGKILL');
  // The report usually arrives before the server runs again.
  await expect.poll(() => launching.reports[0], { interval: 1 }).toBe(exited);
  await launching.stop();
  expect(serverPids()).toEqual([]);

  const failing = await start();
  await breakServer();
  await expect.poll(() => failing.reports.length).toBeGreaterThan(1);
  await failing.stop();
  expect(serverPids()).toEqual([]);
});

test('a server keeps running for its other users when one stops between two attempts to restart it', async () => {
  const failing = await start();
  const repair = await breakServer();
  await expect.poll(() => failing.reports.length).toBeGreaterThan(1);
  await repair();
  const other = await start();
  await failing.stop();
  expect(await query(other.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});
