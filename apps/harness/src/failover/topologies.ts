import { execFileSync } from 'node:child_process';
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@order-gateway/dev-postgres';
import {
  type ReplicatedServers,
  standbyName,
  startReplicatedServers,
} from '@order-gateway/dev-postgres/testing/replicated';
import { enableTls } from '@order-gateway/postgres/testing/enable-tls';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { type SelfSigned, selfSigned } from '@order-gateway/postgres/testing/self-signed';
import { documentedConfig, startProgram } from './programs.ts';

/** The faults of a primary: its processes are killed, it shuts down, or its processes are suspended. */
export const faults = ['kill', 'stop', 'hang'] as const;
export type Fault = (typeof faults)[number];

/** A primary, its standby and the proxies in front of them. */
export interface Topology {
  /** The URL with which the gateways connect, over TLS. */
  readonly databaseUrl: string;
  /** The URL parameters with which a connection verifies the certificate, which is valid for 127.0.0.1. */
  readonly tlsQuery: string;
  readonly certificate: SelfSigned;
  /** The URL of the original primary, without TLS. */
  readonly primaryUrl: string;
  /** The URL of the server that is promoted, without TLS. */
  readonly standbyUrl: string;
  /**
   * Ends or suspends the primary, and promotes the standby `promotedAfterMs` later. Resolves when the standby has
   * become the primary. With Patroni, `promotedAfterMs` has no effect, because Patroni promotes the standby itself.
   */
  failOver(fault: Fault, promotedAfterMs: number): Promise<void>;
}

/**
 * Starts a primary and its standby. The URL with which the gateways connect lists both. `cleanup` stops both servers
 * and removes their data.
 */
export async function startDirect(cleanup: AsyncDisposableStack): Promise<Topology> {
  const servers = await startReplicatedServers();
  cleanup.defer(servers.close);
  const { primary, standby, url } = servers;
  await makeStandbySynchronous(servers);
  const certificate = selfSigned('127.0.0.1');
  const tlsQuery = await enableTls(primary.url, certificate);
  await enableTls(standby.url, certificate);
  return {
    databaseUrl: `${url}&${tlsQuery}`,
    tlsQuery,
    certificate,
    primaryUrl: primary.url,
    standbyUrl: standby.url,
    async failOver(fault, promotedAfterMs) {
      if (fault === 'stop') await primary.stop();
      else primary[fault]();
      await sleep(promotedAfterMs);
      await standby.promote();
    },
  };
}

/** Starts the servers of {@link startDirect} and, in front of them, HAProxy with deploy/failover/haproxy.cfg. */
export async function startBehindHaproxy(cleanup: AsyncDisposableStack): Promise<Topology> {
  const direct = await startDirect(cleanup);
  const folder = await createReadableFolder(cleanup);
  const [first, second] = [direct.primaryUrl, direct.standbyUrl].map((url) => new URL(url).host);
  await runQuery(direct.primaryUrl, "create role haproxy login password 'haproxy'");
  const file = (name: string) => join(folder, name);
  await writeFile(file('pgpass'), '*:*:*:haproxy:haproxy\n', { mode: 0o600 });
  const script = await documentedConfig('is-primary.sh', { '/etc/haproxy/pgpass': file('pgpass') });
  await writeFile(file('is-primary.sh'), script, { mode: 0o755 });
  const port = await freePort(undefined);
  const config = await documentedConfig('haproxy.cfg', {
    '10.0.0.10:5000': `127.0.0.1:${port}`,
    '10.0.0.1:5432': first ?? '',
    '10.0.0.2:5432': second ?? '',
    '/etc/haproxy/is-primary.sh': file('is-primary.sh'),
  });
  await writeFile(file('haproxy.cfg'), config);
  const command = ['haproxy', '-db', '-f', file('haproxy.cfg')];
  await startProgram(cleanup, command, { ports: [port], logFile: file('haproxy.log') });
  return { ...direct, databaseUrl: `${withPort(direct.primaryUrl, port)}?${direct.tlsQuery}` };
}

/** Starts PgBouncer with deploy/failover/pgbouncer.ini in front of {@link startBehindHaproxy}. */
export async function startBehindPgbouncer(cleanup: AsyncDisposableStack): Promise<Topology> {
  const haproxy = await startBehindHaproxy(cleanup);
  const folder = await createReadableFolder(cleanup);
  const { username, password, port: haproxyPort } = new URL(haproxy.databaseUrl);
  const file = (name: string) => join(folder, name);
  await writeFile(file('userlist.txt'), `"${username}" "${decodeURIComponent(password)}"\n`);
  const ids = postgresUser();
  await writeFile(file('root.crt'), haproxy.certificate.cert);
  await writeFile(file('server.key'), haproxy.certificate.key, { mode: 0o600 });
  if (ids.uid !== undefined && ids.gid !== undefined) await chown(file('server.key'), ids.uid, ids.gid);
  const port = await freePort(undefined);
  const config = await documentedConfig('pgbouncer.ini', {
    'host=10.0.0.10 port=5000': `host=127.0.0.1 port=${haproxyPort}`,
    '10.0.0.11': '127.0.0.1',
    'listen_port = 6432': `listen_port = ${port}\nunix_socket_dir =`,
    '/etc/pgbouncer/userlist.txt': file('userlist.txt'),
    '/etc/pgbouncer/root.crt': file('root.crt'),
    '/etc/pgbouncer/server.crt': file('root.crt'),
    '/etc/pgbouncer/server.key': file('server.key'),
  });
  await writeFile(file('pgbouncer.ini'), config);
  const options = { ports: [port], logFile: file('pgbouncer.log'), ids };
  await startProgram(cleanup, ['pgbouncer', file('pgbouncer.ini')], options);
  return { ...haproxy, databaseUrl: withPort(haproxy.databaseUrl, port) };
}

/** Makes the standby synchronous and waits until it is, so that a failover loses nothing. */
async function makeStandbySynchronous({ primary }: ReplicatedServers): Promise<void> {
  await runQuery(primary.url, `alter system set synchronous_standby_names = '${standbyName}'`);
  await runQuery(primary.url, 'select pg_reload_conf()');
  const isSynchronous = "select from pg_stat_replication where sync_state = 'sync'";
  while ((await runQuery(primary.url, isSynchronous)).length === 0) await sleep(50);
}

/** Creates a folder that programs of other users can read. `cleanup` removes it. */
export async function createReadableFolder(cleanup: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'failover-drill-'));
  cleanup.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o755);
  return folder;
}

/**
 * Returns the ids of `postgres` if this process is root, for programs that refuse to run as root. Otherwise returns
 * none.
 */
export function postgresUser(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const idOf = (option: string) => Number(execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }));
  return { uid: idOf('-u'), gid: idOf('-g') };
}

/** Returns the URL with its host and port replaced by 127.0.0.1 and `port`. */
export function withPort(url: string, port: number): string {
  return Object.assign(new URL(url), { host: `127.0.0.1:${port}` }).href;
}
