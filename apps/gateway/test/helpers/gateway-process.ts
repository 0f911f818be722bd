import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { copyTestCluster, endWithThisProcess, type TestDatabase } from '@order-gateway/dev-postgres/testing';
import type { Credentials } from '@order-gateway/domain/accounts';
import { createMerchant } from '@order-gateway/postgres/accounts';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import { stopTimeoutMs } from '@order-gateway/runtime/process';
import { expect, onTestFinished, type TestContext, vi } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { readText } from '../../../../tools/test-resources.ts';

const folder = join(import.meta.dirname, '../..');

/** The gateway as a separate process. */
export interface GatewayProcess {
  readonly child: ChildProcess;
  readonly url: string;
  readonly httpPort: number;
  readonly grpcUrl: string;
  readonly grpcPort: number;
  readonly baseUrl: string;
  /** The URL of the metrics, on the admin port. */
  readonly metricsUrl: string;
  /** Its standard output so far, line by line. */
  readonly lines: readonly string[];
  readonly exited: Promise<number | null>;
  /** The text for developers that a gateway with the embedded PostgreSQL prints when it starts. */
  demoBanner(): Promise<string>;
  /** The demo merchant's credentials, as printed in {@link demoBanner}. */
  demoCredentials(): Promise<Credentials>;
}

/** A gateway with its own database, and the only merchant in that database. */
export interface GatewayWithMerchant extends GatewayProcess {
  readonly databaseUrl: string;
  readonly credentials: Credentials;
}

const children: ChildProcess[] = [];
const databases: TestDatabase[] = [];
const dataDirs: string[] = [];

/** Ends every process that this module started, and removes their databases and folders. */
export async function endProcesses(): Promise<void> {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  for (const database of databases.splice(0)) await database.drop();
  for (const dataDir of dataDirs.splice(0)) {
    await endPostgres(dataDir);
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Adds a process to those that {@link endProcesses} ends. */
export function endLater(child: ChildProcess): void {
  children.push(child);
}

/**
 * Creates a database with one merchant on the shared test server, where gateways start twice as fast as on a new
 * cluster.
 */
export async function newDatabase(): Promise<{ readonly databaseUrl: string; readonly credentials: Credentials }> {
  const database = await createMigratedDatabase();
  databases.push(database);
  return { databaseUrl: database.url, credentials: await createMerchant(database.url, 'Shop') };
}

export async function newDataDir(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'gateway-process-'));
  dataDirs.push(dataDir);
  return dataDir;
}

/** Creates a data folder with a cluster as the first start of a gateway leaves it. Returns the path. */
export async function newClusterDir(): Promise<string> {
  const dataDir = await newDataDir();
  await copyTestCluster(dataDir);
  return dataDir;
}

/**
 * The environment variables of a program. One of them must name a database, because the default is the developer's
 * database in the working tree.
 */
type Variables = Readonly<Record<string, string>> & ({ readonly DATA_DIR: string } | { readonly DATABASE_URL: string });

export function environment(variables: Variables): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const ports = { HTTP_PORT: '0', GRPC_PORT: '0', ADMIN_PORT: '0', CHECKOUT_PORT: 'off' };
  return { PATH, NODE_COMPILE_CACHE, ...ports, DRAIN_DELAY_MS: '0', ...variables };
}

/** The Node.js options that `start` passes. */
const [, ...startOptions] = JSON.parse(readFileSync(join(folder, '../../package.json'), 'utf8')).scripts.start.split(
  ' ',
);
startOptions.pop();

/** Starts a program of this app, which {@link endProcesses} ends. `stderr` returns its standard error so far. */
export function launch(args: readonly string[], variables: Variables, stdout: 'pipe' | number = 'pipe') {
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: environment(variables),
    stdio: ['ignore', stdout, 'pipe'],
  });
  children.push(child);
  endWithThisProcess(child);
  return { child, stderr: readText(child.stderr as Readable) };
}

interface ReadyLine {
  readonly http_url: string;
  readonly grpc_address: string;
  readonly metrics_url: string;
  readonly base_url: string;
}

/** Starts `main.ts` and waits for its ready line. */
export async function startProcess(variables: Variables): Promise<GatewayProcess> {
  const { child, stderr } = launch([...startOptions, 'src/main.ts'], variables);
  const lines: string[] = [];
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  const ready = new Promise<ReadyLine>((resolve, reject) => {
    createInterface({ input: child.stdout as Readable }).on('line', (line) => {
      lines.push(line);
      const entry = JSON.parse(line);
      if (entry.msg === 'ready') resolve(entry);
    });
    exited.then((code) => reject(new Error(`the gateway ended with ${code}: ${stderr()}`)));
  });
  const { http_url: url, grpc_address, metrics_url: metricsUrl, base_url: baseUrl } = await ready;
  const grpcUrl = `http://${grpc_address}`;
  const [httpPort, grpcPort] = [url, grpcUrl].map((address) => Number(new URL(address).port)) as [number, number];
  const demoBanner = async () => {
    await vi.waitUntil(() => stderr().includes('README.md continues here'), waitLimitMs);
    return stderr();
  };
  return {
    child,
    url,
    httpPort,
    grpcUrl,
    grpcPort,
    baseUrl,
    metricsUrl,
    lines,
    exited,
    demoBanner,
    async demoCredentials() {
      const banner = await demoBanner();
      const [clientId = '', clientSecret = ''] = ['CLIENT_ID', 'CLIENT_SECRET'].map(
        (name) => new RegExp(`${name}=(\\S+)`).exec(banner)?.[1],
      );
      return { clientId, clientSecret };
    },
  };
}

