import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Contender } from '../contenders.ts';
import { firstPeerId, insertFrom, onConflictDoNothing, order, rowExpressions } from '../order.ts';
import { run } from '../programs.ts';

export interface LoadOptions {
  /** The number of calls in flight at the same time. */
  readonly concurrency: number;
  readonly seconds: number;
  /** gRPC only: calls per second on a fixed schedule. If absent, each response is followed by the next call. */
  readonly rate?: number;
  readonly signal: AbortSignal;
}

/** The argument of `sender.ts`. */
export interface Load extends Omit<LoadOptions, 'signal'>, Omit<Contender, 'protocol'> {
  readonly protocol: 'grpc' | 'insert';
  /** Part of every order_id, so that no two runs send the same order. */
  readonly runId: string;
}

/** The result of a load run. Times are NaN where the tool does not report them. */
export interface LoadResult {
  readonly created: number;
  readonly failed: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The extra time that a load program may take to start and to receive the last responses. */
const extraSeconds = 30;
/** Slower responses count as failed. The gateway's own deadline is shorter. */
const wrkTimeoutSeconds = 10;
const pgbenchClients = 32;

let runs = 0;

export async function sendLoad(contender: Contender, options: LoadOptions): Promise<LoadResult> {
  const { protocol } = contender;
  runs += 1;
  if (protocol === 'pgbench') return sendByPgbench(contender, options);
  if (protocol === 'json') return sendByWrk(contender, options);
  const { signal: _, ...rest } = options;
  const load: Load = { ...rest, ...contender, protocol, runId: `r${runs}` };
  const args = [join(import.meta.dirname, 'sender.ts'), JSON.stringify(load)];
  return lastJsonLine(await run(process.execPath, args, limits(options)));
}

async function sendByWrk({ port, merchant }: Contender, options: LoadOptions): Promise<LoadResult> {
  const { concurrency, seconds } = options;
  const threads = Math.min(concurrency, availableParallelism(), 2);
  const script = join(import.meta.dirname, 'order.lua');
  const args = [
    ...['-t', threads, '-c', concurrency, '-d', seconds, '--timeout', wrkTimeoutSeconds, '-s', script],
    `http://127.0.0.1:${port}`,
  ];
  const env = {
    PATH: process.env.PATH,
    BENCH_RUN: `r${runs}`,
    BENCH_BODY: JSON.stringify({ ...order, order_id: 'ORDER_ID' }),
    BENCH_CLIENT_ID: merchant.clientId,
    BENCH_CLIENT_SECRET: merchant.clientSecret,
  };
  return lastJsonLine(await run('wrk', args.map(String), { ...limits(options), env }));
}

const pgbenchRow = rowExpressions({
  merchantId: ':merchant',
  serviceOrderId: ':id',
  orderToken: 'gen_random_uuid()::text',
  orderId: "'pgbench-' || :id",
});
/** One insert per transaction. Ids ascend, as those of a service do. */
const pgbenchScript = `\\set n :n + 1
\\set id :first + :client_id * 100000000 + :n
${insertFrom(`values (${pgbenchRow})`)} ${onConflictDoNothing};
`;

async function sendByPgbench({ databaseUrl, merchant }: Contender, options: LoadOptions): Promise<LoadResult> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'bench-pgbench-'));
  const script = join(folder.path, 'order.sql');
  await writeFile(script, pgbenchScript);
  const threads = Math.min(availableParallelism(), 2);
  const variables = { merchant: merchant.id, n: 0, first: firstPeerId + runs * 10_000_000_000 };
  const args = [
    ...['-n', '-M', 'prepared', '-c', pgbenchClients, '-j', threads, '-T', options.seconds, '-f', script],
    ...Object.entries(variables).flatMap(([name, value]) => ['-D', `${name}=${value}`]),
    databaseUrl,
  ];
  const output = await run('pgbench', args.map(String), limits(options));
  const number = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  const created = number(/actually processed: (\d+)/);
  const seconds = created / number(/tps = ([\d.]+)/);
  return { created, failed: number(/failed transactions: (\d+)/), seconds, p50Ms: Number.NaN, p99Ms: Number.NaN };
}

function limits({ seconds, signal }: LoadOptions): { timeoutSeconds: number; signal: AbortSignal } {
  return { timeoutSeconds: seconds + extraSeconds, signal };
}

function lastJsonLine(output: string): LoadResult {
  const result = output.split('\n').findLast((line) => line.startsWith('{'));
  if (result === undefined) throw new Error(`The load program printed no result:\n${output}`);
  return JSON.parse(result);
}
