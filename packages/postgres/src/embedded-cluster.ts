import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import {
  chown,
  lchown,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chooseServerUser, expectReachable, platformBinaries, runToEnd, type ServerUser } from './embedded-process.ts';

/** The data folder of this checkout, for everyone who is not told another. */
export const usualDataDir = fileURLToPath(new URL('../../../.data', import.meta.url));

/** The one superuser that `initdb` makes. */
export const superuser = 'postgres';

// initdb takes about a second here; a minute covers a slow disk and still ends.
const initdbLimitMs = 60_000;
// A draft is renamed within `initdbLimitMs`; one that is ten times older belongs to a start that was cut short.
const abandonedDraftAgeMs = 10 * initdbLimitMs;
// Postgres fills its lock file within milliseconds of making it; one still empty after this long is what a power cut left.
const emptyLockFileAgeMs = 5_000;

/** Where everything of one embedded PostgreSQL lies. */
export type ClusterPlaces = {
  dataDir: string;
  /** Mode 0700; holds `cluster` and `password`, so that one rename brings both into being. */
  folder: string;
  cluster: string;
  /** Mode 0600. */
  password: string;
  log: string;
};

/** Makes `dataDir` when it is missing and names the places in it. The paths are real paths, as Postgres reports them. */
export async function openPlaces(dataDir: string): Promise<ClusterPlaces> {
  await mkdir(dataDir, { recursive: true });
  return placesIn(await realpath(dataDir));
}

/** The places in a folder given by its real path. */
export function placesIn(dataDir: string): ClusterPlaces {
  const folder = join(dataDir, 'postgres');
  return {
    dataDir,
    folder,
    cluster: join(folder, 'cluster'),
    password: join(folder, 'password'),
    log: join(dataDir, 'postgres.log'),
  };
}

/**
 * Makes the cluster when there is none, and returns the superuser's password.
 *
 * The cluster is made in a folder beside its place and renamed into it, so a start cut short leaves nothing half made,
 * and of two first starters the slower one drops its copy and uses the other's. With `durable: false` initdb does not
 * wait for the disk, which only data that nobody will miss may ask for.
 */
export async function openCluster(
  places: ClusterPlaces,
  durable: boolean,
  log: (line: string) => void,
): Promise<string> {
  if (!existsSync(places.folder)) {
    await removeAbandonedDrafts(places.dataDir);
    const made = await makeCluster(places, durable);
    if (made) log(`made a new PostgreSQL cluster in ${places.folder}`);
  }
  try {
    return (await readFile(places.password, 'utf8')).trim();
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'is missing' : 'belongs to another user';
    throw new Error(`The password file ${places.password} of the embedded PostgreSQL ${reason}.`, { cause: error });
  }
}

/** Returns false when another starter was first. */
async function makeCluster(places: ClusterPlaces, durable: boolean): Promise<boolean> {
  const binaries = await platformBinaries();
  const user = await chooseServerUser(undefined);
  const draft = await mkdtemp(join(places.dataDir, 'postgres-new-')); // mkdtemp makes it 0700.
  try {
    const passwordFile = join(draft, 'password');
    // 192 random bits in the alphabet that a URL needs no escapes for.
    await writeFile(passwordFile, randomBytes(24).toString('base64url'), { mode: 0o600, flush: durable });
    await giveTo(user, draft);
    const initdbArguments = [
      ...['-D', join(draft, 'cluster'), '-U', superuser, '--pwfile', passwordFile, '--auth=scram-sha-256'],
      ...['--encoding=UTF8', '--locale=C', '--no-instructions', ...(durable ? [] : ['--no-sync'])],
    ];
    await runToEnd(user, binaries.initdb, initdbArguments, initdbLimitMs);
    if (durable) await syncFolder(draft);
    await rename(draft, places.folder);
    if (durable) await syncFolder(places.dataDir);
    return true;
  } catch (error) {
    // rename(2) refuses to replace a folder that holds something: the other first starter's cluster.
    const code = (error as NodeJS.ErrnoException).code;
    if ((code === 'ENOTEMPTY' || code === 'EEXIST') && existsSync(places.folder)) return false;
    throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function removeAbandonedDrafts(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith('postgres-new-')) continue;
    const path = join(dataDir, name);
    const age = await stat(path).then(
      (stats) => Date.now() - stats.mtimeMs,
      () => 0, // The other first starter has just removed or renamed it.
    );
    if (age > abandonedDraftAgeMs) await rm(path, { recursive: true, force: true });
  }
}

/**
 * Gives a folder of root's and all in it to the user that the server runs as, if that user can reach it at all. The
 * folder itself goes last, so that a change cut short is done again.
 */
export async function giveTo(user: ServerUser, folder: string): Promise<void> {
  if (user.kind !== 'other' || (await stat(folder)).uid === user.uid) return;
  await expectReachable(user, dirname(folder));
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    await lchown(join(entry.parentPath, entry.name), user.uid, user.gid);
  }
  await chown(folder, user.uid, user.gid);
}

/** What `postmaster.pid` says. Nothing in it is true before `runsCluster` has confirmed the pid. */
export type LockFile = { pid: number; port: number; ready: boolean; stopping: boolean };

/** Reads `postmaster.pid`: line 1 is the pid, line 4 the port, line 8 the status. Undefined when there is none (yet). */
export function readLockFile(cluster: string): LockFile | undefined {
  let lines: string[];
  try {
    lines = readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  const status = lines[7]?.trim();
  return { pid, port: Number(lines[3]), ready: status === 'ready', stopping: status === 'stopping' };
}

/** The port of the last server that ran on a cluster, read from what Postgres keeps of its command line. */
export async function lastPort(cluster: string): Promise<number | undefined> {
  const commandLine = await readFile(join(cluster, 'postmaster.opts'), 'utf8').catch(() => '');
  const port = /"port=(\d+)"/.exec(commandLine)?.[1];
  return port === undefined ? undefined : Number(port);
}

/** Removes a lock file without content: Postgres refuses to start over it and cannot know that nobody is filling it. */
export async function removeEmptyLockFile(cluster: string): Promise<void> {
  const path = join(cluster, 'postmaster.pid');
  const stats = await stat(path).catch(() => undefined);
  if (stats?.size === 0 && Date.now() - stats.mtimeMs > emptyLockFileAgeMs) await rm(path, { force: true });
}
