import { readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ClusterPlaces,
  giveTo,
  lastPort,
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
import { DatabaseFault } from './errors.ts';

// A start takes under a second, crash recovery of a busy server some seconds.
const startLimitMs = 30_000;
const pollMs = 50;
// Postgres needs a moment to notice that a killed server's last processes are gone; there is no hurry to try again.
const relaunchPauseMs = 250;

// The last try follows about a minute after the first: a disk may be full for a moment, or memory short.
const usualRestartPausesMs = [0, 1_000, 5_000, 15_000, 30_000];
// How soon a server that was told to stop from outside is helped to do so.
const watchEveryMs = 1_000;

/** Failures to start that another starter, or the rest of a killed server, causes: they pass. */
const passingFailure = /lock file|shared memory block|address already in use/i;

export type EmbeddedPostgresOptions = {
  /** A folder for the data and the log; made when missing. One server per folder. */
  dataDir: string;
  /** Gets a line for each thing done; never the password. */
  log?: (line: string) => void;
  /** For data that nobody will miss: makes the cluster without waiting for the disk. The server itself is the same. */
  throwAway?: boolean;
  /** Told when the server went away although nobody stopped it, and what came of it. Must not throw. */
  onOutage?: (outage: Outage) => void;
  /** How long to wait before each try to have a lost server again. */
  restartPausesMs?: readonly number[];
};

/** `lost` comes first, and then one of the others. After `given_up` this user does not try any more. */
export type Outage = { kind: 'lost' } | { kind: 'restarted'; pid: number } | { kind: 'given_up'; fault: DatabaseFault };

export type EmbeddedPostgres = {
  /** A `postgres://` URL with host, port, user, password and database. */
  url: string;
  /** True when the server was already running, false when this call launched it. */
  joined: boolean;
  /** The pid of the postmaster; another one after a restart. */
  readonly pid: number;
  /**
   * Ends this use. The last user out stops the server: while anyone else is connected, be it another user of this
   * module or any client, it stays up. `disconnectOthers` stops it all the same, and other users of this module start it
   * again. Close your own pools first. Calling it again changes nothing. Rejects when the server does not stop within
   * 15 s. A restart under way is waited for.
   */
  stop(options?: { disconnectOthers?: boolean }): Promise<void>;
};

/** A server that runs, with our mark on it. */
type Server = { mark: Mark; pid: number; port: number; joined: boolean };

/**
 * Starts the PostgreSQL that npm brought on the cluster in `dataDir`, or joins it when it already runs: for this, for
 * any other process. The cluster is made at the first start. The server listens on 127.0.0.1 on a free port, and lives
 * on when this process is killed; the next starter joins it. When it is killed itself, its users start it again on the
 * same port: Postgres lets one of them do so, and the others join.
 *
 * Each user keeps one small connection open as its mark, so this process does not end by itself before `stop()`.
 * Rejects with one sentence, after 30 s at most (a minute more when the cluster has to be made).
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log = () => {}, onOutage = () => {}, restartPausesMs = usualRestartPausesMs } = options;
  const places = await openPlaces(options.dataDir);
  const password = await openCluster(places, options.throwAway !== true, log);
  const leaving = new AbortController();
  let restarting: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;

  async function join(port?: number): Promise<Server> {
    const onGone = () => {
      restarting = restart();
    };
    const found = await startOrJoin({ places, password, port, leaving: leaving.signal, onGone });
    log(`${found.joined ? 'joined' : 'started'} PostgreSQL on 127.0.0.1:${found.port}, pid ${found.pid}`);
    return found;
  }

  async function restart(): Promise<void> {
    onOutage({ kind: 'lost' });
    await server.mark.session.end({ timeout: 0 });
    let fault = new DatabaseFault();
    for (const pauseMs of restartPausesMs) {
      await sleep(pauseMs, undefined, { signal: leaving.signal }).catch(() => {});
      const found = await join(server.port).catch((error: Error) => new DatabaseFault(error.message));
      if (!(found instanceof DatabaseFault)) {
        server = found;
        return onOutage({ kind: 'restarted', pid: found.pid });
      }
      if (leaving.signal.aborted) return;
      fault = found;
    }
    onOutage({ kind: 'given_up', fault });
  }

  async function stop(disconnectOthers: boolean): Promise<void> {
    clearInterval(watch);
    leaving.abort();
    server.mark.beginLeaving();
    await restarting;
    await leave(server, places.cluster, disconnectOthers);
  }

  let server = await join();
  const watch = setInterval(() => hastenShutdown(server.pid, places.cluster), watchEveryMs).unref();
  return {
    url: `postgres://${superuser}:${password}@127.0.0.1:${server.port}/${databaseName}`,
    joined: server.joined,
    get pid() {
      return server.pid;
    },
    stop: (stopOptions) => {
      stopped ??= stop(stopOptions?.disconnectOthers === true);
      return stopped;
    },
  };
}

/** Rejects when there is no server after 30 s, none on the given port, or at once when `leaving` and it has launched none. */
async function startOrJoin(wanted: {
  places: ClusterPlaces;
  password: string;
  /** Undefined: any. */
  port: number | undefined;
  leaving: AbortSignal;
  onGone: () => void;
}): Promise<Server> {
  const { places, password, port, leaving, onGone } = wanted;
  const giveUpAt = performance.now() + startLimitMs;
  let launched: LaunchedServer | undefined;
  let obstacle = '';
  while (performance.now() < giveUpAt) {
    const mayLaunch = launched === undefined || launched.exitCode !== undefined;
    if (mayLaunch) leaving.throwIfAborted();
    const server = runningServer(places.cluster);
    if (server?.ready) {
      if (port !== undefined && server.port !== port)
        throw new Error(`The embedded PostgreSQL runs on port ${server.port} now, as ${port} was taken.`);
      const isThere = () => runsCluster(server.pid, places.cluster);
      const mark = await takeMark(server.port, password, { isThere, onGone });
      if (mark.kind === 'taken')
        return { mark, pid: server.pid, port: server.port, joined: server.pid !== launched?.pid };
      obstacle = mark.reason; // Often it stops at this very moment: the next round finds out.
    } else if (server === undefined && mayLaunch) {
      if (launched !== undefined) await pauseAfterPassingFailure(launched);
      launched = await launch(places, port);
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

async function launch(places: ClusterPlaces, port: number | undefined): Promise<LaunchedServer> {
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
    // The last one again where it can be had: users of a server that was killed have pools that look for it there.
    port: port ?? (await freePort(await lastPort(places.cluster))),
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

/** The preferred port, or any that is free now. Should another program take it first, Postgres says so and the launch is repeated. */
function freePort(preferred = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error) => (preferred === 0 ? reject(error) : resolve(freePort())));
    probe.listen(preferred, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}

/** SIGTERM has a server turn new clients away and wait for the others to go. Its users stay, so it is told to cut them off. */
function hastenShutdown(pid: number, cluster: string): void {
  try {
    const lockFile = readLockFile(cluster);
    if (lockFile?.stopping && lockFile.pid === pid && runsCluster(pid, cluster)) process.kill(pid, 'SIGINT');
  } catch {
    // It is gone by now, which the mark tells, or is looked at again in a second.
  }
}

async function leave({ mark, pid }: Server, cluster: string, disconnectOthers: boolean): Promise<void> {
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