/** Like {@link startProcess}, but with a {@link newDatabase}. */
export async function startOnNewDatabase(
  variables: Readonly<Record<string, string>> = {},
): Promise<GatewayWithMerchant> {
  const { databaseUrl, credentials } = await newDatabase();
  return { ...(await startProcess({ DATABASE_URL: databaseUrl, ...variables })), databaseUrl, credentials };
}

/**
 * Sends a signal to a gateway, calls `whileStopping`, and expects the gateway to end with exit code 0. If it reaches
 * the limit of a graceful stop, which ends it with 1, and even a first start takes longer than this limit, the machine
 * is too busy: then the rest of the test is skipped. A stop waits for a step of the start at most.
 */
export async function stopGracefully(
  child: ChildProcess,
  skip: TestContext['skip'],
  {
    signal = 'SIGTERM',
    whileStopping = async () => {},
  }: { readonly signal?: NodeJS.Signals; readonly whileStopping?: () => Promise<void> } = {},
): Promise<void> {
  const signalledAt = performance.now();
  child.kill(signal);
  await whileStopping();
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  await skipIfTooBusy(child.exitCode === 1 && performance.now() - signalledAt > stopTimeoutMs, skip);
  expect(child.exitCode).toBe(0);
}

/** Skips the rest of a test if a stop was forced by its limit, and even a first start takes longer than this limit. */
export async function skipIfTooBusy(isForced: boolean, skip: TestContext['skip']): Promise<void> {
  const isTooBusy = isForced && (await startDuration()) > stopTimeoutMs;
  skip(mustSkip('a graceful stop', isTooBusy ? 'this machine is too busy for its limit' : undefined));
}

/** Returns how long the first start of a gateway with its own PostgreSQL takes, in milliseconds. */
async function startDuration(): Promise<number> {
  const startedAt = performance.now();
  await startProcess({ DATA_DIR: await newDataDir() });
  return performance.now() - startedAt;
}

/**
 * Runs a program of this app. Removes lines about waiting from its standard error, because they depend on the machine's
 * speed.
 */
export function runProgram(
  script: string,
  args: readonly string[],
  variables: Variables,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const options = { cwd: folder, env: environment(variables), timeout: waitLimitMs };
  const outputOf = (code: number, { stdout, stderr }: { readonly stdout: string; readonly stderr: string }) => ({
    code,
    stdout,
    stderr: stderr.replaceAll(/^Waiting for .+\n/gm, ''),
  });
  return promisify(execFile)(process.execPath, [script, ...args], options).then(
    (output) => outputOf(0, output),
    (error) => outputOf(Number(error.code), error),
  );
}

/** Returns the process id of the embedded PostgreSQL that runs in a data folder. Rejects if none runs there. */
export async function postgresPid(dataDir: string): Promise<number> {
  const lockFile = await readFile(join(dataDir, 'postgres', 'cluster', 'postmaster.pid'), 'utf8');
  const pid = Number(lockFile.split('\n')[0]);
  if (!Number.isSafeInteger(pid) || pid <= 1 || !isAlive(pid)) throw new Error(`no PostgreSQL runs in ${dataDir}`);
  return pid;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Returns the current or peak resident memory of a process, in MiB. Linux only. */
function residentMiB(pid: number | undefined, field: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  const kib = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(kib) / 1_024);
}

/** Samples the resident memory of a process until the test has finished. Returns the samples in MiB. Linux only. */
export function sampleMemory({ pid }: ChildProcess, everyMs: number): readonly number[] {
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(residentMiB(pid)), everyMs);
  onTestFinished(() => clearInterval(timer));
  return samples;
}

/** Returns the peak resident memory of a process since the last call, in MiB. Linux only. */
export function peakResidentMiB(pid: number | undefined): number {
  const peak = residentMiB(pid, 'VmHWM');
  // proc(5), /proc/pid/clear_refs: 5 resets the peak.
  writeFileSync(`/proc/${pid}/clear_refs`, '5');
  return peak;
}

/** Returns the CPU time that a process has used, in seconds. Linux only. */
export function processSeconds(pid: number): number {
  // proc(5), /proc/pid/stat: fields 14 and 15 are utime and stime, in hundredths of a second. Field 2 may contain
  // spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function endPostgres(dataDir: string): Promise<void> {
  const pid = await postgresPid(dataDir).catch(() => undefined);
  if (pid === undefined) return;
  process.kill(pid, 'SIGQUIT');
  await vi.waitUntil(() => !isAlive(pid), waitLimitMs);
}
