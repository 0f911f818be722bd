import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import type { Ground } from './bench.ts';
import { createMerchant, type Merchant, startGateway } from './contenders.ts';
import type { BenchOptions } from './options.ts';
import { runRounds, type Standing } from './rounds.ts';
import { sendGrpc } from './senders.ts';

const concurrency = 64;
/** Rows in one bulk statement. */
const bulkRows = 500_000;
const memoryEveryMs = 10_000;

export interface GrowthReport {
  readonly date: string;
  readonly machine: string;
  /** At the gRPC door, with that many orders in the table before. */
  readonly byRows: Readonly<Record<string, Standing>>;
  readonly byProcesses: Readonly<Record<string, Standing>>;
  /** The gateway's resident memory in MiB under steady load. */
  readonly memoryMib: readonly number[];
}

/** How the rate holds as the table grows and with a second process, and whether memory stays flat. */
export async function growth(ground: Ground, options: BenchOptions): Promise<GrowthReport> {
  const { databaseUrl, say } = ground;
  const merchant = await createMerchant(databaseUrl, 'Gateway');
  const gateways = [await startGateway(databaseUrl), await startGateway(databaseUrl)];
  const [first, second] = gateways.map(({ grpc }) => grpc);
  const rates = async (name: string, ports: readonly (number | undefined)[]) => {
    const [standing] = await runRounds([{ name }], options.rounds, (_, round) =>
      sendToAll(ports, merchant, options.seconds, `${name}-${round}`),
    );
    if (standing === undefined) throw new Error('no round was run');
    say(`${name}: ${Math.round(standing.ordersPerSecond)} orders/s, p99 ${standing.p99Ms.toFixed(1)} ms`);
    return standing;
  };
  await sendToAll([first, second], merchant, 3, 'warm');
  const byProcesses = { '1': await rates('1-process', [first]), '2': await rates('2-processes', [first, second]) };
  const byRows: Record<string, Standing> = {};
  let loaded = 0;
  for (const rows of options.rows) {
    await loadRows(databaseUrl, loaded, rows);
    loaded = rows;
    byRows[rows] = await rates(`${rows}-rows`, [first]);
  }
  const memoryMib = await watchMemory(ground, options, gateways[0]?.server.pid ?? 0, first, merchant);
  return { date: ground.date, machine: ground.machine, byRows, byProcesses, memoryMib };
}

/** The same calls under way in all, shared by the processes. */
async function sendToAll(ports: readonly (number | undefined)[], merchant: Merchant, seconds: number, run: string) {
  const results = await Promise.all(
    ports.map((port, index) =>
      sendGrpc({
        ...{ port: port ?? 0, credentials: merchant.credentials, seconds },
        ...{ concurrency: concurrency / ports.length, run: `${run}-${index}` },
      }),
    ),
  );
  return {
    answers: results.reduce((sum, { answers }) => sum + answers, 0),
    failed: results.reduce((sum, { failed }) => sum + failed, 0),
    durationMs: Math.max(...results.map(({ durationMs }) => durationMs)),
    p50Ms: Math.max(...results.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...results.map(({ p99Ms }) => p99Ms)),
  };
}

/** Fills the table up to that many orders of another merchant, with keys and tokens spread as real ones are. */
async function loadRows(databaseUrl: string, from: number, to: number): Promise<void> {
  if (to <= from) return;
  const { id } = await createMerchant(databaseUrl, `Rows ${to}`);
  const sql = postgres(databaseUrl, { max: 1 });
  for (let start = from; start < to; start += bulkRows) {
    await sql`insert into orders select ${id}::bigint, n + 1000000000000, md5(n::text), 'UN_PAID', now(), md5('id' || n), 1249.50, 'EUR',
      'Two walnut shelves and one reading lamp', 'PHYSICAL_GOODS', 'Noor van der Linden', 'noor.vanderlinden@example.com',
      '+31 20 555 0142', 'Lindengracht 88', 'Second floor', 'Amsterdam', 'Noord-Holland', 'Netherlands', '1015 KK',
      'made-by-the-shop-7d1c', 'https://shop.example.com/checkout/return?cart=5521'
      from generate_series(${start}::bigint, ${Math.min(start + bulkRows, to) - 1}::bigint) n`;
  }
  await sql`vacuum (analyze) orders`;
  await sql`checkpoint`;
  await sql.end();
}

async function watchMemory(
  { say }: Ground,
  { memoryMinutes }: BenchOptions,
  pid: number,
  port: number | undefined,
  merchant: Merchant,
): Promise<number[]> {
  const memoryMib: number[] = [];
  const seconds = memoryMinutes * 60;
  if (seconds === 0) return memoryMib;
  let isOver = false;
  const load = sendToAll([port], merchant, seconds, 'memory').finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await sleep(memoryEveryMs);
    memoryMib.push(await residentMib(pid));
    say(`memory after ${(memoryMib.length * memoryEveryMs) / 1_000} s: ${memoryMib.at(-1)?.toFixed(0)} MiB`);
  }
  await load;
  return memoryMib;
}

/** Linux only; elsewhere it is not known. */
async function residentMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) / 1_024;
}
