import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ClusterPlaces,
  giveTo,
  openCluster,
  openPlaces,
  readLockFile,
  removeEmptyLockFile,
  superuser,
} from './embedded-cluster.ts';
import { databaseName, isLastUser, type Mark, takeMark } from './embedded-mark.ts';
import {
  chooseServerUser,
  failure,
  type LaunchedServer,
  launchServer,
  majorVersion,
  platformBinaries,
  readTail,
  runsCluster,
  shutDown,
} from './embedded-process.ts';

// A start takes under a second, crash recovery of a busy server some seconds.
const startLimitMs = 30_000;
const pollMs = 50;
// Postgres needs a moment to notice that a killed server's last processes are gone; there is no hurry to try again.
const relaunchPauseMs = 250;

/** Failures to start that another starter, or the rest of a killed server, causes: they pass. */
const passingFailure = /lock file|shared memory block|address already in use/i;

export type EmbeddedPostgresOptions = {
  /** A folder for the data and the log; made when missing. One server per folder. */
  dataDir: string;
  /** Gets a line for each thing done; never the password. */
  log?: (line: string) => void;
  /** For data that nobody will miss: makes the cluster without waiting for the disk. The server itself is the same. */
  throwAway?: boolean;
};

export type EmbeddedPostgres = {
  /** A `postgres://` URL with host, port, user, password and database. */
  url: string;
  /** True when the server was already running, false when this call launched it. */
  joined: boolean;
  /** The pid of the postmaster. */
  pid: number;
  /**
   * Ends this use. The last user out stops the server: while anyone else is connected, be it another user of this
   * module or any client, it stays up. `disconnectOthers` stops it all the same. Close your own pools first. Calling it
   * again changes nothing. Rejects when the server does not stop within 15 s.
   */
  stop(options?: { disconnectOthers?: boolean }): Promise<void>;
};

/**
 * Starts the PostgreSQL that npm brought on the cluster in `dataDir`, or joins it when it already runs: for this, for
 * any other process. The cluster is made at the first start. The server listens on 127.0.0.1 on a free port, and lives
 * on when this process is killed; the next starter joins it.
 *
 * Each user keeps one small connection open as its mark, so this process does not end by itself before `stop()`.
 * Rejects with one sentence, after 30 s at most (a minute more when the cluster has to be made).
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const log = options.log ?? (() => {});
  const places = await openPlaces(options.dataDir);
  const password = await openCluster(places, options.throwAway !== true, log);

  const giveUpAt = performance.now() + startLimitMs;
  let launched: LaunchedServer | undefined;
  let obstacle = '';
  while (performance.now() < giveUpAt) {
    const server = runningServer(places.cluster);
    if (server?.ready) {
      const mark = await takeMark(server.port, password, () => runsCluster(server.pid, places.cluster));
      if (mark.kind === 'taken') {
        const joined = server.pid !== launched?.pid;
        log(`${joined ? 'joined' : 'started'} PostgreSQL on 127.0.0.1:${server.port}, pid ${server.pid}`);
        const url = `postgres://${superuser}:${password}@127.0.0.1:${server.port}/${databaseName}`;
        return { url, joined, pid: server.pid, stop: stopper(mark, server.pid, places.cluster) };
      }
      obstacle = mark.reason; // Often it stops at this very moment: the next round finds out.
    } else if (server === undefined && (launched === undefined || launched.exitCode !== undefined)) {
      if (launched !== undefined) await pauseAfterPassingFailure(launched);
      launched = await launch(places);
    }
    await sleep(pollMs);
  }
  const said = await readTail(places.log, 0).catch(() => '');
  throw failure(`not ready within ${startLimitMs / 1_000} s, see ${places.log}`, `${said.trim()}\n${obstacle}`);
}

/** The server that runs on a cluster, if one does: a left-over lock file does not count. */
function runningServer(cluster: string) {
  const lockFile = readLockFile(cluster);
  return lockFile !== undefined && runsCluster(lockFile.pid, cluster) ? lockFile : undefined;
}

/** Throws when trying once more would fail in the same way. */
async function pauseAfterPassingFailure(launched: LaunchedServer): Promise<void> {
  // It ran and was stopped, by the last other user's `stop()`.
  if (launched.exitCode === 0) return;
  const said = await launched.logTail();
  if (!passingFailure.test(said)) throw failure('it did not start', said);
  await sleep(relaunchPauseMs);
}

async function launch(places: ClusterPlaces): Promise<LaunchedServer> {
  const binaries = await platformBinaries();
  const user = await chooseServerUser(places.folder);
  await giveTo(user, places.folder);
  const [ours, theirs] = await Promise.all([
    majorVersion(user, binaries.postgres),
    readFile(join(places.cluster, 'PG_VERSION'), 'utf8'),
  ]);
  if (ours !== theirs.trim()) {
    throw new Error(
      `The data in ${places.folder} was made by PostgreSQL ${theirs.trim()} and this is PostgreSQL ${ours}: ` +
        'dump and restore it, or set DATA_DIR to another folder.',
    );
  }
  await removeEmptyLockFile(places.cluster);
  const left = readLockFile(places.cluster);
  const stalePid = left !== undefined && !runsCluster(left.pid, places.cluster) ? left.pid : undefined;
  const settings = {
    listen_addresses: '127.0.0.1',
    port: await freePort(),
    unix_socket_directories: '',
    max_connections: 100,
    fsync: 'on',
    synchronous_commit: 'on',
    // Orders come with random tokens, so that every checkpoint is followed by a time in which pages are logged whole: few of
    // them, and the indexes of some million orders in memory. Neither takes memory or disk before there are orders.
    shared_buffers: '512MB',
    max_wal_size: '4GB',
    checkpoint_timeout: '15min',
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Customers' data stays out of the log: neither the text of failed statements nor the values that break a key.
    log_min_error_statement: 'panic',
    log_error_verbosity: 'terse',
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return launchServer(user, binaries.postgres, ['-D', places.cluster, ...args], places.log, stalePid);
}

/** A port that is free now. Should another program take it first, Postgres says so and the launch is repeated. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

function stopper(mark: Mark, pid: number, cluster: string): EmbeddedPostgres['stop'] {
  let stopped: Promise<void> | undefined;
  async function stop(disconnectOthers: boolean): Promise<void> {
    mark.beginLeaving();
    try {
      if (!runsCluster(pid, cluster)) return;
      if (disconnectOthers || (await isLastUser(mark.session))) await shutDown(pid, cluster);
    } catch (error) {
      // A server that went away by itself meanwhile is what was wanted.
      if (runsCluster(pid, cluster)) throw error;
    } finally {
      await mark.session.end({ timeout: 0 });
    }
  }
  return (options) => {
    stopped ??= stop(options?.disconnectOthers === true);
    return stopped;
  };
}
