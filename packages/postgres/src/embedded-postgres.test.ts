import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runQuery } from '../testing/run-query.ts';
import { startThrowawayPostgres } from '../testing/throwaway-postgres.ts';
import { openPlaces, readLockFile } from './embedded-cluster.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts';
import { runsCluster, shutDown } from './embedded-process.ts';

// A real initdb and several real starts, on a machine that may be busy with other test files.
const testLimitMs = 60_000;
const modulePath = new URL('./embedded-postgres.ts', import.meta.url).href;

let dataDir: string;
let children: ChildProcess[] = [];

beforeEach(async () => {
  // The parent is closed to other users: also a server started by root has to get through.
  const parent = await mkdtemp(join(tmpdir(), 'embedded-postgres-test-'));
  await chmod(parent, 0o700);
  dataDir = join(parent, 'data');
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  children = [];
  const { cluster } = await openPlaces(dataDir);
  const pid = readLockFile(cluster)?.pid;
  if (pid !== undefined && runsCluster(pid, cluster)) await shutDown(pid, cluster);
  await rm(join(dataDir, '..'), { recursive: true, force: true });
}, testLimitMs);

/** The kernel's word, not the module's. */
async function expectGone(pid: number): Promise<void> {
  await expect.poll(() => isThere(pid)).toBe(false);
}

