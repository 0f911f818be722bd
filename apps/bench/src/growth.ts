import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import type { Ground } from './bench.ts';
import { createMerchant, type Merchant, startGateway } from './contenders.ts';
import type { LoadResult } from './load.ts';
import type { BenchOptions } from './options.ts';
import { runRounds, type Standing } from './rounds.ts';
import { sendGrpc } from './senders.ts';
import { stored } from './stored.ts';

const concurrency = 64;
/** Rows in one bulk statement. */
const bulkRows = 500_000;
const memoryEveryMs = 10_000;
const warmUpSeconds = 5;

export interface GrowthReport {
  readonly date: string;
  readonly machine: string;
  /** At the gRPC door, with that many orders in the table before. */
  readonly byRows: readonly Standing[];
  readonly byProcesses: readonly Standing[];
  /** The gateway's resident memory in MiB under steady load. */
  readonly memoryMib: readonly number[];
}

/** Whose orders are sent, and where they are kept. */
interface Shop {
  readonly databaseUrl: string;
  readonly merchant: Merchant;
}

/** A gateway on a database of its own that had some orders before. */
interface Grown extends Shop {
  readonly name: string;
  readonly port: number;
  readonly pid: number;
}

/** How the rate holds as the table grows and with a second process, and whether memory stays flat. */
export async function growth(ground: Ground, options: BenchOptions): Promise<GrowthReport> {
  const { say } = ground;
  const grown: Grown[] = [];
  for (const rows of options.rows) grown.push(await grow(ground, rows));
  const byRows = await runRounds(grown, options.rounds, async (shop, round) => {
    const { name, port } = shop;
    say(`round ${round + 1} of ${options.rounds}: ${name}`);
    return sendToAll([port], shop, options.seconds, `${name}-${round}`);
  });
  const [first] = grown;
  if (first === undefined) throw new Error('--rows names no number of orders');
  const second = await startGateway(first.databaseUrl);
  const processes = [
    { name: '1 process', ports: [first.port] },
    { name: '2 processes', ports: [first.port, second.grpc] },
  ];
  const byProcesses = await runRounds(processes, options.rounds, ({ name, ports }, round) =>
    sendToAll(ports, first, options.seconds, `${name}-${round}`),
  );
  for (const { name, ordersPerSecond, p99Ms } of [...byRows, ...byProcesses]) {
    say(`${name}: ${Math.round(ordersPerSecond)} orders/s, p99 ${p99Ms.toFixed(1)} ms`);
  }
  const memoryMib = await watchMemory(ground, options, first);
  return { date: ground.date, machine: ground.machine, byRows, byProcesses, memoryMib };
}

async function grow({ createDatabase, say }: Ground, rows: number): Promise<Grown> {
  const databaseUrl = await createDatabase();
  const merchant = await createMerchant(databaseUrl, 'Gateway');
  say(`filling a table with ${rows} orders`);
  await loadRows(databaseUrl, rows);
  const { server, grpc } = await startGateway(databaseUrl);
  await sendToAll([grpc], { databaseUrl, merchant }, warmUpSeconds, 'warm');
  return { name: `${rows} orders before`, databaseUrl, merchant, port: grpc, pid: server.pid };
}

/** The same calls under way in all, shared by the processes. Exported for its own test: what counts is found in the database. */
export async function sendToAll(
  ports: readonly number[],
  { databaseUrl, merchant }: Shop,
  seconds: number,
  run: string,
): Promise<LoadResult> {
  const sql = postgres(databaseUrl, { max: 1 });
  try {
    return await stored(sql, merchant.id, () => sendToEach(ports, merchant, seconds, run));
  } finally {
    await sql.end();
  }
}

async function sendToEach(ports: readonly number[], merchant: Merchant, seconds: number, run: string) {
  const results = await Promise.all(
    ports.map((port, index) =>
      sendGrpc({
        ...{ port, credentials: merchant.credentials, seconds },
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

/** Fills the table with orders of another merchant, with keys and tokens spread as real ones are. */
async function loadRows(databaseUrl: string, rows: number): Promise<void> {
  if (rows === 0) return;
  const { id } = await createMerchant(databaseUrl, `${rows} orders`);
  const sql = postgres(databaseUrl, { max: 1 });
  // Indexes are built after the rows, in a fraction of the time.
  await sql`drop index orders_order_token`;
  await sql`alter table orders drop constraint orders_merchant_id_service_order_id`;
  await sql`alter table orders drop constraint orders_merchant_id_order_id_pk`;
  for (let start = 0; start < rows; start += bulkRows) {
    await sql`insert into orders select ${id}::bigint, n + 1000000000000, md5(n::text), 'UN_PAID', now(), md5('id' || n), 1249.50, 'EUR',
      'Two walnut shelves and one reading lamp', 'PHYSICAL_GOODS', 'Noor van der Linden', 'noor.vanderlinden@example.com',
      '+31 20 555 0142', 'Lindengracht 88', 'Second floor', 'Amsterdam', 'Noord-Holland', 'Netherlands', '1015 KK',
      'made-by-the-shop-7d1c', 'https://shop.example.com/checkout/return?cart=5521'
      from generate_series(${start}::bigint, ${Math.min(start + bulkRows, rows) - 1}::bigint) n`;
  }
  await sql`alter table orders add constraint orders_merchant_id_order_id_pk primary key (merchant_id, order_id)`;
  await sql`alter table orders add constraint orders_merchant_id_service_order_id unique (merchant_id, service_order_id)`;
  await sql`create index orders_order_token on orders (order_token)`;
  await sql`vacuum (analyze) orders`;
  await sql`checkpoint`;
  await sql.end();
}

async function watchMemory({ say }: Ground, { memoryMinutes }: BenchOptions, shop: Grown): Promise<number[]> {
  const memoryMib: number[] = [];
  const seconds = memoryMinutes * 60;
  if (seconds === 0) return memoryMib;
  let isOver = false;
  const load = sendToAll([shop.port], shop, seconds, 'memory').finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await sleep(memoryEveryMs);
    memoryMib.push(await residentMib(shop.pid));
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
