import type { Socket } from 'node:net';
import { startTestServer } from '@gateway/dev-postgres/testing';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startCuttingProxy } from '../testing/cutting-proxy.ts';
import { startDatabaseProxy } from '../testing/database-proxy.ts';
import { runQuery } from '../testing/run-query.ts';
import { startThrowawayPostgres, type ThrowawayPostgres } from '../testing/throwaway-postgres.ts';
import { type Lane, openLane, type Prepare } from './lane.ts';
import { ConnectionCut, StatementTimeout, statementFailure } from './statement-error.ts';
import { statementsOnWire } from './wire-connection.ts';

const cutsMin = 150;
const callersPerLane = 6;

let server: ThrowawayPostgres;
let admin: postgres.Sql;

beforeAll(async () => {
  server = await startThrowawayPostgres();
  admin = postgres(server.url, { max: 1 });
});

afterAll(async () => {
  await admin?.end({ timeout: 1 });
  await server?.stop();
});

async function connectionsOf(applicationName: string): Promise<number> {
  const [row] = await admin`
    select count(*)::int as count from pg_stat_activity where application_name = ${applicationName}`;
  return Number(row?.count);
}

type Echo = (text: string) => Promise<string[]>;

/** What the driver runs on its connections, and what runs on one that it has given away. */
const ways: readonly (readonly [name: string, connectionsMax: number, prepare: Prepare<Echo>])[] = [
  [
    'by the driver',
    2,
    (db) => async (text) => [...(await db.execute<{ text: string }>(sql`select ${text}::text`))].map((row) => row.text),
  ],
  [
    'on the wire',
    1,
    (_db, connect) => {
      const run = statementsOnWire(connect, { echo: 'select $1::text' });
      return (text) => run('echo', [text]);
    },
  ],
];

test.each(ways)(
  'a database whose connections are cut at any moment leaves no statement %s hanging and no connection behind',
  async (way, connectionsMax, prepare) => {
    const proxy = await startCuttingProxy(server.url);
    onTestFinished(() => proxy.close());
    const applicationName = `flapping ${way}`;
    const lanes = Array.from({ length: 6 }, () =>
      openLane({ url: proxy.url, applicationName, connectionsMax }, prepare),
    );
    const unexpected: unknown[] = [];
    let failed = 0;
    const call = async (lane: (typeof lanes)[number], note: string) => {
      try {
        await lane.run((echo) => echo(note));
      } catch (error) {
        failed += 1;
        // One that had to be given up after its time had hung.
        if (statementFailure(error) !== 'unavailable' || error instanceof StatementTimeout) unexpected.push(error);
      }
    };
    const callers = lanes.flatMap((lane) =>
      Array.from({ length: callersPerLane }, async (_, place) => {
        // Some statements are longer than what the driver gathers before it writes.
        const note = 'x'.repeat(place % 2 === 0 ? 10 : 3_000);
        while (proxy.cuts() < cutsMin) await call(lane, note);
      }),
    );
    await Promise.all(callers);
    expect(unexpected).toEqual([]);
    expect(failed).toBeGreaterThan(cutsMin);

    proxy.relent();
    // The last cut may still be on its way to some of them.
    for (const lane of lanes) await expect.poll(() => lane.run((echo) => echo('one'))).toEqual(['one']);
    failed = 0;
    await Promise.all(lanes.flatMap((lane) => Array.from({ length: callersPerLane }, () => call(lane, 'calm'))));
    expect(failed).toBe(0);
    await expect.poll(() => connectionsOf(applicationName)).toBeLessThanOrEqual(lanes.length * connectionsMax);
    await Promise.all(lanes.map((lane) => lane.close()));
    await expect.poll(() => connectionsOf(applicationName)).toBe(0);
  },
);

test('a connection that the system can not make, for whatever reason, is unavailable and keeps nobody waiting', async () => {
  // The folder of a Unix socket, which is not there while its server is not.
  vi.stubEnv('PGHOST', '/no/such/folder');
  onTestFinished(() => void vi.unstubAllEnvs());
  const lane = openLane({ url: 'postgres:///gateway', applicationName: 'nowhere', connectionsMax: 1 }, (db) => db);
  onTestFinished(() => lane.close());
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const error = await lane.run((db) => db.execute(sql`select 1`)).catch((refusal: unknown) => refusal);
    expect([statementFailure(error), error instanceof StatementTimeout]).toEqual(['unavailable', false]);
  }
});

