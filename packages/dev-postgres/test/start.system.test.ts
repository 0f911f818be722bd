import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import {
  dataDir,
  query,
  removeCluster,
  serverPid,
  serverPids,
  start,
  startElsewhere,
  useServerFolder,
} from './server-folder.ts';

useServerFolder();

test.runIf(process.platform === 'linux')('the server runs as a user that has an account on this machine', async () => {
  await start();
  // user_namespaces(7): the first number is the user inside the namespace. Outside a namespace, it is 0 and stands for
  // all users.
  const [inside] = readFileSync(`/proc/${serverPid()}/uid_map`, 'utf8').trim().split(/\s+/);
  expect(readFileSync('/etc/passwd', 'utf8')).toMatch(new RegExp(`^[^:]+:[^:]*:${inside}:`, 'm'));
});

test('data survives a stop, and no process remains', async () => {
  const first = await start();
  await query(first.url, 'create table words (word text)');
  await query(first.url, `insert into words values ('größer')`);
  await first.stop();
  await first.stop();
  expect(serverPids()).toEqual([]);

  const second = await start();
  expect(await query(second.url, 'select word from words')).toEqual([{ word: 'größer' }]);
  await second.stop();
  expect(await readdir(dataDir())).toEqual(['postgres']);
});

test('commits are durable, the data is UTF-8 and hidden from other users, and the log contains no password', async () => {
  await removeCluster();
  const { url, superuserUrl } = await start();
  const [settings] = await query(
    superuserUrl,
    `select current_database() as database, current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as synchronous_commit, current_setting('timezone') as timezone,
       current_setting('server_encoding') as encoding, current_setting('unix_socket_directories') as sockets,
       current_setting('listen_addresses') as addresses,
       (select datcollate from pg_database where datname = current_database()) as collation`,
  );
  expect(settings).toEqual({
    database: 'gateway',
    fsync: 'on',
    synchronous_commit: 'on',
    timezone: 'UTC',
    encoding: 'UTF8',
    sockets: '',
    addresses: '127.0.0.1',
    collation: 'C',
  });
  const folder = join(dataDir(), 'postgres');
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect((await stat(join(folder, 'password'))).mode & 0o777).toBe(0o600);
  const wrong = new URL(url);
  wrong.password = 'wrong';
  await expect(query(wrong.href, 'select 1')).rejects.toThrow('password authentication failed');
  const log = await readFile(join(folder, 'postgres.log'), 'utf8');
  for (const { password } of [new URL(url), new URL(superuserUrl)]) expect(log).not.toContain(password);
});

test('the role of the gateway owns its database and is not a superuser', async () => {
  const { url } = await start();
  for (const text of ["copy (select 1) to program 'true'", "select pg_read_file('/etc/hostname')", 'create role other'])
    await expect(query(url, text)).rejects.toThrow('permission denied');
  expect(await query(url, 'create schema drizzle; create table words (word text)')).toEqual([]);
});

