import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { prepareCluster } from '../src/cluster.ts';
import type { Programs } from '../src/programs.ts';
import { type BareServer, launchBareServer, onServer } from './bare-server.ts';
import { createServerFolder, withSession } from './testing.ts';

/** A coordinator and its workers. */
export type CitusCluster = Awaited<ReturnType<typeof startCitusCluster>>;

export interface CitusOptions {
  /** The number of workers; 2 by default. */
  readonly workers?: number | undefined;
  /** The `max_connections` of each worker; 200 by default, as of the coordinator. */
  readonly workerConnectionsMax?: number | undefined;
  /** The port of the coordinator. The workers use the ports that follow it. Free ports by default. */
  readonly port?: number | undefined;
  /** Prepares the coordinator while it is the only server, given the URL for a superuser. */
  readonly prepare?: ((url: string) => Promise<void>) | undefined;
  /** The roles, besides the superuser, as which the servers connect to each other. Their names are their passwords. */
  readonly roles?: readonly string[] | undefined;
}

/** The `pg_config` of the PostgreSQL that Citus was built for: `PG_CONFIG`, or the one in the PATH. */
export const pgConfig = process.env.PG_CONFIG ?? 'pg_config';

/**
 * `wal_level` and `max_prepared_transactions` are those of docs/scaling.md. A transaction on several workers commits in
 * two phases, so it is prepared.
 */
const nodeSettings = {
  shared_buffers: '256MB',
  max_connections: '200',
  max_prepared_transactions: '200',
  wal_level: 'logical',
};

/** Returns why no cluster can run on this machine, or `undefined`. */
export function missingCitus(): string | undefined {
  const programs = findCitus();
  return typeof programs === 'string' ? programs : undefined;
}

/** Returns the programs of the PostgreSQL that has Citus, or why there are none. */
function findCitus(): Programs | string {
  try {
    const output = execFileSync(pgConfig, ['--bindir', '--pkglibdir'], { encoding: 'utf8', stdio: 'pipe' });
    const [bin = '', lib = ''] = output.trim().split('\n');
    const programs = { initdb: join(bin, 'initdb'), pg_ctl: join(bin, 'pg_ctl') };
    return existsSync(join(lib, 'citus.so')) ? programs : `Citus is not installed in ${lib}`;
  } catch {
    return `${pgConfig} is not installed`;
  }
}

/**
 * Starts the servers of a Citus cluster with an empty database, on 127.0.0.1. `close` removes them, and so does any end
 * of this process. A server that exits is not restarted.
 */
export async function startCitusCluster({
  workers: count = 2,
  workerConnectionsMax,
  port,
  prepare,
  roles = [],
}: CitusOptions = {}) {
  const programs = findCitus();
  if (typeof programs === 'string') throw new Error(programs);
  const password = randomBytes(24).toString('base64url');
  const folders: Awaited<ReturnType<typeof createServerFolder>>[] = [];
  const nodes: BareServer[] = [];
  /** Stops all servers and removes their folders. */
  const close = async () => {
    // A suspended process does not react to the signal that ends it.
    for (const node of nodes) node.resume();
    await Promise.all(folders.map(({ remove }) => remove()));
  };
  const start = async (settings: Readonly<Record<string, string>>, port?: number) => {
    const folder = await createServerFolder();
    folders.push(folder);
    const cluster = await prepareCluster(folder.dataDir, { programs, password });
    const server = await launchBareServer(cluster, { ...nodeSettings, ...settings }, port);
    nodes.push(server);
    await onServer(server, 'create database gateway template template0');
    return server;
  };
  const startNode = async (index: number) => {
    const settings = {
      shared_preload_libraries: 'citus',
      'citus.local_hostname': '127.0.0.1',
      ...(index > 0 && workerConnectionsMax !== undefined && { max_connections: String(workerConnectionsMax) }),
    };
    const node = await start(settings, port && port + index);
    await withSession(node.url, async (session) => {
      await session`create extension citus`;
      // Nodes use this password to connect to each other.
      await session`insert into pg_dist_authinfo values (0, 'postgres', ${`password=${password}`})`;
      // PostgreSQL has had this setting since its releases of August 2026.
      const [plugins] = await session`select from pg_settings where name = 'output_plugin_libraries'`;
      if (plugins) await session`alter system set output_plugin_libraries = 'pgoutput', 'test_decoding', 'citus'`;
      await session`select pg_reload_conf()`;
    });
    return node;
  };
  try {
    const [coordinator, ...workers] = await Promise.all([
      startNode(0),
      ...Array.from({ length: count }, (_, index) => startNode(index + 1)),
    ]);
    await prepare?.(coordinator.url);
    await withSession(coordinator.url, async (session) => {
      await session`select citus_set_coordinator_host('127.0.0.1', ${coordinator.port})`;
      for (const { port } of workers) await session`select citus_add_node('127.0.0.1', ${port})`;
    });
    for (const { url } of nodes) {
      await withSession(url, async (session) => {
        for (const role of roles)
          await session`insert into pg_dist_authinfo values (0, ${role}, ${`password=${role}`})`;
      });
    }
    return {
      coordinator,
      workers,
      close,
      /** The URL of the coordinator's database for a gateway. */
      url: coordinator.url,
      /** Starts a server with the same settings but without Citus, for comparison. */
      startWithoutCitus: () => start({}),
    };
  } catch (error) {
    await close();
    throw error;
  }
}
