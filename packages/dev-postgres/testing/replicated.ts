import { execFile } from 'node:child_process';
import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { type Cluster, launchServer, openCluster, runningServer, stopServer, superuser } from '../src/cluster.ts';
import { freePort, usualSettings } from '../src/dev-postgres.ts';
import { childrenOf } from './processes.ts';
import { copyTestCluster, openServerFolder, withSession } from './testing.ts';

/** A server that is not restarted when it exits. */
type BareServer = Awaited<ReturnType<typeof launch>>;

/** A primary and its streaming standby. */
export type ReplicatedServers = Awaited<ReturnType<typeof startReplicatedServers>>;

/** The name of the standby for `synchronous_standby_names`. */
export const standbyName = 'standby';

/** Starts a primary and a standby that streams from it, in separate folders. Both are removed however this process ends. */
export async function startReplicatedServers() {
  const folders = [await openServerFolder(), await openServerFolder()] as const;
  const [primaryFolder, standbyFolder] = folders;
  /** Ends both and removes their folders. */
  const close = () => Promise.all(folders.map(({ remove }) => remove())).then(() => {});
  try {
    await copyTestCluster(primaryFolder.dataDir);
    const cluster = await openCluster(primaryFolder.dataDir);
    const primary = await launch(cluster);
    await onServer(primary, 'create database gateway template template0');
    const standbyCluster = await copyAsStandby(cluster, primary, standbyFolder.dataDir);
    const standby = await launch(standbyCluster);
    await waitFor(primary, "select from pg_stat_replication where state = 'streaming'");
    const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`).join(',');
    /** Names both hosts, the primary first, and requires one that accepts writes. */
    const url = `postgres://${superuser}:${cluster.password}@${hosts}/gateway?target_session_attrs=read-write`;
    return { primary, standby, url, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function launch(cluster: Cluster) {
  const port = await freePort(undefined);
  await launchServer(cluster, { ...usualSettings, shared_buffers: '64MB', port: String(port) });
  const { pid } = runningServer(cluster) ?? { pid: 0 };
  const url = `postgres://${superuser}:${cluster.password}@127.0.0.1:${port}/gateway`;
  return {
    port,
    url,
    /** Ends all its processes at the same time, like a power failure. */
    kill: () => signalServer(pid, 'SIGKILL'),
    /** Stops it gracefully despite open connections. */
    stop: () => stopServer(cluster),
    /** Suspends all its processes; its sockets stay open. Then only `kill` ends them. */
    hang: () => signalServer(pid, 'SIGSTOP'),
    /** Makes a standby the primary. Resolves when it accepts writes. */
    promote: async () => void (await onServer({ url }, 'select pg_promote(true, 30)')),
  };
}

/** A base backup by the low-level API (PostgreSQL 18, 25.3.4): the npm package has no pg_basebackup. */
async function copyAsStandby(cluster: Cluster, primary: BareServer, dataDir: string): Promise<Cluster> {
  return withSession(primary.url, async (session) => {
    await session`select pg_backup_start('standby', true)`;
    await mkdir(dataDir, { recursive: true });
    await promisify(execFile)('cp', ['-Rp', cluster.folder, dataDir]);
    const copy = await openCluster(dataDir);
    const [backup] = await session`select labelfile from pg_backup_stop(false)`;
    await rm(`${copy.data}/postmaster.pid`);
    await rm(`${copy.data}/postmaster.opts`);
    await writeFile(`${copy.data}/backup_label`, String(backup?.labelfile));
    await writeFile(`${copy.data}/standby.signal`, '');
    const source = `host=127.0.0.1 port=${primary.port} user=${superuser} password=${cluster.password}`;
    const conninfo = `${source} application_name=${standbyName}`;
    await appendFile(`${copy.data}/postgresql.auto.conf`, `primary_conninfo = '${conninfo}'\n`);
    return copy;
  });
}

function onServer({ url }: Pick<BareServer, 'url'>, statement: string): Promise<readonly object[]> {
  return withSession(url.replace(/gateway$/, 'postgres'), (session) => session.unsafe(statement));
}

async function waitFor(server: BareServer, query: string): Promise<void> {
  const giveUpAt = performance.now() + 30_000;
  while ((await onServer(server, query)).length === 0) {
    if (performance.now() > giveUpAt) throw new Error(`still false after 30 s: ${query}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Signals a server and all its processes. */
export function signalServer(pid: number, signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT'): void {
  // Suspended first, so that it starts no further processes.
  trySignal(pid, 'SIGSTOP');
  for (const one of [pid, ...childrenOf(pid)]) trySignal(one, signal);
}

/** Signals a process, unless it has ended. */
export function trySignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}