test('a second process shares the server, and the last process to leave stops it', async () => {
  const user = await start();
  const otherProcess = await startElsewhere();
  expect(otherProcess.url).toBe(user.url);
  await user.stop();
  expect(await query(otherProcess.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  const exit = once(otherProcess.child, 'exit');
  otherProcess.child.stdin?.end();
  expect(await exit).toEqual([0, null]);
  expect(serverPids()).toEqual([]);
});

test('simultaneous first starts share one server', async () => {
  await removeCluster();
  const [first, elsewhere, second] = await Promise.all([start(), startElsewhere(), start()]);
  expect([elsewhere.url, second.url]).toEqual([first.url, first.url]);
  expect(await readdir(dataDir())).toEqual(['postgres']);
});

test('simultaneous starts after a stop share one server', async () => {
  await (await start()).stop();
  const users = await Promise.all([start(), start(), start(), startElsewhere()]);
  expect(new Set(users.map(({ url }) => url)).size).toBe(1);
});

test('a start waits for a concurrent start that is writing its PID file', async () => {
  await (await start()).stop();
  const pidFile = join(dataDir(), 'postgres', 'cluster', 'postmaster.pid');
  await writeFile(pidFile, '', { mode: 0o666 });
  const [user] = await Promise.all([start(), sleep(500).then(() => rm(pidFile))]);
  expect(await query(user.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a start gets a running server even if the last user stops it at the same moment', async () => {
  let current = await start();
  for (let round = 0; round < 10; round += 1) {
    const [next] = await Promise.all([sleep(round * 2).then(start), current.stop()]);
    expect(await query(next.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    current = next;
  }
});

test('a start uses the server of a process group that was killed', async () => {
  const otherProcess = await startElsewhere();
  await query(otherProcess.url, 'create table words (word text)');
  const pid = serverPid();
  const exit = once(otherProcess.child, 'exit');
  process.kill(-(otherProcess.child.pid ?? Number.NaN), 'SIGKILL');
  await exit;

  const user = await start();
  expect([user.url, serverPid()]).toEqual([otherProcess.url, pid]);
  expect(await query(user.url, 'select * from words')).toEqual([]);
  await user.stop();
  expect(serverPids()).toEqual([]);
});

test('a start waits for the last process of a killed server', async () => {
  const otherProcess = await startElsewhere();
  // A busy process does not notice that its postmaster is gone, and PostgreSQL does not start while that process
  // exists.
  const endless = query(otherProcess.url, 'do $$ begin loop end loop; end $$');
  const failed = expect(endless).rejects.toThrow();
  const active = () =>
    query(otherProcess.url, `select pid from pg_stat_activity where query like 'do %' and state = 'active'`);
  await expect.poll(active).toHaveLength(1);
  const [{ pid } = {}] = await active();
  otherProcess.child.kill('SIGKILL');
  process.kill(serverPid(), 'SIGKILL');

  const starting = start();
  const log = () => readFile(join(dataDir(), 'postgres/postgres.log'), 'utf8');
  await expect.poll(log).toMatch(/pre-existing shared memory block .* is still in use/);
  process.kill(pid, 'SIGKILL');
  const user = await starting;
  await failed;
  expect(await query(user.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a lock file that names the pid of another program is ignored', async () => {
  const first = await start();
  const path = join(dataDir(), 'postgres/cluster/postmaster.pid');
  const lockFile = await readFile(path, 'utf8');
  await first.stop();

  const otherProcess = spawn('sleep', ['600'], { stdio: 'ignore' });
  onTestFinished(() => void otherProcess.kill());
  await writeFile(path, lockFile.replace(/^\d+/, String(otherProcess.pid)), { mode: 0o600 });
  const second = await start();
  expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  await second.stop();
  expect(otherProcess.exitCode).toBe(null);
});

test('a start reuses the last port, or chooses a new one if the last is in use', async () => {
  const first = await start();
  await first.stop();
  const second = await start();
  expect(second.url).toBe(first.url);
  await second.stop();
  const otherProgram = createServer().listen(Number(new URL(first.url).port), '127.0.0.1');
  onTestFinished(() => void otherProgram.close());
  await once(otherProgram, 'listening');
  const third = await start();
  expect(third.url).not.toBe(first.url);
  expect(await query(third.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('a failed start reports the reason in one line', async () => {
  await (await start()).stop();
  const cluster = join(dataDir(), 'postgres/cluster');
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8');
  await writeFile(join(cluster, 'PG_VERSION'), '12\n');
  await expect(start()).rejects.toThrow(
    /^the data in .* was created by PostgreSQL 12, a different version.*: dump and restore/,
  );

  await writeFile(join(cluster, 'PG_VERSION'), version);
  await writeFile(join(cluster, 'postgresql.conf'), 'no_such_setting = 1\n');
  await expect(start()).rejects.toThrow(/^PostgreSQL failed: .*no_such_setting.*$/);
});
