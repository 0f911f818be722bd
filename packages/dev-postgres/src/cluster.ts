import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { chown, mkdir, mkdtemp, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chooseServerUser, findPrograms, type Programs, programError, runProgram } from './programs.ts';

// Includes time for the checkpoint that a fast shutdown writes.
const stopLimitMs = 15_000;
const stopPollMs = 20;

/** The owner of the cluster. The gateway connects as a separate role. */
export const superuser = 'postgres';

/** The files of one server. Paths are real paths, because they are compared with the server's command line. */
export type Cluster = {
  /** The folder with data, log and password, with mode 0700. A single rename creates it with data and password. */
  readonly folder: string;
  readonly data: string;
  readonly log: string;
  readonly password: string;
  readonly programs: Programs;
};

export type ClusterOptions = {
  /** PostgreSQL's programs to use instead of those from npm. */
  readonly programs?: Programs | undefined;
  /** The superuser's password in a new cluster; random by default. */
  readonly password?: string | undefined;
};

/** Whether a data folder contains a database. */
export function hasDatabase(dataDir: string): boolean {
  return existsSync(join(dataDir, 'postgres'));
}

/**
 * Returns the cluster in a data folder, and creates it on the first call. initdb runs in a temporary folder that is
 * renamed when it is complete, so a start that is killed never leaves an incomplete cluster. If two first starts run at
 * the same time, the slower one uses the cluster of the faster one.
 */
export async function prepareCluster(dataDir: string, options: ClusterOptions = {}): Promise<Cluster> {
  await makeFolder(dataDir).catch(unusable(dataDir));
  const root = await realpath(dataDir);
  const folder = join(root, 'postgres');
  const programs = options.programs ?? (await findPrograms());
  const newPassword = options.password ?? randomBytes(24).toString('base64url');
  if (!existsSync(folder)) await makeCluster(root, folder, programs, newPassword);
  const password = (await readFile(join(folder, 'password'), 'utf8')).trim();
  return { folder, data: join(folder, 'cluster'), log: join(folder, 'postgres.log'), password, programs };
}

/**
 * Creates a folder and its missing parents. The recursive `mkdir` of Node.js 26.10.0 never returns for a folder below
 * /proc.
 */
async function makeFolder(folder: string): Promise<void> {
  if (existsSync(folder)) return;
  await makeFolder(dirname(folder));
  await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

function unusable(folder: string): (error: NodeJS.ErrnoException) => never {
  return ({ code }) => {
    throw new Error(`the folder ${folder} can't be used (${code}): set DATA_DIR to another folder`);
  };
}

async function makeCluster(root: string, folder: string, { initdb }: Programs, password: string): Promise<void> {
  const draft = await mkdtemp(join(root, 'postgres-new-')).catch(unusable(root));
  try {
    const passwordFile = join(draft, 'password');
    await writeFile(passwordFile, password, { mode: 0o600 });
    const user = await chooseServerUser(draft);
    if (user.ids) for (const path of [passwordFile, draft]) await chown(path, user.ids.uid, user.ids.gid);
    await runProgram(user, initdb, [
      ...['-D', join(draft, 'cluster'), '-U', superuser, '--pwfile', passwordFile, '--auth=scram-sha-256'],
      ...['--encoding=UTF8', '--locale=C', '--no-instructions'],
    ]);
    await rename(draft, folder);
  } catch (error) {
    // rename(2) does not replace a folder that has content: another first start has created the cluster.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** Launches a server that outlives this process. Resolves when it is ready, rejects with the reason from its log. */
export async function launchServer(cluster: Cluster, settings: Readonly<Record<string, string>>): Promise<void> {
  const { pg_ctl } = cluster.programs;
  const user = await chooseServerUser(cluster.folder);
  const options = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
  const readLog = () => readFile(cluster.log).catch(() => Buffer.of());
  const { length: oldLogBytes } = await readLog();
  try {
    const args = ['-s', '-t', '30', '-D', cluster.data, '-l', cluster.log, '-o', options.join(' ')];
    await runProgram(user, pg_ctl, ['start', ...args]);
  } catch (error) {
    const output = (await readLog()).subarray(oldLogBytes).toString();
    if (!output.includes('incompatible with server')) throw output === '' ? error : programError('PostgreSQL', output);
    const version = (await readFile(join(cluster.data, 'PG_VERSION'), 'utf8')).trim();
    throw new Error(
      `the data in ${cluster.folder} was created by PostgreSQL ${version}, a different version from the installed one:` +
        ' dump and restore it, or set DATA_DIR to another folder',
    );
  }
}

/**
 * Stops the server despite open connections. Resolves when its process has exited. `pg_ctl stop` would keep waiting if
 * another process started a new server immediately afterwards.
 */
export async function stopServer(cluster: Cluster): Promise<void> {
  const pid = runningServer(cluster)?.pid;
  if (pid === undefined) return;
  process.kill(pid, 'SIGINT');
  const giveUpAt = performance.now() + stopLimitMs;
  while (isServer(pid, cluster.data)) {
    if (performance.now() > giveUpAt) throw new Error(`PostgreSQL (pid ${pid}) did not stop within ${stopLimitMs} ms`);
    await sleep(stopPollMs);
  }
}

/**
 * Returns the server that runs on a cluster. Removes the lock file of a server that no longer runs. In
 * `postmaster.pid`, line 1 is the pid, line 4 the port and line 8 the status.
 */
export function runningServer({ data }: Cluster): { pid: number; port: number; isReady: boolean } | undefined {
  const lockFile = join(data, 'postmaster.pid');
  if (!existsSync(lockFile)) return undefined;
  const lines = readFileSync(lockFile, 'utf8').split('\n');
  const pid = Number(lines[0]);
  if (isServer(pid, data)) return { pid, port: Number(lines[3]), isReady: lines[7]?.trim() === 'ready' };
  // PostgreSQL would mistake any process that has reused the pid for its server. An empty file is still being written.
  if (pid > 0) rmSync(lockFile, { force: true });
  return undefined;
}

/**
 * Whether a pid still belongs to the server. The server may be a zombie, or another program may have reused the pid.
 */
function isServer(pid: number, data: string): boolean {
  try {
    if (process.platform === 'linux') {
      const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return basename(program) === 'postgres' && args.includes(data);
    }
    const command = execFileSync('ps', ['-ww', '-o', 'command=', '-p', `${pid}`], { encoding: 'utf8', stdio: 'pipe' });
    return command.includes('postgres') && command.includes(` ${data} `);
  } catch {
    return false; // There is no such process.
  }
}

/**
 * Returns the port of the last server on a cluster, from the command line that PostgreSQL stores, or `undefined` before
 * the first start.
 */
export async function lastPort({ data }: Cluster): Promise<number | undefined> {
  const commandLine = await readFile(join(data, 'postmaster.opts'), 'utf8').catch(() => '');
  const port = /"port=(\d+)"/.exec(commandLine)?.[1];
  return port === undefined ? undefined : Number(port);
}
