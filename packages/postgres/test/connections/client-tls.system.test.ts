import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { startTestServer, type TestServer } from '@order-gateway/dev-postgres/testing';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openClient } from '../../src/connections/client.ts';
import { redact, statementFailure } from '../../src/connections/errors.ts';
import { migrateDatabase } from '../../src/migrate.ts';
import { startChangingProxy } from '../../testing/database-proxy.ts';
import { enableTls } from '../../testing/enable-tls.ts';
import { type SelfSigned, selfSigned } from '../../testing/self-signed.ts';

const host = 'localhost';
/** Reaches this machine, but does not count as a local address. */
const remoteHost = '0.0.0.0';
const certificate = selfSigned(host);
const clientsProgram = fileURLToPath(new URL('./reconnecting-clients.ts', import.meta.url));

let plainServer: TestServer;
let tlsServer: TestServer;
/** The query of a URL with which a client verifies the certificate of `tlsServer`. */
let verifyingQuery: string;

beforeAll(async () => {
  [plainServer, tlsServer] = await Promise.all([startTestServer(), startTestServer()]);
  verifyingQuery = await enableTls(tlsServer.url, certificate);
});

afterAll(async () => {
  await Promise.all([plainServer?.stop(), tlsServer?.stop()]);
});

function urlWith(url: string, query: string, hostname = host): string {
  const changed = new URL(url);
  changed.hostname = hostname;
  changed.search = query;
  return changed.href;
}

/** Whether the connection of this URL uses TLS, according to the database. */
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

const reasonOf = async (running: Promise<unknown>) => redact(await failureOf(running)).message;

test.each([
  'sslmode=require',
  'sslmode=allow',
  'sslmode=prefer',
  'ssl=require',
  'sslmode=require&sslnegotiation=direct',
])('with %s, the connection uses TLS, regardless of which authority signed the certificate', async (query) => {
  expect(await usesTls(urlWith(tlsServer.url, query))).toBe(true);
});

test.each(['', 'ssl=', 'sslmode=', 'sslmode=disable'])('with "%s", the connection is not encrypted', async (query) => {
  expect(await usesTls(urlWith(tlsServer.url, query))).toBe(false);
});

test('verify-full rejects a certificate that no trusted authority has signed', async () => {
  const url = urlWith(tlsServer.url, 'sslmode=verify-full');
  const reason =
    'no secure connection to the database: DEPTH_ZERO_SELF_SIGNED_CERT; set sslrootcert to the certificate file of its authority';
  expect(await failureOf(migrateDatabase(url))).toMatchObject({ message: reason });
  const client = openClient({ url, applicationName: 'unknown' }, (db) => db);
  onTestFinished(() => client.close());
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const error = await failureOf(client.run((db) => db.execute(sql`select 1`)));
    expect([statementFailure(error), redact(error).message]).toEqual([undefined, reason]);
  }
});

test('verify-full accepts a trusted certificate for the host and rejects one for another host', async () => {
  const defaults = getCACertificates('default');
  onTestFinished(() => setDefaultCACertificates(defaults));
  setDefaultCACertificates([certificate.cert]);
  const url = urlWith(tlsServer.url, 'sslmode=verify-full');
  expect(await usesTls(url)).toBe(true);
  const other = selfSigned('database.example');
  await enableTls(tlsServer.url, other);
  onTestFinished(async () => void (await enableTls(tlsServer.url, certificate)));
  setDefaultCACertificates([other.cert]);
  await expect.poll(() => reasonOf(usesTls(url))).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
});

/**
 * Returns the parameter `sslrootcert` with a file that contains the certificate. The file exists until the end of the
 * test.
 */
async function rootFile({ cert }: SelfSigned): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-root-certificate-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'root.crt'), cert);
  return `sslrootcert=${encodeURIComponent(join(folder, 'root.crt'))}`;
}

test('sslrootcert names the authority to trust, alone and with each mode that checks the certificate', async () => {
  const trusted = await rootFile(certificate);
  for (const mode of ['', '&sslmode=verify-full', '&sslmode=verify-ca', '&sslmode=require'])
    expect(await usesTls(urlWith(tlsServer.url, trusted + mode))).toBe(true);
  const other = await rootFile(selfSigned(host));
  for (const mode of ['', '&sslmode=verify-full', '&sslmode=verify-ca', '&sslmode=require'])
    expect(await reasonOf(usesTls(urlWith(tlsServer.url, other + mode)))).toContain('DEPTH_ZERO_SELF_SIGNED_CERT');
});

test('verify-full also compares the certificate with an IP address, but verify-ca does not', async () => {
  const trusted = await rootFile(certificate);
  const reasonWith = (mode: string) => reasonOf(usesTls(urlWith(tlsServer.url, `${trusted}&${mode}`, remoteHost)));
  expect(await reasonWith('sslmode=verify-full')).toContain('ERR_TLS_CERT_ALTNAME_INVALID');
  expect(await usesTls(urlWith(tlsServer.url, `${trusted}&sslmode=verify-ca`, remoteHost))).toBe(true);
});

test('without sslmode, only a host that is not local must have a valid certificate', async () => {
  expect(await usesTls(urlWith(plainServer.url, ''))).toBe(false);
  expect(await usesTls(urlWith(plainServer.url, 'sslmode=disable', remoteHost))).toBe(false);
  expect(await reasonOf(usesTls(urlWith(plainServer.url, '', remoteHost)))).toContain('set sslmode=disable');
  expect(await reasonOf(usesTls(urlWith(tlsServer.url, '', remoteHost)))).toContain('set sslrootcert');
});

