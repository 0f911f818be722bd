import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { startTestServer, type TestServer } from '@gateway/dev-postgres/testing';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startRelay } from '../testing/relay.ts';
import { selfSigned } from '../testing/self-signed.ts';
import { openLane } from './lane.ts';
import { migrateDatabase } from './migrate.ts';
import { StatementTimeout, statementFailure, withoutValues } from './statement-error.ts';
import { statementsOnWire } from './wire-connection.ts';

const host = 'localhost';
const certificate = selfSigned(host);

let plain: TestServer;
let secure: TestServer;

beforeAll(async () => {
  [plain, secure] = await Promise.all([startTestServer(), startTestServer()]);
  const admin = postgres(secure.url, { max: 1 });
  const [row] = await admin`show data_directory`;
  const folder = String(row?.data_directory);
  await writeFile(join(folder, 'server.crt'), certificate.cert);
  await writeFile(join(folder, 'server.key'), certificate.key, { mode: 0o600 });
  await admin`alter system set ssl = on`;
  await admin`select pg_reload_conf()`;
  await vi.waitFor(async () => expect(await admin`show ssl`).toMatchObject([{ ssl: 'on' }]));
  await admin.end();
});

afterAll(async () => {
  await Promise.all([plain?.stop(), secure?.stop()]);
});

function urlWith(url: string, query: string): string {
  const own = new URL(url);
  own.hostname = host;
  own.search = query;
  return own.href;
}

/** Whether a connection over this URL is secured, as the database sees it; asked by the driver and on the wire. */
async function isSecured(url: string): Promise<unknown[]> {
  const text = 'select ssl::text from pg_stat_ssl where pid = pg_backend_pid()';
  const options = { url, applicationName: 'secured', connectionsMax: 1 };
  const byDriver = openLane(options, (db) => db);
  const onWire = openLane(options, (_db, connect) => statementsOnWire(connect, { ask: text }));
  try {
    const [row] = await byDriver.run((db) => db.execute(sql.raw(text)));
    return [row?.ssl, ...(await onWire.run((ask) => ask('ask', [])))];
  } finally {
    await Promise.all([byDriver.close(), onWire.close()]);
  }
}

const failureOf = (running: Promise<unknown>) => running.then(() => undefined).catch((error: unknown) => error);

const reasonOf = async (running: Promise<unknown>) => withoutValues(await failureOf(running)).message;

test.each([
  'sslmode=require',
  'sslmode=allow',
  'sslmode=prefer',
  'ssl=require',
  'sslmode=require&sslnegotiation=direct',
])('with %s what is said to the database is secured, whoever signed its certificate', async (query) => {
  expect(await isSecured(urlWith(secure.url, query))).toEqual(['true', 'true']);
});

test.each(['', 'ssl=', 'sslmode=', 'sslmode=disable'])('with "%s" it is not', async (query) => {
  expect(await isSecured(urlWith(secure.url, query))).toEqual(['false', 'false']);
});

test('a certificate has to be signed by somebody known where the URL asks for that', async () => {
  const url = urlWith(secure.url, 'sslmode=verify-full');
  const reason = 'there is no secure connection to the database: DEPTH_ZERO_SELF_SIGNED_CERT';
  expect(await failureOf(migrateDatabase(url))).toMatchObject({ message: reason });
  const lane = openLane({ url, applicationName: 'unknown', connectionsMax: 1 }, (db) => db);
  onTestFinished(() => lane.close());
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const error = await failureOf(lane.run((db) => db.execute(sql`select 1`)));
    expect([statementFailure(error), withoutValues(error).message]).toEqual([undefined, reason]);
  }
});

test('a certificate that is trusted has to be for the host', async () => {
  const usual = getCACertificates('default');
  onTestFinished(() => setDefaultCACertificates(usual));
  setDefaultCACertificates([certificate.cert]);
  const url = urlWith(secure.url, 'sslmode=verify-full');
  expect(await isSecured(url)).toEqual(['true', 'true']);
  expect(await reasonOf(isSecured(url.replace(host, '127.0.0.1')))).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
});

test('a database that speaks no TLS is done without where the URL lets it, and refused where it does not', async () => {
  expect(await isSecured(urlWith(plain.url, 'sslmode=prefer'))).toEqual(['false', 'false']);
  expect(await reasonOf(isSecured(urlWith(plain.url, 'sslmode=require')))).toContain('ECONNREFUSED');
});

test('bytes that somebody put after the answer about TLS are refused', async () => {
  let isFirst = true;
  const relay = await startRelay(secure.url, (piece) => {
    const changed = isFirst ? Buffer.concat([piece, Buffer.from('more')]) : piece;
    isFirst = false;
    return [changed];
  });
  onTestFinished(() => relay.close());
  for (const mode of ['require', 'prefer']) {
    isFirst = true;
    expect(await reasonOf(isSecured(urlWith(relay.url, `sslmode=${mode}`)))).toContain('ECONNREFUSED');
  }
});

test.each([
  [0, 'end'],
  [0, 'reset'],
  [1, 'end'],
  [1, 'reset'],
] as const)('a server that hangs up after %i bytes of its answers, by %s, keeps nobody waiting', async (count, how) => {
  const relay = await startRelay(secure.url, (piece) => [piece.subarray(0, count)]);
  onTestFinished(() => relay.close());
  const pending = failureOf(isSecured(urlWith(relay.url, 'sslmode=require')));
  await vi.waitFor(() => expect(relay.passed()).toBeGreaterThan(0));
  relay.hangUp(how);
  const error = await pending;
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(StatementTimeout);
});

test('a server that resets the connection with the last it says about TLS keeps nobody waiting', async () => {
  const relay = await startRelay(secure.url, (piece) => {
    if (relay.passed() === 2) queueMicrotask(() => relay.hangUp('reset'));
    return [piece];
  });
  onTestFinished(() => relay.close());
  const error = await failureOf(isSecured(urlWith(relay.url, 'sslmode=require')));
  expect([statementFailure(error), error instanceof StatementTimeout]).toEqual(['unavailable', false]);
});

test('a server that hangs up on all who come is asked once for a statement, and keeps nobody waiting', async () => {
  let asked = 0;
  const server = createServer((socket) => {
    asked += 1;
    socket.end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `postgres://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const lane = openLane({ url, applicationName: 'hung up', connectionsMax: 1 }, (db) => db);
  onTestFinished(() => lane.close());
  const error = await failureOf(lane.run((db) => db.execute(sql`select 1`)));
  expect([statementFailure(error), error instanceof StatementTimeout]).toEqual(['unavailable', false]);
  expect(asked).toBe(1);
});

test('a lane that is closed while it secures a connection leaves nothing behind', async () => {
  const relay = await startRelay(secure.url, (piece) => (piece.length === 1 ? [piece] : []));
  onTestFinished(() => relay.close());
  const url = urlWith(relay.url, 'sslmode=require');
  const lane = openLane({ url, applicationName: 'closed early', connectionsMax: 1 }, (db) => db);
  const pending = failureOf(lane.run((db) => db.execute(sql`select 1`)));
  await vi.waitFor(() => expect(relay.passed()).toBeGreaterThan(1));
  await lane.close();
  expect(await pending).toBeInstanceOf(Error);
  await vi.waitFor(() => expect(relay.open()).toBe(0));
});
