import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@order-gateway/dev-postgres';
import { enableTls } from '@order-gateway/postgres/testing/enable-tls';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { selfSigned } from '@order-gateway/postgres/testing/self-signed';
import { documentedConfig, startProgram } from './programs.ts';
import { createReadableFolder, type Fault, postgresUser, type Topology, withPort } from './topologies.ts';

const password = 'drill';

/**
 * The time limit for a node to reach its role, at its start or in a failover. A failover waits for the lease of a hung
 * primary (20 s) to end.
 */
const limitMs = 90_000;

/**
 * Starts two nodes of Patroni with Debian's PostgreSQL 15, etcd and HAProxy, with the files of deploy/failover.
 * `cleanup` stops them and removes their data.
 */
export async function startPatroni(cleanup: AsyncDisposableStack): Promise<Topology> {
  const folder = await createReadableFolder(cleanup);
  const ids = postgresUser();
  const nodes: Node[] = [];
  cleanup.defer(() => signalServers(nodes, 'SIGKILL'));
  // etcd starts first and therefore stops last, because Patroni needs etcd in order to stop.
  const start = (command: readonly string[], port: number) =>
    startProgram(cleanup, command, { ports: [port], logFile: join(folder, `${port}.log`), ids });
  const home = join(folder, 'home');
  await mkdir(home);
  execFileSync('chown', [`${ids.uid ?? process.getuid?.()}`, home]);
  const [clientPort, peerPort] = [await freePort(undefined), await freePort(undefined)];
  const [clientUrl, peerUrl] = [clientPort, peerPort].map((port) => `http://127.0.0.1:${port}`);
  const etcd = ['--listen-client-urls', `${clientUrl}`, '--advertise-client-urls', `${clientUrl}`];
  const peers = ['--listen-peer-urls', `${peerUrl}`, '--initial-advertise-peer-urls', `${peerUrl}`];
  const cluster = ['--initial-cluster', `default=${peerUrl}`, '--data-dir', join(home, 'etcd')];
  await start(['etcd', ...etcd, ...peers, ...cluster], clientPort);
  const startNode = async (name: string, role: 'primary' | 'synchronous') => {
    const node = { data: join(home, name), port: await freePort(undefined), rest: await freePort(undefined) };
    nodes.push(node);
    const file = join(folder, `${name}.yml`);
    await writeFile(file, await configOf(node, name, { clientPort, home }));
    const patroni = await start(['/usr/bin/patroni', file], node.rest);
    await until(() => hasRole(node, role));
    return { ...node, patroni };
  };
  const first = await startNode('first', 'primary');
  const certificate = selfSigned('127.0.0.1');
  // The second node gets the certificate with its base backup.
  const tlsQuery = await enableTls(superuserUrl(first.port, 'postgres'), certificate);
  const second = await startNode('second', 'synchronous');
  const port = await freePort(undefined);
  const haproxy = await documentedConfig('haproxy-patroni.cfg', {
    '10.0.0.10:5000': `127.0.0.1:${port}`,
    '10.0.0.1:5432 port 8008': `127.0.0.1:${first.port} port ${first.rest}`,
    '10.0.0.2:5432 port 8008': `127.0.0.1:${second.port} port ${second.rest}`,
  });
  await writeFile(join(folder, 'haproxy.cfg'), haproxy);
  await start(['haproxy', '-db', '-f', join(folder, 'haproxy.cfg')], port);
  const primaryUrl = superuserUrl(first.port, 'gateway');
  await runQuery(superuserUrl(first.port, 'postgres'), 'create database gateway template template0');
  cleanup.defer(() => signalServers(nodes, 'SIGCONT'));
  return {
    databaseUrl: `${withPort(primaryUrl, port)}?${tlsQuery}`,
    tlsQuery,
    certificate,
    primaryUrl,
    standbyUrl: withPort(primaryUrl, second.port),
    async failOver(fault: Fault) {
      if (fault === 'kill') signalServers([first], 'SIGKILL');
      else if (fault === 'hang') signalServers([first], 'SIGSTOP');
      // On SIGTERM, Patroni stops its server gracefully.
      else first.patroni.kill('SIGTERM');
      await until(() => hasRole(second, 'primary'));
    },
  };
}

function superuserUrl(port: number, database: string): string {
  return `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
}

/** A PostgreSQL server and the Patroni process that manages it. */
interface Node {
  readonly data: string;
  readonly port: number;
  /** The port of Patroni's REST API. */
  readonly rest: number;
}

async function configOf(
  { data, port, rest }: Node,
  name: string,
  { clientPort, home }: { clientPort: number; home: string },
) {
  return documentedConfig('patroni.yml', {
    'name: first': `name: ${name}`,
    '10.0.0.1:8008': `127.0.0.1:${rest}`,
    '10.0.0.20:2379': `127.0.0.1:${clientPort}`,
    '10.0.0.1:5432': `127.0.0.1:${port}`,
    '10.0.0.0/24': '127.0.0.1/32',
    '/var/lib/postgresql/15/orders': data,
    '/var/lib/postgresql/pgpass-first': join(home, `pgpass-${name}`),
    'SUPERUSER-PASSWORD': password,
    'REPLICATOR-PASSWORD': password,
    // PostgreSQL must not create a Unix socket outside the folder.
    'max_connections: 200': "max_connections: 200\n        unix_socket_directories: ''",
  });
}

/** Asks Patroni whether a node has a role. Returns false if Patroni does not respond. */
async function hasRole({ rest }: Node, role: 'primary' | 'synchronous'): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${rest}/${role}`).catch(() => undefined);
  return response?.status === 200;
}

async function until(isReached: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + limitMs;
  while (!(await isReached())) {
    if (performance.now() > giveUpAt) throw new Error(`Patroni did not reach the expected state within ${limitMs} ms`);
    await sleep(20);
  }
}

/**
 * Signals all processes of these servers. A process belongs to a server if its working directory is the server's data
 * folder.
 */
function signalServers(nodes: readonly Node[], signal: NodeJS.Signals): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const folder = readlinkSync(`/proc/${pid}/cwd`);
      if (nodes.some(({ data }) => data === folder)) process.kill(Number(pid), signal);
    } catch {
      // The process has ended or belongs to another user.
    }
  }
}