function isThere(pid: number): boolean {
  try {
    // A zombie is gone: when it is collected is up to the machine's init.
    if (process.platform === 'linux') return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Starts or joins in another Node process, which stops its use when its stdin ends. */
async function startElsewhere(): Promise<{ child: ChildProcess; url: string; joined: boolean; pid: number }> {
  const program = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(modulePath)});
    const server = await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)} });
    console.log(JSON.stringify(server));
    process.stdin.resume().once('end', () => server.stop());`;
  // A process group of its own, as a shell gives to each command: a signal to the group is what Ctrl-C sends.
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    ...{ stdio: ['pipe', 'pipe', 'inherit'], detached: true },
  });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) return { child, ...JSON.parse(line) };
  throw new Error('the other process ended without a server');
}

async function leaveElsewhere(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.stdin?.end();
  expect(await exit).toEqual([0, null]);
}

function start(): Promise<EmbeddedPostgres> {
  return startEmbeddedPostgres({ dataDir });
}

test('keeps the data from one start to the next and leaves no process behind', { timeout: testLimitMs }, async () => {
  const first = await start();
  expect(first.joined).toBe(false);
  await runQuery(first.url, 'create table kept (word text)');
  await runQuery(first.url, `insert into kept values ('größer')`);
  await first.stop();
  await first.stop();
  await expectGone(first.pid);

  const second = await start();
  expect(second.joined).toBe(false);
  expect(await runQuery(second.url, 'select word from kept')).toEqual([{ word: 'größer' }]);
  await second.stop();
  await expectGone(second.pid);
  expect((await readdir(dataDir)).sort()).toEqual(['postgres', 'postgres.log']);
});

test('runs with durable and stated settings, closed to other users', { timeout: testLimitMs }, async () => {
  const server = await start();
  const [settings] = await runQuery(
    server.url,
    `select current_database() as database, current_setting('fsync') as fsync,
       current_setting('synchronous_commit') as synchronous_commit, current_setting('timezone') as timezone,
       current_setting('server_encoding') as encoding, current_setting('max_connections') as connections_max,
       current_setting('unix_socket_directories') as sockets, current_setting('listen_addresses') as addresses,
       (select datcollate from pg_database where datname = current_database()) as collation`,
  );
  expect(settings).toEqual({
    ...{ database: 'gateway', fsync: 'on', synchronous_commit: 'on', timezone: 'UTC', encoding: 'UTF8' },
    ...{ connections_max: '100', sockets: '', addresses: '127.0.0.1', collation: 'C' },
  });
  const places = await openPlaces(dataDir);
  expect((await stat(places.folder)).mode & 0o777).toBe(0o700);
  expect((await stat(places.cluster)).mode & 0o777).toBe(0o700);
  expect((await stat(places.password)).mode & 0o777).toBe(0o600);

  const wrong = new URL(server.url);
  wrong.password = 'wrong';
  await expect(runQuery(wrong.href, 'select 1')).rejects.toThrow('password authentication failed');
  const password = new URL(server.url).password;
  expect(await readFile(places.log, 'utf8')).not.toContain(password);
  await server.stop();
});

test('joins a running server from another process; the last one out stops it', { timeout: testLimitMs }, async () => {
  const here = await start();
  const there = await startElsewhere();
  expect(there).toMatchObject({ joined: true, url: here.url, pid: here.pid });

  await here.stop();
  expect(await runQuery(there.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  await leaveElsewhere(there.child);
  await expectGone(here.pid);
});

test('leaves the server to a client that is no user of this module', { timeout: testLimitMs }, async () => {
  const server = await start();
  const session = postgres(server.url, { max: 1 });
  await session`select 1`;
  await server.stop();
  expect(await session`select 1 as one`).toEqual([{ one: 1 }]);
  await session.end();
});

test('gives two simultaneous first starters one server', { timeout: testLimitMs }, async () => {
  const [here, there, also] = await Promise.all([start(), startElsewhere(), start()]);
  expect(there.url).toBe(here.url);
  expect(also.url).toBe(here.url);
  expect([here.joined, there.joined, also.joined].filter((joined) => !joined)).toHaveLength(1);
  expect((await readdir(dataDir)).sort()).toEqual(['postgres', 'postgres.log']);
  await Promise.all([here.stop(), leaveElsewhere(there.child), also.stop()]);
  await expectGone(here.pid);
});

test('gives simultaneous starters on a stopped server one server', { timeout: testLimitMs }, async () => {
  await (await start()).stop();
  const starters = await Promise.all([start(), start(), start(), start()]);
  expect(new Set(starters.map((starter) => starter.url)).size).toBe(1);
  expect(starters.filter((starter) => !starter.joined)).toHaveLength(1);
  await Promise.all(starters.map((starter) => starter.stop()));
  await expectGone(starters[0].pid);
});

test('gives a starter a live server although the last user leaves at that moment', {
  timeout: testLimitMs,
}, async () => {
  let current = await start();
  for (let round = 0; round < 5; round += 1) {
    const [next] = await Promise.all([sleep(round * 4).then(start), current.stop()]);
    expect(await runQuery(next.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    current = next;
  }
  await current.stop();
  await expectGone(current.pid);
});

test('keeps committed rows when the server is killed', { timeout: testLimitMs }, async () => {
  const first = await start();
  await runQuery(first.url, 'create table kept (id int)');
  await runQuery(first.url, 'insert into kept values (1), (2)');
  const killed = first.pid;
  process.kill(killed, 'SIGKILL');
  await expectGone(killed);

  const second = await start();
  expect(second.pid).not.toBe(killed);
  expect(await runQuery(second.url, 'select id from kept order by id')).toEqual([{ id: 1 }, { id: 2 }]);
  await first.stop();
  expect(await runQuery(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  await second.stop();
  await expectGone(second.pid);
});

test('waits for what a killed server left running', { timeout: testLimitMs }, async () => {
  const first = await start();
  // A process that computes does not see that its postmaster died, and Postgres refuses to start beside it.
  const endless = runQuery(first.url, `set statement_timeout = '3s'; do $$ begin loop end loop; end $$`);
  const failed = expect(endless).rejects.toThrow();
  const active = `select pid from pg_stat_activity where query like 'set statement_timeout%' and state = 'active'`;
  await expect.poll(() => runQuery(first.url, active)).toHaveLength(1);
  process.kill(first.pid, 'SIGKILL');
  await first.stop();

  const second = await start();
  expect(second.joined).toBe(false);
  await failed;
  await second.stop();
  await expectGone(second.pid);
});

test('takes over the server of a starter that was killed with its whole process group', {
  timeout: testLimitMs,
}, async () => {
  const there = await startElsewhere();
  await runQuery(there.url, 'create table kept (id int)');
  const exit = once(there.child, 'exit');
  process.kill(-(there.child.pid ?? Number.NaN), 'SIGKILL');
  await exit;

  const here = await start();
  expect(here).toMatchObject({ joined: true, url: there.url, pid: there.pid });
  expect(await runQuery(here.url, 'select count(*)::int as rows from kept')).toEqual([{ rows: 0 }]);
  await here.stop();
  await expectGone(there.pid);
});

test('counts a user as one again after a crash cut all connections', { timeout: testLimitMs }, async () => {
  const here = await start();
  const there = await startElsewhere();
  // Any server process that dies by a signal makes the postmaster cut and restart all others.
  const marks = `select pid from pg_stat_activity where application_name like 'gateway: mark%' order by pid`;
  const before = await runQuery(here.url, marks);
  expect(before).toHaveLength(2);
  // A process that stands still holds the restart up for 5 s, until the postmaster kills it too.
  const [walWriter] = await runQuery(here.url, `select pid from pg_stat_activity where backend_type = 'walwriter'`);
  process.kill(walWriter?.pid, 'SIGSTOP');
  process.kill(before[0]?.pid, 'SIGKILL');
  const pidsBefore = before.map((row) => row.pid);
  const newMarks = async () => {
    const now = await runQuery(here.url, marks).catch(() => []); // The server restarts.
    return now.filter((row) => !pidsBefore.includes(row.pid)).length;
  };
  await expect.poll(newMarks).toBe(2);

  await here.stop();
  expect(await runQuery(there.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  await leaveElsewhere(there.child);
  await expectGone(here.pid);
});

test('is not fooled by a stranger that has the pid of a server long gone', { timeout: testLimitMs }, async () => {
  const first = await start();
  const { cluster } = await openPlaces(dataDir);
  const lockFile = await readFile(join(cluster, 'postmaster.pid'), 'utf8');
  await first.stop();

  const stranger = spawn('sleep', ['600'], { stdio: 'ignore' });
  children.push(stranger);
  await writeFile(join(cluster, 'postmaster.pid'), lockFile.replace(/^\d+/, String(stranger.pid)), { mode: 0o600 });
  const second = await start();
  expect(second.joined).toBe(false);
  await second.stop();
  await expectGone(second.pid);
  expect(stranger.exitCode).toBe(null);
  expect(isThere(stranger.pid ?? 0)).toBe(true);
});

test('says in one sentence why it cannot start', { timeout: testLimitMs }, async () => {
  await (await start()).stop();
  const { cluster } = await openPlaces(dataDir);
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8');
  await writeFile(join(cluster, 'PG_VERSION'), '12\n');
  await expect(start()).rejects.toThrow(/was made by PostgreSQL 12 and this is PostgreSQL \d+: dump and restore/);

  await writeFile(join(cluster, 'PG_VERSION'), version);
  await writeFile(join(cluster, 'postgresql.conf'), 'no_such_setting = 1\n');
  await expect(start()).rejects.toThrow(/did not start: .*no_such_setting/);
});

test('makes throw-away servers that do not meet, with fresh databases', { timeout: testLimitMs }, async () => {
  const [one, other] = await Promise.all([startThrowawayPostgres(), startThrowawayPostgres()]);
  expect(one.url).not.toBe(other.url);
  const [fresh, second] = await Promise.all([one.createDatabase(), one.createDatabase()]);
  await runQuery(fresh, 'create table mine (id int)');
  expect(await runQuery(second, `select to_regclass('mine') as mine`)).toEqual([{ mine: null }]);
  const [place] = await runQuery(one.url, `select current_setting('data_directory') as cluster`);
  await Promise.all([one.stop(), other.stop()]);
  expect(existsSync(String(place?.cluster))).toBe(false);
  await expect(runQuery(one.url, 'select 1')).rejects.toThrow('ECONNREFUSED');
});

test('leaves no throw-away server behind when its process ends without stopping it', {
  timeout: testLimitMs,
}, async () => {
  const throwaway = new URL('../testing/throwaway-postgres.ts', import.meta.url).href;
  const program = `
    const { startThrowawayPostgres } = await import(${JSON.stringify(throwaway)});
    console.log((await startThrowawayPostgres()).url);
    process.stdin.resume().once('end', () => process.exit(3));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  const exit = once(child, 'exit');
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  const [place] = await runQuery(url, `select current_setting('data_directory') as cluster`);
  child.stdin.end();
  expect(await exit).toEqual([3, null]);
  expect(existsSync(String(place?.cluster))).toBe(false);
  await expect(runQuery(url, 'select 1')).rejects.toThrow('ECONNREFUSED');
});
