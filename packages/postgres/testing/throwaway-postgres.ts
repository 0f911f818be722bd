import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { placesIn, readLockFile } from '../src/embedded-cluster.ts';
import { startEmbeddedPostgres } from '../src/embedded-postgres.ts';
import { runsCluster } from '../src/embedded-process.ts';

// A killed server is gone within milliseconds; the exit of a test run waits no longer than this.
const exitLimitMs = 2_000;
const exitPollMs = 10;
// A database is copied from a template of some megabytes: a fraction of a second.
const createDatabaseLimitMs = 20_000;

export type ThrowawayPostgres = {
  /** A `postgres://` URL of the first, empty database. */
  url: string;
  /** Makes an empty database and returns its URL. It goes when the server goes. */
  createDatabase(): Promise<string>;
  /** Stops the server, whoever is still connected, and removes its folder. Calling it again changes nothing. */
  stop(): Promise<void>;
};

/**
 * Starts an embedded PostgreSQL of its own in a fresh temporary folder, with the settings of the real one, fsync
 * included. When the process ends without `stop()`, server and folder go at its exit; when it is killed, at the next
 * call of this function on the machine.
 */
export async function startThrowawayPostgres(): Promise<ThrowawayPostgres> {
  await removeLeftovers();
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), `${folderPrefix()}${process.pid}-`)));
  const onExit = () => removeNow(dataDir);
  process.once('exit', onExit);
  const server = await startEmbeddedPostgres({ dataDir, throwAway: true });

  let stopped: Promise<void> | undefined;
  async function stop(): Promise<void> {
    await server.stop({ disconnectOthers: true });
    await rm(dataDir, { recursive: true, force: true });
    process.off('exit', onExit);
  }
  return {
    url: server.url,
    createDatabase: () => createDatabase(server.url),
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

async function createDatabase(serverUrl: string): Promise<string> {
  const name = `test_${randomBytes(8).toString('hex')}`;
  const session = postgres(serverUrl, {
    ...{ max: 1, fetch_types: false, connect_timeout: createDatabaseLimitMs / 1_000 },
    connection: { statement_timeout: createDatabaseLimitMs },
  });
  try {
    await session`create database ${session(name)} template template0`;
  } finally {
    await session.end({ timeout: 1 });
  }
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** Folder names carry host and pid, so that only what a dead process of this machine left is taken for left. */
function folderPrefix(): string {
  return `gateway-postgres-${hostname()}-`;
}

async function removeLeftovers(): Promise<void> {
  const prefix = folderPrefix();
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(prefix)) continue;
    const pid = Number(name.slice(prefix.length).split('-')[0]);
    if (Number.isInteger(pid) && !isAlive(pid)) removeNow(join(await realpath(tmpdir()), name));
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives and is another user's.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Stops the server in a folder and removes the folder, without a turn of the event loop, as the `exit` event demands. */
function removeNow(dataDir: string): void {
  try {
    const { cluster } = placesIn(dataDir);
    const pid = readLockFile(cluster)?.pid;
    if (pid !== undefined && runsCluster(pid, cluster)) {
      process.kill(pid, 'SIGQUIT');
      const giveUpAt = performance.now() + exitLimitMs;
      const never = new Int32Array(new SharedArrayBuffer(4));
      while (runsCluster(pid, cluster) && performance.now() < giveUpAt) Atomics.wait(never, 0, 0, exitPollMs);
    }
    rmSync(dataDir, { recursive: true, force: true });
  } catch {
    // Another user's, or another call removes it right now: either way not ours to remove.
  }
}
