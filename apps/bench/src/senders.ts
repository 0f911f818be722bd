import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import type { Contender } from './contenders.ts';
import { callHeaders, createOrderPath, type GrpcLoadOptions, orderMessage } from './grpc-sender.ts';
import { type LoadOptions, type LoadResult, percentile, resultIn, settlingSeconds } from './load.ts';
import { runProgram } from './programs.ts';

const wrkThreads = 2;

/** Loads the JSON door with wrk: C, with every request a new order by a script. */
export async function sendJsonByWrk({
  port,
  concurrency,
  seconds,
  run,
  credentials,
}: LoadOptions): Promise<LoadResult> {
  const threads = Math.min(wrkThreads, concurrency);
  const output = await runProgram(
    'wrk',
    [
      `-t${threads}`,
      `-c${concurrency}`,
      `-d${seconds}s`,
      '-s',
      join(import.meta.dirname, 'order.lua'),
      `http://127.0.0.1:${port}`,
    ],
    {
      env: {
        ...process.env,
        ...{ BENCH_RUN: run, BENCH_CLIENT_ID: credentials.clientId, BENCH_CLIENT_SECRET: credentials.clientSecret },
      },
    },
  );
  return resultIn(output);
}

/** Loads the JSON door with autocannon, where wrk is not on the machine. It costs more than the door that it measures. */
export async function sendJsonByAutocannon(options: LoadOptions): Promise<LoadResult> {
  const program = join(import.meta.dirname, '../peers/autocannon.mjs');
  return resultIn(await runProgram(process.execPath, [program, JSON.stringify(options)]));
}

/** Loads a gRPC door with the sender of this folder, as a process of its own. */
export async function sendGrpc(options: GrpcLoadOptions): Promise<LoadResult> {
  const program = join(import.meta.dirname, 'grpc-sender.ts');
  return resultIn(await runProgram(process.execPath, [program, JSON.stringify(options)]));
}

/** Loads a gRPC door with h2load: one body over and over, so replays only. */
export async function sendReplaysByH2load(options: LoadOptions, folder: string): Promise<number> {
  const data = orderMessage(`${options.run}-0000000000`);
  const head = Buffer.alloc(5);
  head.writeUInt32BE(data.length, 1);
  const body = join(folder, 'message');
  await writeFile(body, Buffer.concat([head, data]));
  const headers = Object.entries(callHeaders(options.credentials)).flatMap(([name, value]) => [
    '-H',
    `${name}: ${value}`,
  ]);
  const output = await runProgram('h2load', [
    ...['-c4', `-m${options.concurrency / 4}`, `-D${options.seconds}`, '-t1', '-d', body],
    ...headers,
    `http://127.0.0.1:${options.port}${createOrderPath}`,
  ]);
  return Number(/, ([\d.]+) req\/s/.exec(output)?.[1] ?? Number.NaN);
}

const pgbenchClients = 32;

/** One order a transaction from C, with nothing in front of the database. */
export async function runPgbench(databaseUrl: string, contender: Contender, seconds: number): Promise<LoadResult> {
  const output = await pgbench(databaseUrl, contender, seconds);
  const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  const answers = number(/actually processed: (\d+)/);
  const rate = number(/tps = ([\d.]+)/);
  // It tells a mean, which stands beside no median.
  return { answers, failed: 0, durationMs: (answers / rate) * 1_000, p50Ms: Number.NaN, p99Ms: Number.NaN };
}

/** The same on a schedule: how steady the database and the machine are by themselves. Its log goes into `folder`. */
export async function runSteadyPgbench(
  databaseUrl: string,
  contender: Contender,
  { rate, seconds, folder }: { readonly rate: number; readonly seconds: number; readonly folder: string },
): Promise<LoadResult> {
  const log = await mkdtemp(join(folder, 'pgbench-'));
  const options = ['-R', String(rate), '-l', '--log-prefix', join(log, 'log')];
  await pgbench(databaseUrl, contender, settlingSeconds + seconds + lateSeconds, options);
  const transactions: Transaction[] = [];
  for (const file of await readdir(log)) {
    for (const line of (await readFile(join(log, file), 'utf8')).trimEnd().split('\n')) transactions.push(logged(line));
  }
  return countedIn(transactions, { rate, seconds });
}

/** At its end pgbench forgets what is due and has not begun; so it runs on for as long as the other senders wait for answers. */
const lateSeconds = 6;

/** What was due in the time that counts, whenever it ended; what had not begun by the end of all failed. */
export function countedIn(
  transactions: readonly Transaction[],
  { rate, seconds }: { readonly rate: number; readonly seconds: number },
): LoadResult {
  const dues = transactions.map(({ dueMs }) => dueMs).sort((a, b) => a - b);
  const countsFromMs = (dues[0] ?? 0) + settlingSeconds * 1_000;
  const countsToMs = countsFromMs + seconds * 1_000;
  const counted = transactions.filter(({ dueMs }) => dueMs >= countsFromMs && dueMs < countsToMs);
  const times = counted.map(({ tookMs }) => tookMs).sort((a, b) => a - b);
  // It begins its transactions in the order of their times.
  const forgottenMs = Math.max(0, countsToMs - (dues.at(-1) ?? 0) - 1_000 / rate);
  const failed = Math.round((forgottenMs * rate) / 1_000);
  const [p50Ms, p99Ms] = [percentile(times, 50), percentile(times, 99)];
  return { answers: times.length, failed, durationMs: seconds * 1_000, p50Ms, p99Ms };
}

interface Transaction {
  readonly dueMs: number;
  /** From when it was due. */
  readonly tookMs: number;
}

/** A line of pgbench's log: client, number, time in µs, script, and the second and µs at which it ended (PostgreSQL manual). */
function logged(line: string): Transaction {
  const [, , tookMicroseconds, , endSecond, endMicrosecond] = line.split(' ').map(Number);
  const tookMs = Number(tookMicroseconds) / 1_000;
  return { dueMs: Number(endSecond) * 1_000 + Number(endMicrosecond) / 1_000 - tookMs, tookMs };
}

function pgbench(
  databaseUrl: string,
  { merchantId }: Contender,
  seconds: number,
  options: readonly string[] = [],
): Promise<string> {
  const url = new URL(databaseUrl);
  return runProgram(
    'pgbench',
    [
      ...['-n', '-M', 'prepared', '-c', String(pgbenchClients), '-j', String(Math.min(2, cpus().length))],
      ...['-T', String(seconds), '-D', `merchant=${merchantId}`, '-f', join(import.meta.dirname, 'order.sql')],
      ...options,
      ...['-h', url.hostname, '-p', url.port, '-U', decodeURIComponent(url.username), url.pathname.slice(1)],
    ],
    { env: { ...process.env, PGPASSWORD: decodeURIComponent(url.password) } },
  );
}
