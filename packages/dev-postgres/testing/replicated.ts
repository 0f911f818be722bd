import { execFile } from 'node:child_process';
import { appendFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { type Cluster, prepareCluster, superuser } from '../src/cluster.ts';
import { type BareServer, launchBareServer, onServer } from './bare-server.ts';
import { copyTestCluster, createServerFolder, withSession } from './testing.ts';

/** A primary and its streaming standby. */
export type ReplicatedServers = Awaited<ReturnType<typeof startReplicatedServers>>;

/** The name of the standby for `synchronous_standby_names`. */
export const standbyName = 'standby';

const settings = { shared_buffers: '64MB' };

/**
 * Starts a primary and a standby that streams from it, in separate folders. Both are removed however this process ends.
 */
export async function startReplicatedServers() {
  const folders = [await createServerFolder(), await createServerFolder()] as const;
  const [primaryFolder, standbyFolder] = folders;
  /** Stops both servers and removes their folders. */
  const close = () => Promise.all(folders.map(({ remove }) => remove())).then(() => {});
  try {
    await copyTestCluster(primaryFolder.dataDir);
    const cluster = await prepareCluster(primaryFolder.dataDir);
    const primary = await launchBareServer(cluster, settings);
    await onServer(primary, 'create database gateway template template0');
    const standbyCluster = await copyAsStandby(cluster, primary, standbyFolder.dataDir);
    const standby = await launchBareServer(standbyCluster, settings);
    await waitFor(primary, "select from pg_stat_replication where state = 'streaming'");
    const hosts = [primary, standby].map(({ port }) => `127.0.0.1:${port}`).join(',');
    /** Lists both hosts, the primary first, and requires a host that accepts writes. */
    const url = `postgres://${superuser}:${cluster.password}@${hosts}/gateway?target_session_attrs=read-write`;
    return { primary, standby, url, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Starts a standby of a server in `dataDir`, in a folder that is removed however this process ends. Resolves when it
 * streams. `close` stops it.
 */
export async function startStandbyOf(primary: { readonly url: string; readonly dataDir: string }) {
  const { dataDir, remove } = await createServerFolder();
  const { url } = primary;
  const cluster = await copyAsStandby(
    await prepareCluster(primary.dataDir),
    { url, port: Number(new URL(url).port) },
    dataDir,
  );
  const standby = await launchBareServer(cluster, settings);
  await waitFor(primary, "select from pg_stat_replication where state = 'streaming'");
  return { url: standby.url, close: remove };
}

/** Makes a base backup with the low-level API (PostgreSQL 18, 25.3.4), because the npm package has no pg_basebackup. */
async function copyAsStandby(
  cluster: Cluster,
  primary: Pick<BareServer, 'url' | 'port'>,
  dataDir: string,
): Promise<Cluster> {
  return withSession(primary.url, async (session) => {
    await session`select pg_backup_start('standby', true)`;
    await mkdir(dataDir, { recursive: true });
    await promisify(execFile)('cp', ['-Rp', cluster.folder, dataDir]);
    const copy = await prepareCluster(dataDir, cluster);
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

async function waitFor(server: Pick<BareServer, 'url'>, query: string): Promise<void> {
  const giveUpAt = performance.now() + 30_000;
  while ((await onServer(server, query)).length === 0) {
    if (performance.now() > giveUpAt) throw new Error(`still false after 30 s: ${query}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
