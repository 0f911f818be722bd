import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { startTestServer, type TestServer } from '@order-gateway/dev-postgres/testing';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  type ConnectionChange,
  createConnectionEvents,
  type DatabaseClient,
  openClient,
  openConnection,
  openTransactionClient,
  type TransactionOptions,
} from '../../src/connections/client.ts';
import { ConnectionLost, redact, statementFailure } from '../../src/connections/errors.ts';
import { startCuttingProxy, startDatabaseProxy } from '../../testing/database-proxy.ts';
import { runQuery } from '../../testing/run-query.ts';

const cutsMin = 150;
const callsPerClient = 6;

let server: TestServer;
let admin: postgres.Sql;

beforeAll(async () => {
  server = await startTestServer();
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

/** Records the sockets that this process opens to the port of a URL, until the end of the test. */
function watchSockets(url: string): Socket[] {
  const opened: Socket[] = [];
  const port = Number(new URL(url).port);
  const onSocket = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    socket.once('connect', () => socket.remotePort === port && opened.push(socket));
  };
  subscribe('net.client.socket', onSocket);
  onTestFinished(() => void unsubscribe('net.client.socket', onSocket));
  return opened;
}

/** Ends the only session of an application, and waits until this process has noticed. */
async function endSession(applicationName: string, [socket]: readonly Socket[]): Promise<void> {
  const closed = once(socket as Socket, 'close');
  await admin`select pg_terminate_backend(pid, 5000) from pg_stat_activity where application_name = ${applicationName}`;
  await closed;
}

function openTestClient(url: string, applicationName: string): DatabaseClient<PostgresJsDatabase> {
  const client = openClient({ url, applicationName }, (db) => db);
  onTestFinished(() => client.close());
  return client;
}

/**
 * Opens a client with a function that runs a prepared statement, which returns its parameter. The statement runs in a
 * transaction, if there is one.
 */
function openEcho(url: string, applicationName: string, transaction?: TransactionOptions) {
  const prepare = (db: PostgresJsDatabase) =>
    db
      .select({ text: sql<string>`${sql.placeholder('text')}::text` })
      .from(sql`(select) nothing`)
      .prepare('echo');
  const options = { url, applicationName };
  const client = transaction ? openTransactionClient(options, transaction, prepare) : openClient(options, prepare);
  const echo = async (text: string) =>
    (await client.run((prepared) => prepared.execute({ text }))).map((row) => row.text);
  return { echo, close: () => client.close() };
}

const isTimeout = (error: unknown) => redact(error).message.startsWith('no response');

/** Returns the kind of a statement's failure, or `timeout` if only its deadline ended it. */
async function failureOf(running: Promise<unknown>): Promise<unknown> {
  const error = await running.then(() => undefined).catch((reason: unknown) => reason);
  return isTimeout(error) ? 'timeout' : statementFailure(error);
}

test('patience multiplies the time after which the server cancels a statement', async () => {
  await using connection = openConnection({ url: server.url, applicationName: 'patient', patience: 3 });
  const rows = await connection.run(() => connection.db.execute(sql`show statement_timeout`));
  expect(rows).toEqual([{ statement_timeout: '12s' }]);
});

const selectOne = (db: PostgresJsDatabase) => db.execute(sql`select 1 as one`);

test('connections cut at any moment leave no statement hanging and no connection open', async () => {
  const proxy = await startCuttingProxy(server.url);
  onTestFinished(() => proxy.close());
  const transactions = [undefined, { begin: 'begin' }, { begin: 'begin', returnsEarly: true }];
  const clients = Array.from({ length: 6 }, (_, index) => openEcho(proxy.url, 'flapping', transactions[index % 3]));
  const unexpected: unknown[] = [];
  let failed = 0;
  const call = async ({ echo }: (typeof clients)[number], text: string) => {
    try {
      const rows = await echo(text);
      if (rows[0] !== text || rows.length !== 1) unexpected.push(rows);
    } catch (error) {
      failed += 1;
      // A timeout means that the statement was hanging.
      if (statementFailure(error) !== 'unavailable' || isTimeout(error)) unexpected.push(error);
    }
  };
  const calling = clients.flatMap((client) =>
    Array.from({ length: callsPerClient }, async (_, index) => {
      // Some statements are longer than what the driver buffers before it writes.
      const text = `${index} `.repeat(index % 2 === 0 ? 5 : 1_500);
      while (proxy.cuts() < cutsMin) await call(client, text);
    }),
  );
  await Promise.all(calling);
  expect(unexpected).toEqual([]);
  expect(failed).toBeGreaterThan(cutsMin);

  proxy.stopCutting();
  // Some clients may not have noticed the last cut yet.
  for (const { echo } of clients) await expect.poll(() => echo('one')).toEqual(['one']);
  failed = 0;
  await Promise.all(clients.flatMap((client) => Array.from({ length: callsPerClient }, () => call(client, 'calm'))));
  expect(failed).toBe(0);
  await expect.poll(() => connectionsOf('flapping')).toBeLessThanOrEqual(clients.length);
  await Promise.all(clients.map((client) => client.close()));
  await expect.poll(() => connectionsOf('flapping')).toBe(0);
});

test.each([true, false])(
  'statements run with the settings of their transaction, even after a failed one (returnsEarly: %s)',
  async (returnsEarly) => {
    const applicationName = `transactions ${returnsEarly}`;
    const client = openTransactionClient(
      { url: server.url, applicationName },
      { begin: 'begin; set local enable_seqscan = off', returnsEarly },
      (db) =>
        db
          .select({ seqscan: sql`current_setting('enable_seqscan')`, one: sql`1 / ${sql.placeholder('divisor')}::int` })
          .from(sql`(select) nothing`)
          .prepare('divide'),
    );
    onTestFinished(() => client.close());
    const divided = await Promise.allSettled(
      [1, 1, 0, 1].map((divisor) => client.run((statement) => statement.execute({ divisor }))),
    );
    const row = { status: 'fulfilled', value: [{ seqscan: 'off', one: 1 }] };
    expect(divided).toMatchObject([row, row, { status: 'rejected' }, row]);
    const stateOf = async () =>
      (await admin`select state from pg_stat_activity where application_name = ${applicationName}`)[0]?.state;
    await expect.poll(stateOf).toBe('idle');
  },
);

test('if no connection can be opened, statements are unavailable at once', async () => {
  // The folder of a Unix socket. It may be missing while the server is down.
  vi.stubEnv('PGHOST', '/no/such/folder');
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const url of ['postgres:///gateway', 'postgres://127.0.0.1:1/gateway', 'postgres://host.invalid/gateway']) {
    const client = openTestClient(url, 'nowhere');
    for (let attempt = 0; attempt < 2; attempt += 1) expect(await failureOf(client.run(selectOne))).toBe('unavailable');
  }
});

