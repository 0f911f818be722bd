import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { prepareCluster, runningServer } from '../src/cluster.ts';
import { startDevPostgres } from '../src/dev-postgres.ts';

export { chooseServerUser } from '../src/programs.ts';

/** The environment variable with the URL of the server that all test files of a run share. */
export const testServerVariable = 'TEST_POSTGRES_URL';

/**
 * The environment variable with a data folder that contains a new cluster. Tests copy it, which is cheaper than
 * creating one.
 */
export const testClusterVariable = 'TEST_POSTGRES_CLUSTER';

/** Fills the database at a URL, and closes the connections that it opened. */
export type Prepare = (url: string) => Promise<void>;

export type TestServer = Awaited<ReturnType<typeof startTestServer>>;

export type TestDatabase = Awaited<ReturnType<typeof createTestDatabase>>;

// Waits for the end of its standard input, which closes when the parent process ends for any reason. Then it kills the
// server and removes its folder.
const cleanUpScript = `
  cat > /dev/null
  lock="$1/postgres/cluster/postmaster.pid"
  pid="$(head -n 1 "$lock" 2> /dev/null)"
  kill -QUIT "$pid" 2> /dev/null && kill -CONT "$pid"
  tries=0
  while [ -e "$lock" ] && kill -0 "$pid" 2> /dev/null && [ $tries -lt 100 ]; do tries=$((tries + 1)); sleep 0.1; done
  rm -rf "$1"`;

/**
 * Starts a separate server in a new folder inside `parent`, which is the system's temporary folder by default. `stop`
 * stops the server and removes the folder. If this process ends without calling `stop`, even by `kill -9`, a small
 * shell process does the same.
 */
export async function startTestServer(settings: Readonly<Record<string, string>> = {}, parent?: string) {
  const { dataDir, remove } = await createServerFolder(parent);
  try {
    await copyTestCluster(dataDir);
    const { superuserUrl: url, stop } = await startDevPostgres({ dataDir, settings });
    const cluster = await prepareCluster(dataDir);
    return {
      /** The URL of an empty database. */
      url,
      /** The folder with data and log. */
      dataDir,
      /**
       * Returns the pid of the server. If the process ends, another one replaces it; in between, this is `undefined`.
       */
      pid: () => runningServer(cluster)?.pid,
      /** Like {@link createTestDatabase}, but on this server. */
      createDatabase: databasesOn(url).create,
      /** Stops the server and removes its folder. */
      stop: () => stop().finally(remove),
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/**
 * Creates a temporary folder for a server. `remove` kills the server and removes the folder, and so does the end of
 * this process.
 */
export async function createServerFolder(parent = tmpdir()) {
  const dataDir = await mkdtemp(join(parent, 'gateway-test-postgres-'));
  const cleanUp = spawn('sh', ['-c', cleanUpScript, 'sh', dataDir], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const cleaned = once(cleanUp, 'exit');
  return {
    dataDir,
    async remove(): Promise<void> {
      cleanUp.stdin.end();
      await cleaned;
    },
  };
}

/** Ends a child process gracefully if this process ends first, even by `kill -9`. */
export function endWithThisProcess(child: ChildProcess): void {
  const watch = spawn('sh', ['-c', 'read -r line || kill "$1"', 'sh', `${child.pid}`], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.once('exit', () => watch.stdin.end('\n'));
}

/** Copies the new cluster of the test run into an empty data folder. Does nothing outside a test run. */
export async function copyTestCluster(dataDir: string): Promise<void> {
  const source = process.env[testClusterVariable];
  // Uses cp, because the files may belong to another user.
  if (source !== undefined) await promisify(execFile)('cp', ['-Rp', join(source, 'postgres'), dataDir]);
}

/**
 * Creates a database on the server that the test run shares: an empty one, or a copy of a template that `prepare`
 * fills. The template is created once per run and named after the function.
 */
export async function createTestDatabase(prepare?: Prepare) {
  const url = process.env[testServerVariable];
  if (url === undefined) throw new Error(`${testServerVariable} is not set: run vitest with the package's config`);
  sharedServer ??= databasesOn(url, openSession(url));
  return sharedServer.create(prepare);
}

/** The databases on the server that the test run shares. */
let sharedServer: ReturnType<typeof databasesOn> | undefined;

/**
 * Creates and drops databases on a server. `session` saves a connection for each, which takes PostgreSQL as long as a
 * database.
 */
function databasesOn(serverUrl: string, session?: postgres.Sql) {
  /** The names of the templates that are complete. */
  const templates = new Map<Prepare, string>();
  const run = (use: (session: postgres.Sql) => PromiseLike<unknown>) =>
    session === undefined ? withSession(serverUrl, use) : use(session);
  const templateFrom = async (prepare: Prepare) => {
    const template = templates.get(prepare) ?? (await prepareTemplate(serverUrl, prepare));
    templates.set(prepare, template);
    return template;
  };
  return {
    async create(prepare?: Prepare) {
      const name = `test_${randomBytes(8).toString('hex')}`;
      const template = prepare === undefined ? 'template0' : await templateFrom(prepare);
      // Writing each page to the log as well, the default, takes twice as long.
      await run(
        (session) => session`create database ${session(name)} template ${session(template)} strategy file_copy`,
      );
      return {
        url: databaseUrl(serverUrl, name),
        /** Drops the database despite open connections. */
        async drop(): Promise<void> {
          await run((session) => session`drop database ${session(name)} with (force)`);
        },
      };
    },
  };
}

async function prepareTemplate(serverUrl: string, prepare: Prepare): Promise<string> {
  const name = `template_${prepare.name}`;
  await withSession(serverUrl, async (session) => {
    // An arbitrary number. The lock ends with the session.
    await session`select pg_advisory_lock(1)`;
    const [found] = await session`select from pg_database where datname = ${name}`;
    if (found !== undefined) return;
    const draft = `draft_${prepare.name}`;
    await session`drop database if exists ${session(draft)} with (force)`;
    await session`create database ${session(draft)} template template0`;
    await prepare(databaseUrl(serverUrl, draft));
    await session`alter database ${session(draft)} rename to ${session(name)}`;
  });
  return name;
}

function openSession(url: string): postgres.Sql {
  // The driver's lookup of array types fails on a server in recovery, as an unhandled rejection.
  return postgres(url, { max: 1, fetch_types: false, connect_timeout: 110, onnotice: () => {} });
}

/** Opens one connection to a database, passes it to `use`, and closes it afterwards. */
export async function withSession<Result>(
  url: string,
  use: (session: postgres.Sql) => PromiseLike<Result>,
): Promise<Result> {
  const session = openSession(url);
  try {
    return await use(session);
  } finally {
    await session.end({ timeout: 1 });
  }
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}
