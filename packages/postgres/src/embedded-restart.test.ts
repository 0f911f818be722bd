import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { runQuery } from '../testing/run-query.ts';
import { placesIn } from './embedded-cluster.ts';
import { type EmbeddedPostgres, type Outage, startEmbeddedPostgres } from './embedded-postgres.ts';

// A real initdb and several real starts, on a machine that may be busy with other test files.
const testLimitMs = 60_000;
const modulePath = new URL('./embedded-postgres.ts', import.meta.url).href;

interface User {
  readonly server: EmbeddedPostgres;
  readonly outages: Outage[];
}

let dataDir: string;
const users: User[] = [];

beforeEach(async () => {
  dataDir = await realpath(await mkdtemp(join(tmpdir(), 'embedded-restart-test-')));
});

afterEach(async () => {
  await Promise.all(users.splice(0).map(({ server }) => server.stop()));
  expect(serverProcesses()).toEqual([]);
  await rm(dataDir, { recursive: true, force: true });
}, testLimitMs);

/** Processes on our cluster, as the system lists them. */
function serverProcesses(): string[] {
  const { cluster } = placesIn(dataDir);
  return commandLines().filter((line) => line.split(/[\0 ]/).includes(cluster));
}

function commandLines(): string[] {
  if (process.platform !== 'linux')
    return execFileSync('ps', ['-ww', '-axo', 'command='], { encoding: 'utf8' }).split('\n');
  return readdirSync('/proc').map((entry) => {
    try {
      return readFileSync(`/proc/${entry}/cmdline`, 'utf8');
    } catch {
      return ''; // It is no process, or none any more.
    }
  });
}

async function newUser(restartPausesMs?: number[]): Promise<User> {
  const outages: Outage[] = [];
  const server = await startEmbeddedPostgres({
    ...{ dataDir, onOutage: (outage) => outages.push(outage) },
    ...(restartPausesMs === undefined ? {} : { restartPausesMs }),
  });
  const user = { server, outages };
  users.push(user);
  return user;
}

const expectOutages = (user: User, kinds: Outage['kind'][]) =>
  expect.poll(() => user.outages.map(({ kind }) => kind), { timeout: testLimitMs }).toEqual(kinds);

test.each(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGQUIT'] as const)(
  'a server that somebody else ends by %s is started again once, for all its users, on the same port and with its data',
  async (signal) => {
    const all = [await newUser(), await newUser(), await newUser()];
    const [{ server: first }] = all as [User];
    await runQuery(first.url, 'create table kept (id int)');
    await runQuery(first.url, 'insert into kept values (1), (2)');
    const killed = first.pid;
    process.kill(killed, signal);

    for (const user of all) await expectOutages(user, ['lost', 'restarted']);
    const pids = new Set(
      all.flatMap(({ server, outages }) => [server.pid, outages.map((outage) => 'pid' in outage && outage.pid)[1]]),
    );
    expect(pids.size).toBe(1);
    expect(pids).not.toContain(killed);
    for (const { server } of all) {
      expect(await runQuery(server.url, 'select id from kept order by id')).toEqual([{ id: 1 }, { id: 2 }]);
    }
    await Promise.all(all.slice(1).map(({ server }) => server.stop()));
    expect(await runQuery(first.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  },
  testLimitMs,
);

test(
  'a server is started again as often as it is killed',
  async () => {
    const { server, outages } = await newUser();
    for (let kills = 1; kills <= 3; kills += 1) {
      process.kill(server.pid, 'SIGKILL');
      await expect.poll(() => outages.length, { timeout: testLimitMs }).toBe(2 * kills);
      expect(await runQuery(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    }
  },
  testLimitMs,
);

test(
  'a user that joined starts the server again when it dies together with its starter',
  async () => {
    const program = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(modulePath)});
    console.log((await startEmbeddedPostgres({ dataDir: ${JSON.stringify(dataDir)} })).pid);`;
    const starter = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void starter.kill('SIGKILL'));
    const [pid] = await once(createInterface({ input: starter.stdout }), 'line');
    const user = await newUser();
    expect(user.server).toMatchObject({ joined: true, pid: Number(pid) });
    starter.kill('SIGKILL');
    process.kill(Number(pid), 'SIGKILL');
    await expectOutages(user, ['lost', 'restarted']);
    expect(await runQuery(user.server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  },
  testLimitMs,
);

test(
  'a server that did not start again is tried again',
  async () => {
    const user = await newUser([0, 200, 200, 200, 200, 200, 200, 200]);
    const places = placesIn(dataDir);
    const configuration = join(places.cluster, 'postgresql.conf');
    const good = await readFile(configuration, 'utf8');
    await writeFile(configuration, 'no_such_setting = 1\n');
    process.kill(user.server.pid, 'SIGKILL');
    await expect.poll(() => readFile(places.log, 'utf8'), { timeout: testLimitMs }).toContain('no_such_setting');
    await writeFile(configuration, good);
    await expectOutages(user, ['lost', 'restarted']);
  },
  testLimitMs,
);

test(
  'a server that does not start at any of the tries is given up, with the reason, until the next start',
  async () => {
    const user = await newUser([0, 10]);
    const configuration = join(placesIn(dataDir).cluster, 'postgresql.conf');
    const good = await readFile(configuration, 'utf8');
    await writeFile(configuration, 'no_such_setting = 1\n');
    process.kill(user.server.pid, 'SIGKILL');
    await expectOutages(user, ['lost', 'given_up']);
    expect(String(user.outages[1]?.kind === 'given_up' && user.outages[1].fault)).toMatch(
      /did not start: .*no_such_setting/,
    );
    expect(serverProcesses()).toEqual([]);
    await writeFile(configuration, good);
    expect((await newUser()).server.url).toBe(user.server.url);
  },
  testLimitMs,
);

test(
  'a start that comes before the users are back takes the port that they know',
  async () => {
    const user = await newUser();
    process.kill(user.server.pid, 'SIGKILL');
    const next = await newUser();
    expect(next.server.url).toBe(user.server.url);
    await expectOutages(user, ['lost', 'restarted']);
    expect(user.server.pid).toBe(next.server.pid);
  },
  testLimitMs,
);

test(
  'a start takes another port when another program has the last one',
  async () => {
    const { server } = await newUser();
    await server.stop();
    const thief = createServer().listen(Number(new URL(server.url).port), '127.0.0.1');
    onTestFinished(() => void thief.close());
    await once(thief, 'listening');
    const next = await newUser();
    expect(next.server.url).not.toBe(server.url);
    expect(await runQuery(next.server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  },
  testLimitMs,
);

test(
  'a user that stops leaves no server behind, whatever its restart has come to',
  async () => {
    const early = await newUser();
    process.kill(early.server.pid, 'SIGKILL');
    await early.server.stop();
    expect(early.outages).toEqual([]);
    expect(serverProcesses()).toEqual([]);

    const waiting = await newUser([testLimitMs]);
    process.kill(waiting.server.pid, 'SIGKILL');
    await expectOutages(waiting, ['lost']);
    await waiting.server.stop();
    expect(serverProcesses()).toEqual([]);

    const launching = await newUser();
    process.kill(launching.server.pid, 'SIGKILL');
    await expectOutages(launching, ['lost']);
    await expect.poll(serverProcesses, { timeout: testLimitMs, interval: 1 }).not.toEqual([]);
    await launching.server.stop();
    expect(serverProcesses()).toEqual([]);
  },
  testLimitMs,
);