test('the first of several hosts that accepts the connection is used, and no statement waits beyond its deadline', async () => {
  const { host } = new URL(server.url);
  const clientOf = (hosts: string) => openTestClient(server.url.replace(host, hosts), 'hosts');
  expect([...(await clientOf(`127.0.0.1:1,${host}`).run(selectOne))]).toEqual([{ one: 1 }]);
  expect(await failureOf(clientOf('127.0.0.1:1,127.0.0.1:2').run(selectOne))).toBe('timeout');
});

test('a host whose session does not meet target_session_attrs is skipped', async () => {
  const readOnlyServer = await startTestServer();
  onTestFinished(() => readOnlyServer.stop());
  for (const { url } of [readOnlyServer, server]) await runQuery(url, "create role writer login password 'writer'");
  await runQuery(readOnlyServer.url, 'alter role writer set default_transaction_read_only = on');
  const writerUrl = Object.assign(new URL(server.url), { username: 'writer', password: 'writer' });
  const url = `${writerUrl.href.replace(writerUrl.host, `${new URL(readOnlyServer.url).host},${writerUrl.host}`)}?target_session_attrs=read-write`;
  const client = openTestClient(url, 'read-write');
  const readOnly = () =>
    client.run((db) => db.execute(sql`show default_transaction_read_only`)).catch(statementFailure);
  await expect.poll(readOnly).toMatchObject([{ default_transaction_read_only: 'off' }]);
  expect(await readOnly()).toMatchObject([{ default_transaction_read_only: 'off' }]);
});

test('if a server closes every new connection, a statement fails at the first attempt', async () => {
  let attempts = 0;
  const closing = createServer((socket) => {
    attempts += 1;
    socket.end();
  }).listen(0, '127.0.0.1');
  await once(closing, 'listening');
  onTestFinished(() => void closing.close());
  const client = openTestClient(`postgres://127.0.0.1:${(closing.address() as AddressInfo).port}`, 'hung up');
  expect(await failureOf(client.run(selectOne))).toBe('unavailable');
  expect(attempts).toBe(1);
});

