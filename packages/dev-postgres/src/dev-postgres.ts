import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import {
  type Cluster,
  lastPort,
  launchServer,
  prepareCluster,
  runningServer,
  stopServer,
  superuser,
} from './cluster.ts';
import { createGatewayDatabase, gatewayPassword, gatewayRole } from './gateway-role.ts';

export { hasDatabase } from './cluster.ts';

/** The data folder of this working tree: the default of DATA_DIR. */
export const defaultDataDir = fileURLToPath(new URL('../../../.data', import.meta.url));

const databaseName = 'gateway';
// A start takes less than a second, and crash recovery several seconds. On a busy machine, creating the database alone
// can take more than 5 seconds.
const startLimitMs = 120_000;
const responseLimitMs = 5_000;
const pollMs = 50;
const retryMs = 1_000;
// A process that the server forked just before it died can hold the port briefly.
const portLimitMs = 10_000;
// An arbitrary number: nothing else takes advisory locks in the database `postgres`.
const usersLock = 5_432_001;

/**
 * Errors caused by a concurrent start or by the leftover processes of a killed server: the next attempt may succeed.
 */
export const transientError = /lock file|PID file|shared memory block|address already in use/i;

/** The settings with which a server is launched by default. A caller can override them. */
export const usualSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  // The indexes of several million orders fit in memory. Checkpoints are rare, because random tokens make each one
  // costly.
  shared_buffers: '512MB',
  max_wal_size: '4GB',
  checkpoint_timeout: '15min',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Keeps customers' data out of the log: the texts of failed statements and the values of violated keys.
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
};

export type DevPostgresOptions = {
  /** The folder for data and log, which is created if it is missing. */
  readonly dataDir: string;
  /**
   * A logger such as pino. It logs one line when the server exits unexpectedly, has been restarted, or fails to
   * restart.
   */
  readonly logger?: Record<'info' | 'error', (fields: object, message: string) => void> | undefined;
  /** Settings of PostgreSQL, without spaces, that override the defaults whenever this user launches the server. */
  readonly settings?: Readonly<Record<string, string>>;
};

export type DevPostgres = Awaited<ReturnType<typeof startDevPostgres>>;

/**
 * Starts the PostgreSQL that npm installed, on 127.0.0.1 and a free port, or shares the server that already runs on
 * this folder. If a process is killed, the server survives it, and the next start uses the server. A server that exits
 * unexpectedly is restarted, on the same port if that port becomes free in time, and a failed restart is retried. Each
 * user holds a shared advisory lock on a separate connection. A user that stops tries to take the lock exclusively: if
 * it succeeds, it was the last user, and it stops the server. Rejects with a one-line message if the server does not
 * start, or is not ready after two minutes.
 */