test.each([
  ['', false],
  ['?sslmode=disable', true],
])(
  'with "%s", a server without TLS that asks for the password in plain text receives it: %s',
  async (query, isSent) => {
    const received: Buffer[] = [];
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk: Buffer) => {
        received.push(chunk);
        const isTlsRequest = chunk.length === 8;
        // AuthenticationCleartextPassword (PostgreSQL manual, 54.7).
        if (received.length <= 2) socket.write(isTlsRequest ? 'N' : Buffer.of(0x52, 0, 0, 0, 8, 0, 0, 0, 3));
        else socket.destroy();
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    await failureOf(usesTls(`postgres://someone:open-sesame@${remoteHost}:${port}/orders${query}`));
    expect(received.length).toBeGreaterThan(0);
    expect(Buffer.concat(received).includes('open-sesame')).toBe(isSent);
  },
);

test('a database without TLS is used with prefer and gives a clear error with require', async () => {
  expect(await usesTls(urlWith(plainServer.url, 'sslmode=prefer'))).toBe(false);
  expect(await reasonOf(usesTls(urlWith(plainServer.url, 'sslmode=require')))).toBe(
    'no TLS connection to the database: it rejected TLS; enable it there, or set sslmode=disable in a private network',
  );
});

test('when one host rejects TLS and the next one is used, no socket to the first stays open', async () => {
  const proxy = await startChangingProxy(plainServer.url, (chunk) => chunk);
  onTestFinished(() => proxy.close());
  const hosts = [proxy.url, tlsServer.url].map((url) => `localhost:${new URL(url).port}`).join();
  const url = `${tlsServer.url.replace(/127\.0\.0\.1:\d+/, hosts)}?sslmode=require`;
  const client = openClient({ url, applicationName: 'rejected' }, (db) => db);
  onTestFinished(() => client.close());
  await client.run((db) => db.execute(sql`select 1`));
  expect(proxy.received()).toBeGreaterThan(0);
  await expect.poll(() => proxy.sockets.size).toBe(0);
});

test('hosts that cannot be reached, reject TLS or have no valid certificate are skipped', async () => {
  const { port } = new URL(tlsServer.url);
  const other = await startTestServer();
  onTestFinished(other.stop);
  await enableTls(other.url, selfSigned('database.example'));
  const authorities = await rootFile(certificate);
  const failing = ['localhost:1', `localhost:${new URL(plainServer.url).port}`, `localhost:${new URL(other.url).port}`];
  for (const first of failing) {
    const url = tlsServer.url.replace(/127\.0\.0\.1:\d+/, `${first},localhost:${port}`);
    expect(await usesTls(`${url}?${authorities}`).catch((error) => `${first}: ${redact(error).message}`)).toBe(true);
  }
});

test.each([
  [0, 'end'],
  [0, 'reset'],
  [1, 'end'],
  [1, 'reset'],
] as const)(
  'if a server closes the connection after %i bytes, by %s, the statement fails before its deadline',
  async (count, how) => {
    const proxy = await startChangingProxy(tlsServer.url, (chunk) => chunk.subarray(0, count));
    onTestFinished(() => proxy.close());
    const pending = failureOf(usesTls(urlWith(proxy.url, 'sslmode=require')));
    await expect.poll(() => proxy.received()).toBeGreaterThan(0);
    proxy.disconnect(how);
    const error = await pending;
    expect(error).toBeInstanceOf(Error);
    expect(redact(error).message).not.toContain('no response');
  },
);

test('if a server resets the connection with its last byte of the TLS handshake, the statement fails', async () => {
  const proxy = await startChangingProxy(tlsServer.url, (chunk) => {
    if (proxy.received() === 2) queueMicrotask(() => proxy.disconnect('reset'));
    return chunk;
  });
  onTestFinished(() => proxy.close());
  const error = await failureOf(usesTls(urlWith(proxy.url, 'sslmode=require')));
  // The driver does not notice the reset, so the deadline ends the statement.
  expect(statementFailure(error)).toBe('unavailable');
});

test('no socket stays open after a client is closed during the TLS handshake', async () => {
  const proxy = await startChangingProxy(tlsServer.url, (chunk) => (chunk.length === 1 ? chunk : Buffer.of()));
  onTestFinished(() => proxy.close());
  const client = openClient(
    { url: urlWith(proxy.url, 'sslmode=require'), applicationName: 'closed early' },
    (db) => db,
  );
  const pending = failureOf(client.run((db) => db.execute(sql`select 1`)));
  await expect.poll(() => proxy.received()).toBeGreaterThan(1);
  await client.close();
  expect(await pending).toBeInstanceOf(Error);
  await expect.poll(() => proxy.sockets.size).toBe(0);
});

test('a process survives restarts of its server, and its clients reconnect', async () => {
  const clients = fork(clientsProgram, [urlWith(tlsServer.url, verifyingQuery)]);
  onTestFinished(() => void (clients.connected && clients.disconnect()));
  const ended = once(clients, 'exit').then(([code]) => Promise.reject(new Error(`the process ended with ${code}`)));
  ended.catch(() => {});
  const allRun = async () => {
    clients.send('start over');
    await Promise.race([once(clients, 'message'), ended]);
  };
  await allRun();
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    const pid = Number(tlsServer.pid());
    process.kill(pid, signal);
    await expect.poll(() => [undefined, pid].includes(tlsServer.pid())).toBe(false);
    await allRun();
  }
});