test('a server may take seconds to open a session, because the first statement has one deadline for both', async () => {
  const proxy = await startDatabaseProxy(server.url, (client, database) => {
    setTimeout(() => client.pipe(database).pipe(client), 2_000);
  });
  onTestFinished(() => proxy.close());
  const client = openTestClient(proxy.url, 'slowly opened');
  await expect.poll(() => client.run(selectOne).catch(statementFailure)).toMatchObject([{ one: 1 }]);
});

test('a statement sent after the server has ended the connection is unavailable, and the connection is replaced', async () => {
  const proxy = await startDatabaseProxy(server.url);
  onTestFinished(() => proxy.close());
  const sockets = watchSockets(proxy.url);
  const client = openTestClient(proxy.url, 'ended');
  await client.run(selectOne);
  const [socket] = sockets as [Socket];
  // The statement is so long that the driver writes it at once.
  const long = sql.raw(`select '${'x'.repeat(2_000)}'`);
  const failure = once(socket, 'end').then(() => failureOf(client.run((db) => db.execute(long))));
  for (const proxySocket of proxy.sockets) proxySocket.end();
  expect(await failure).toBe('unavailable');
  expect([...(await client.run(selectOne))]).toEqual([{ one: 1 }]);
});

test.each([
  'failure on connection marked as essential: 127.0.0.1:54321',
  'could not find valid entry for shard 102008',
])('a statement that fails with the Citus error "%s" is unavailable, and its session is replaced', async (text) => {
  const client = openTestClient(server.url, 'lost worker');
  const pidOf = async () => {
    const [row] = await client.run((db) => db.execute<{ pid: number }>(sql`select pg_backend_pid() as pid`));
    return row?.pid;
  };
  const fail = (message: string) =>
    failureOf(
      client.run((db) => db.execute(sql.raw(`do $$ begin raise '${message}' using errcode = 'XX000'; end $$`))),
    );
  const before = await pidOf();
  // An internal error of PostgreSQL has the same code.
  expect(await fail('cache lookup failed for type 1')).toBeUndefined();
  expect(await pidOf()).toBe(before);
  expect(await fail(text)).toBe('unavailable');
  expect(await pidOf()).not.toBe(before);
});

test('a client that is closed opens no connection', async () => {
  const client = openTestClient(server.url, 'closed');
  await client.run(selectOne);
  await client.close();
  for (let attempt = 0; attempt < 3; attempt += 1) expect(await failureOf(client.run(selectOne))).toBe('unavailable');
  await expect.poll(() => connectionsOf('closed')).toBe(0);
});

test('a connection that was lost while idle is replaced without failing a statement', async () => {
  const sockets = watchSockets(server.url);
  const client = openTestClient(server.url, 'idle');
  await client.run(selectOne);
  await endSession('idle', sockets);
  expect([...(await client.run(selectOne))]).toEqual([{ one: 1 }]);
});

test('a connection that was lost between two statements is not opened again', async () => {
  const sockets = watchSockets(server.url);
  const { db, close } = openConnection({ url: server.url, applicationName: 'transaction' });
  await db.execute(sql`begin`);
  await endSession('transaction', sockets);
  expect(await failureOf(db.execute(sql`select 1`))).toBe('unavailable');
  await close();
});

test.each([
  [
    'replaced',
    (client: DatabaseClient<unknown>) => client.run(() => Promise.reject(new ConnectionLost())).catch(() => {}),
  ],
  ['closed', (client: DatabaseClient<unknown>) => client.close()],
])('when a client is %s, its socket is destroyed even if the server no longer reads', async (_, end) => {
  const accepted: Socket[] = [];
  const proxy = await startDatabaseProxy(server.url, (client, database) => {
    accepted.push(client);
    client.pipe(database).pipe(client);
    return async () => {};
  });
  onTestFinished(() => proxy.close());
  const sockets = watchSockets(proxy.url);
  const client = openTestClient(proxy.url, 'deaf');
  await client.run(selectOne);
  expect(sockets).toHaveLength(1);
  for (const socket of accepted) socket.unpipe().pause();
  await end(client);
  await expect.poll(() => sockets[0]?.destroyed).toBe(true);
});

test('rows of a statement that fails later are not in the next result', async () => {
  const client = openTestClient(server.url, 'carry over');
  const failsAtTheThirdRow = sql`select 1 / (3 - number) from generate_series(1, 5) number`;
  await expect(client.run((db) => db.execute(failsAtTheThirdRow))).rejects.toThrow();
  const [first, ...furtherRows] = await client.run(selectOne);
  expect([first, furtherRows]).toEqual([{ one: 1 }, []]);
});

