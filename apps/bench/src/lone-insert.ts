import postgres from 'postgres';
import { type LoadResult, percentile } from './load.ts';

export interface LoneInsertOptions {
  readonly databaseUrl: string;
  readonly merchantId: number;
  readonly seconds: number;
  /** The id of the first order; the next ones count on from it. */
  readonly firstId: number;
}

/** One prepared insert after the other on one connection of the gateway's driver: what a commit costs. */
export async function runLoneInserts({
  databaseUrl,
  merchantId,
  seconds,
  firstId,
}: LoneInsertOptions): Promise<LoadResult> {
  const sql = postgres(databaseUrl, { max: 1 });
  const times: number[] = [];
  const startedAt = performance.now();
  try {
    for (let id = firstId; performance.now() - startedAt < seconds * 1_000; id += 1) {
      const sentAt = performance.now();
      await insertLone(sql, merchantId, id);
      times.push(performance.now() - sentAt);
    }
  } finally {
    await sql.end();
  }
  const durationMs = performance.now() - startedAt;
  times.sort((a, b) => a - b);
  return { answers: times.length, failed: 0, durationMs, p50Ms: percentile(times, 50), p99Ms: percentile(times, 99) };
}

/** Inserts one order with a statement that the driver prepares. */
export function insertLone(sql: postgres.Sql, merchantId: number, id: number) {
  return sql`insert into orders values (${merchantId}, ${id}, 'Kx7dQ2mZp0LrT9vYc4HsW8nBf3GjUe6A', 'UN_PAID',
    ${new Date()}, ${`lone-${id}`}, '1249.50', 'EUR', ${'Two walnut shelves and one reading lamp'}, 'PHYSICAL_GOODS',
    ${'Noor van der Linden'}, ${'noor.vanderlinden@example.com'}, ${'+31 20 555 0142'}, ${'Lindengracht 88'},
    ${'Second floor'}, ${'Amsterdam'}, ${'Noord-Holland'}, ${'Netherlands'}, ${'1015 KK'}, ${'made-by-the-shop-7d1c'},
    ${'https://shop.example.com/checkout/return?cart=5521'}) on conflict do nothing returning service_order_id`;
}
