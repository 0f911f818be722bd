import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { startTestServer, type TestServer } from '@gateway/dev-postgres/testing';
import { sql } from 'drizzle-orm';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { openClient } from '../src/client.ts';
import { statementFailure, withoutValues } from '../src/errors.ts';
import { migrateDatabase } from '../src/migrate.ts';
import { startChangingProxy } from '../testing/database-proxy.ts';
import { type SelfSigned, selfSigned } from '../testing/self-signed.ts';

const host = 'localhost';
const certificate = selfSigned(host);

let plain: TestServer;
let secure: TestServer;

beforeAll(async () => {
  [plain, secure] = await Promise.all([startTestServer(), startTestServer()]);
  await serveCertificate(certificate);
});

afterAll(async () => {
  await Promise.all([plain?.stop(), secure?.stop()]);
});

/** Makes the server with TLS use a certificate for its next connections. */
async function serveCertificate({ cert, key }: SelfSigned): Promise<void> {
  const admin = postgres(secure.url, { max: 1 });
  const [row] = await admin`show data_directory`;
  const folder = String(row?.data_directory);
  await writeFile(join(folder, 'server.crt'), cert);
  await writeFile(join(folder, 'server.key'), key, { mode: 0o600 });
  await admin`alter system set ssl = on`;
  await admin`select pg_reload_conf()`;
  await vi.waitFor(async () => expect(await admin`show ssl`).toMatchObject([{ ssl: 'on' }]));
  await admin.end();
}

function urlWith(url: string, query: string): string {
  const own = new URL(url);
  own.hostname = host;
  own.search = query;
  return own.href;
}

/** Whether the connection of this URL uses TLS, as the database sees it. */
async function usesTls(url: string): Promise<unknown> {
  const client = openClient({ url, applicationName: 'tls' }, (db) => db);
  try {
    const [row] = await client.run((db) => db.execute(sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`));
    return row?.ssl;
  } finally {
    await client.close();
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
])('with %s the connection uses TLS, whoever signed the certificate', async (query) => {
  expect(await usesTls(urlWith(secure.url, query))).toBe(true);
});

test.each(['', 'ssl=', 'sslmode=', 'sslmode=disable'])('with "%s" the connection is not encrypted', async (query) => {
  expect(await usesTls(urlWith(secure.url, query))).toBe(false);
});

test('verify-full rejects a certificate that nobody trusted has signed', async () => {
  const url = urlWith(secure.url, 'sslmode=verify-full');
  const reason = 'no secure connection to the database: DEPTH_ZERO_SELF_SIGNED_CERT';
  expect(await failureOf(migrateDatabase(url))).toMatchObject({ message: reason });
  const client = openClient({ url, applicationName: 'unknown' }, (db) => db);
  onTestFinished(() => client.close());
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const error = await failureOf(client.run((db) => db.execute(sql`select 1`)));
    expect([statementFailure(error), withoutValues(error).message]).toEqual([undefined, reason]);
  }
});

test('verify-full accepts a trusted certificate for the host and rejects one for another host', async () => {
  const defaults = getCACertificates('default');
  onTestFinished(() => setDefaultCACertificates(defaults));
  setDefaultCACertificates([certificate.cert]);
  const url = urlWith(secure.url, 'sslmode=verify-full');
  expect(await usesTls(url)).toBe(true);
  const other = selfSigned('database.example');
  await serveCertificate(other);
  onTestFinished(() => serveCertificate(certificate));
  setDefaultCACertificates([other.cert]);
  await expect.poll(() => reasonOf(usesTls(url))).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
});

test('a database without TLS is used with prefer and gives a clear error with require', async () => {
  expect(await usesTls(urlWith(plain.url, 'sslmode=prefer'))).toBe(false);
  expect(await reasonOf(usesTls(urlWith(plain.url, 'sslmode=require')))).toBe(
    'no TLS connection to the database: it closed the connection on the TLS handshake; is TLS enabled there?',
  );
});

test.each([
  [0, 'end'],
  [0, 'reset'],
  [1, 'end'],
  [1, 'reset'],
] as const)(
  'a server that closes the connection after %i bytes, by %s, fails a statement before its deadline',
  async (count, how) => {
    const proxy = await startChangingProxy(secure.url, (chunk) => chunk.subarray(0, count));
    onTestFinished(() => proxy.close());
    const pending = failureOf(usesTls(urlWith(proxy.url, 'sslmode=require')));
    await vi.waitFor(() => expect(proxy.received()).toBeGreaterThan(0));
    proxy.disconnect(how);
    const error = await pending;
    expect(error).toBeInstanceOf(Error);
    expect(withoutValues(error).message).not.toContain('no response');
  },
);

test('a server that resets the connection with its last byte of the TLS handshake fails a statement', async () => {
  const proxy = await startChangingProxy(secure.url, (chunk) => {
    if (proxy.received() === 2) queueMicrotask(() => proxy.disconnect('reset'));
    return chunk;
  });
  onTestFinished(() => proxy.close());
  const error = await failureOf(usesTls(urlWith(proxy.url, 'sslmode=require')));
  // The driver misses it, so the deadline ends the statement.
  expect(statementFailure(error)).toBe('unavailable');
});

test('a client that is closed during the TLS handshake leaves no socket open', async () => {
  const proxy = await startChangingProxy(secure.url, (chunk) => (chunk.length === 1 ? chunk : Buffer.of()));
  onTestFinished(() => proxy.close());
  const client = openClient(
    { url: urlWith(proxy.url, 'sslmode=require'), applicationName: 'closed early' },
    (db) => db,
  );
  const pending = failureOf(client.run((db) => db.execute(sql`select 1`)));
  await vi.waitFor(() => expect(proxy.received()).toBeGreaterThan(1));
  await client.close();
  expect(await pending).toBeInstanceOf(Error);
  await vi.waitFor(() => expect(proxy.sockets.size).toBe(0));
});