describe('connection events', () => {
  /** Opens two clients that share their events. */
  async function openTwoClients(url: string) {
    const changes: ConnectionChange[] = [];
    const connectionEvents = createConnectionEvents((change) => changes.push(change));
    const clients = ['one', 'other'].map((applicationName) =>
      openClient({ url, applicationName, connectionEvents }, (db) => db),
    );
    const runAll = () =>
      Promise.all(clients.map((client) => client.run(selectOne).then(() => 'done', statementFailure)));
    const close = () => Promise.all(clients.map((client) => client.close()));
    onTestFinished(() => close().then(() => {}));
    return { changes, runAll, close };
  }

  test('a database that stops is reported once with the reason, and once when it is back', async () => {
    const [first, second] = [await startTestServer(), await startTestServer()];
    onTestFinished(() => Promise.all([first.stop(), second.stop()]).then(() => {}));
    const { username, password, port } = new URL(first.url);
    await runQuery(second.url, `alter role ${username} password '${decodeURIComponent(password)}'`);
    const { changes, runAll } = await openTwoClients(first.url);
    expect(await runAll()).toEqual(['done', 'done']);
    expect(changes).toEqual([]);
    await first.stop();
    for (let attempt = 0; attempt < 3; attempt += 1) expect(await runAll()).toEqual(['unavailable', 'unavailable']);
    expect(changes).toEqual([{ kind: 'lost', reason: 'no connection to the database: ECONNREFUSED' }]);
    const proxy = await startDatabaseProxy(second.url, undefined, Number(port));
    onTestFinished(() => proxy.close());
    await expect.poll(runAll).toEqual(['done', 'done']);
    await runAll();
    expect(changes.slice(1)).toEqual([{ kind: 'restored' }]);
  });

  test('a statement that fails for another reason, and a client that is closed, are not reported', async () => {
    const { changes, runAll, close } = await openTwoClients(server.url);
    const connectionEvents = createConnectionEvents((change) => changes.push(change));
    const client = openClient({ url: server.url, applicationName: 'failing', connectionEvents }, (db) => db);
    await expect(client.run((db) => db.execute(sql`select 1 / 0`))).rejects.toThrow();
    await client.close();
    await close();
    await Promise.all([client.run(selectOne).catch(() => {}), runAll()]);
    expect(changes).toEqual([]);
  });

  test('a client that works does not end the reported outage of another client', () => {
    const changes: ConnectionChange[] = [];
    const events = createConnectionEvents((change) => changes.push(change));
    const [inserts, lookups] = [{}, {}];
    events.failed(inserts, 'the database is read-only');
    events.succeeded(lookups);
    events.failed(inserts, 'the database is read-only');
    expect(changes).toEqual([{ kind: 'lost', reason: 'the database is read-only' }]);
    events.succeeded(inserts);
    events.succeeded(lookups);
    expect(changes.slice(1)).toEqual([{ kind: 'restored' }]);
  });
});

test('a statement whose commit stopped waiting for its standby is not acknowledged', async () => {
  const syncServer = await startTestServer();
  onTestFinished(() => syncServer.stop());
  const { url } = await syncServer.createDatabase((databaseUrl) =>
    runQuery(databaseUrl, 'create table kept (id int)').then(() => {}),
  );
  await runQuery(url, "alter system set synchronous_standby_names = 'no_standby'");
  await runQuery(url, 'select pg_reload_conf()');
  const client = openTestClient(url, 'unreplicated');
  const waiting = () =>
    runQuery(
      url,
      "select pid from pg_stat_activity where application_name = 'unreplicated' and wait_event = 'SyncRep'",
    );
  await expect
    .poll(() => runQuery(url, 'show synchronous_standby_names'))
    .toEqual([{ synchronous_standby_names: 'no_standby' }]);
  const insert = client.run((db) => db.execute(sql`insert into kept values (1) returning id`));
  const failure = insert.then(
    () => 'acknowledged',
    (error: unknown) => redact(error).message,
  );
  await expect.poll(waiting).toHaveLength(1);
  await runQuery(url, "select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'unreplicated'");
  expect(await failure).toBe('the database committed without waiting for its synchronous standby');
  expect(statementFailure(await insert.catch((error: unknown) => error))).toBe('unavailable');
  expect(await runQuery(url, 'select id from kept')).toEqual([{ id: 1 }]);
});