test('of several hosts the first that is there is taken, and where none is, nobody waits', async () => {
  const { host } = new URL(server.url);
  const laneTo = (hosts: string) => {
    const url = server.url.replace(host, hosts);
    const lane = openLane({ url, applicationName: 'hosts', connectionsMax: 1 }, (db) => db);
    onTestFinished(() => lane.close());
    return lane;
  };
  const [row] = await laneTo(`127.0.0.1:1,${host}`).run((db) => db.execute(sql`select 1 as one`));
  expect(row).toEqual({ one: 1 });
  const nowhere = laneTo('127.0.0.1:1,127.0.0.1:2');
  const error = await nowhere.run((db) => db.execute(sql`select 1`)).catch((refusal: unknown) => refusal);
  expect([statementFailure(error), error instanceof StatementTimeout]).toEqual(['unavailable', false]);
});

test('of several hosts one that the URL does not want for its session is left for the next', async () => {
  const [other, wanted] = await Promise.all([startTestServer(), startTestServer()]);
  onTestFinished(async () => {
    await Promise.all([other.stop(), wanted.stop()]);
  });
  for (const { url } of [other, wanted]) await runQuery(url, "create role writer login password 'writer'");
  await runQuery(other.url, 'alter role writer set default_transaction_read_only = on');
  const own = Object.assign(new URL(wanted.url), { username: 'writer', password: 'writer' });
  const url = `${own.href.replace(own.host, `${new URL(other.url).host},${own.host}`)}?target_session_attrs=read-write`;
  const lane = openLane({ url, applicationName: 'read-write', connectionsMax: 1 }, (db) => db);
  onTestFinished(() => lane.close());
  const kindOf = () => lane.run((db) => db.execute(sql`show default_transaction_read_only`)).catch(statementFailure);
  await expect.poll(kindOf).toMatchObject([{ default_transaction_read_only: 'off' }]);
  expect(await kindOf()).toMatchObject([{ default_transaction_read_only: 'off' }]);
});

test.each(ways)('a lane %s that is closed makes no connection any more', async (way, connectionsMax, prepare) => {
  const lane = openLane({ url: server.url, applicationName: `closed ${way}`, connectionsMax }, prepare);
  await lane.run((echo) => echo('before'));
  await lane.close();
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const error = await lane.run((echo) => echo('after')).catch((refusal: unknown) => refusal);
    expect([statementFailure(error), error instanceof StatementTimeout]).toEqual(['unavailable', false]);
  }
});

test.each([
  ['replaces it', (lane: Lane<unknown>) => lane.run(() => Promise.reject(new ConnectionCut())).catch(() => {})],
  ['is closed', (lane: Lane<unknown>) => lane.close()],
])('a lane keeps no connection to a server that reads nothing any more once it %s', async (_, end) => {
  const clients: Socket[] = [];
  const proxy = await startDatabaseProxy(server.url, (client, database) => {
    clients.push(client);
    client.pipe(database).pipe(client);
    return async () => {};
  });
  onTestFinished(() => proxy.close());
  const lane = openLane({ url: proxy.url, applicationName: 'deaf', connectionsMax: 1 }, (_db, connect) => connect);
  onTestFinished(() => lane.close());
  const socket = await lane.run((connect) => connect());
  for (const client of clients) client.unpipe().pause();
  await end(lane);
  await expect.poll(() => socket.destroyed).toBe(true);
});

test('a statement that fails after its first rows leaves nothing in the answer of the next', async () => {
  const lane = openLane({ url: server.url, applicationName: 'half way', connectionsMax: 1 }, (db) => db);
  onTestFinished(() => lane.close());
  const failsAtTheThirdRow = sql`select 1 / (3 - place) from generate_series(1, 5) place`;
  await expect(lane.run((db) => db.execute(failsAtTheThirdRow))).rejects.toThrow();
  const [first, ...others] = await lane.run((db) => db.execute(sql`select 1 as one`));
  expect([first, others]).toEqual([{ one: 1 }, []]);
});