export async function startDevPostgres({ dataDir, logger, settings }: DevPostgresOptions) {
  const cluster = await prepareCluster(dataDir);
  const stopping = new AbortController();
  let restart = Promise.resolve();

  function join(onLaunch = () => {}, portWaitMs = 0) {
    const onLost = () => {
      if (!stopping.signal.aborted) restart = rejoin();
    };
    const launch = async () => {
      stopping.signal.throwIfAborted();
      onLaunch();
      // Prefers the last port, so that existing connection pools find the server again.
      const port = String(await freePort(await lastPort(cluster), portWaitMs));
      await launchServer(cluster, { ...usualSettings, ...settings, port });
    };
    return startOrJoin(cluster, launch, onLost);
  }

  async function rejoin(): Promise<void> {
    // This session is ended only after it has been replaced, because `leave` needs a session that can connect.
    const lostSession = session;
    let isReported = false;
    const onLaunch = () => {
      if (!isReported) logger?.error({}, 'embedded PostgreSQL exited, restarting');
      isReported = true;
    };
    while (!stopping.signal.aborted) {
      try {
        session = await join(onLaunch, portLimitMs);
        await lostSession.end({ timeout: 0 });
        if (session.options.port[0] !== port) logger?.error({}, 'embedded PostgreSQL runs on a different port');
        else if (isReported) logger?.info({}, 'embedded PostgreSQL restarted');
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        logger?.error({ reason: (error as Error).message }, 'embedded PostgreSQL did not restart');
        await sleep(retryMs, undefined, { signal: stopping.signal }).catch(() => {});
      }
    }
  }

  async function stop(): Promise<void> {
    stopping.abort();
    await restart;
    await leave(session, cluster);
  }

  let session = await join();
  const [port] = session.options.port;
  let stopped: Promise<void> | undefined;
  return {
    /** The URL for the role that owns the database. */
    url: databaseUrl(gatewayRole, gatewayPassword(cluster.password), port),
    /** The URL for the superuser, for tests. */
    superuserUrl: databaseUrl(superuser, cluster.password, port),
    /** Stops using the server. The last user stops the server despite other connections. */
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

function databaseUrl(user: string, password: string, port: number | undefined): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${databaseName}`;
}

async function startOrJoin(cluster: Cluster, launch: () => Promise<void>, onLost: () => void): Promise<postgres.Sql> {
  const giveUpAt = performance.now() + startLimitMs;
  for (;;) {
    const server = runningServer(cluster);
    try {
      if (server?.isReady) return await acquireLease(server.port, cluster.password, onLost);
      if (server === undefined) await launch();
    } catch (error) {
      // A running server that cannot be joined is stopping.
      const isTransient = server?.isReady || transientError.test(String(error));
      if (!isTransient || performance.now() > giveUpAt) throw error;
    }
    if (performance.now() > giveUpAt) throw new Error(`not ready after ${startLimitMs / 1_000} s, see ${cluster.log}`);
    await sleep(pollMs);
  }
}

/**
 * Connects and takes the shared lock. If the last user is stopping the server, this waits until the server has stopped,
 * and then fails.
 */
async function acquireLease(port: number, password: string, onLost: () => void): Promise<postgres.Sql> {
  let isHeld = false;
  const session = postgres({
    host: '127.0.0.1',
    port,
    user: superuser,
    password,
    database: 'postgres',
    ssl: false,
    max: 1,
    fetch_types: false,
    onnotice: () => {},
    connect_timeout: responseLimitMs / 1_000,
    // By default, the driver replaces connections after about an hour, which would lose the lock.
    max_lifetime: null,
    connection: { application_name: 'dev-postgres user', statement_timeout: startLimitMs },
    onclose: () => {
      if (isHeld) onLost();
      isHeld = false;
    },
  });
  try {
    await createGatewayDatabase(session, { name: databaseName, password: gatewayPassword(password) });
    await session`select pg_advisory_lock_shared(${usersLock})`;
    isHeld = true;
    return session;
  } catch (error) {
    await session.end({ timeout: 0 });
    throw error;
  }
}

async function leave(session: postgres.Sql, cluster: Cluster): Promise<void> {
  const giveUpAt = performance.now() + startLimitMs;
  try {
    // Retried if the connection was lost, which usually means that another user is stopping the server.
    while (runningServer(cluster) !== undefined) {
      try {
        await session`select pg_advisory_unlock_shared(${usersLock})`;
        const [lock] = await session`select pg_try_advisory_lock(${usersLock}) as alone`;
        return lock?.alone === true ? await stopServer(cluster) : undefined;
      } catch (error) {
        if (performance.now() > giveUpAt) throw error;
        await sleep(pollMs);
      }
    }
  } finally {
    await session.end({ timeout: 0 });
  }
}

/**
 * The range of ports to choose from. It is below the ports of outgoing connections (32768 and above on Linux), because
 * such a connection could take the port during a restart.
 */
const ports = { first: 20_000, count: 12_000 };

/**
 * Returns the preferred port if it becomes free within `waitMs`, and otherwise any free port. If another program takes
 * the port before PostgreSQL does, PostgreSQL fails and is launched again.
 */
export async function freePort(preferred: number | undefined, waitMs = 0): Promise<number> {
  const giveUpAt = performance.now() + waitMs;
  let port = preferred ?? anyPort();
  while (!(await isFree(port))) {
    if (performance.now() < giveUpAt) await sleep(pollMs);
    else port = anyPort();
  }
  return port;
}

/** Returns different free ports. No other process that chooses a port here gets them until this process ends. */
export async function freePorts(count: number): Promise<number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = await freePort(undefined);
    if (await mark(port)) found.add(port);
  }
  return [...found];
}

const anyPort = () => ports.first + randomInt(ports.count);

async function isFree(port: number): Promise<boolean> {
  const marked = await mark(port);
  marked?.close();
  if (marked === undefined) return false;
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}

/**
 * Marks a port by using the UDP port of the same number, which nothing else here uses. Returns `undefined` if the port
 * is marked already. The socket does not keep the process alive.
 */
function mark(port: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket('udp4').unref();
    socket.once('error', () => resolve(undefined));
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(socket));
  });
}
