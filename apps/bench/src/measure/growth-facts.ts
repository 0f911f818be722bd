import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AccountId } from '@order-gateway/domain/accounts';
import { createOrderToken } from '@order-gateway/domain/links';
import { openOrderStore } from '@order-gateway/postgres/order-store';
import type postgres from 'postgres';
import { connect } from '../database.ts';
import { median } from './sections.ts';

const reads = 101;
const timeoutMs = 5_000;

/** A table that `fillTable` filled, and the folder of its server's files. */
export interface GrownTable {
  readonly url: string;
  readonly dataDir: string;
  readonly merchantId: number;
  readonly rows: number;
}

/**
 * Yields a line for each cost that grows with the number of orders: sizes, reads, a vacuum, and a copy of the
 * files.
 */
export async function* growthFacts(table: GrownTable): AsyncGenerator<string, void> {
  await using sql = connect(table.url);
  const sizes = await sql`
    select relname as name, round(pg_relation_size(oid) / 1e6) as mb from pg_class
    where oid = 'orders'::regclass or oid in (select indexrelid from pg_index where indrelid = 'orders'::regclass)
    order by mb desc`;
  for (const { name, mb } of sizes) yield `${name}: ${mb} MB`;
  yield* readFacts(sql, table);
  const paying = sql`
    update orders set order_status = 'PAID', paid_at = now(), payment_id = 'p' where service_order_id % 100 = 0`;
  yield `every hundredth order paid: ${await secondsOf(() => paying)} s`;
  yield `vacuum after that: ${await secondsOf(() => sql`vacuum orders`)} s`;
  await using folder = await mkdtempDisposable(join(tmpdir(), 'bench-backup-'));
  const copying = await secondsOf(async () => {
    await sql`select pg_backup_start('bench', true)`;
    await promisify(execFile)('cp', ['-R', join(table.dataDir, 'postgres'), folder.path]);
    await sql`select pg_backup_stop()`;
  });
  yield `base backup by cp, between pg_backup_start and pg_backup_stop: ${copying} s`;
}

async function* readFacts(sql: postgres.Sql, { url, merchantId, rows }: GrownTable): AsyncGenerator<string, void> {
  const store = openOrderStore({ url });
  try {
    const merchant = merchantId as AccountId;
    const middle = Math.ceil(rows / 2);
    // The tokens of the filled rows name no merchant, so one row gets a token that does.
    const token = createOrderToken(merchant, randomBytes);
    const [row] = await sql`
      update orders set order_token = ${token} where service_order_id = ${middle} returning order_id, created_at`;
    const after = { createdAtMs: row?.created_at.getTime(), serviceOrderId: middle };
    const kinds = {
      'the first page of a list': () => store.list(merchant, { limit: 20 }, timeoutMs),
      'a page in the middle': () => store.list(merchant, { limit: 20, after }, timeoutMs),
      'a lookup by order_id': () => store.findByOrderId(merchant, row?.order_id, timeoutMs),
      'a lookup by service_order_id': () => store.findByServiceOrderId(merchant, middle, timeoutMs),
      'a payment page': () => store.findByToken(token, timeoutMs),
    };
    for (const [name, read] of Object.entries(kinds)) {
      const times: number[] = [];
      for (let run = 0; run < reads; run += 1) {
        const startedAt = performance.now();
        const { kind } = await read();
        if (kind !== 'found') throw new Error(`${name}: ${kind}`);
        times.push(performance.now() - startedAt);
      }
      yield `${name}: ${median(times).toFixed(2)} ms`;
    }
  } finally {
    await store.close();
  }
}

async function secondsOf(work: () => PromiseLike<unknown>): Promise<string> {
  const startedAt = performance.now();
  await work();
  return ((performance.now() - startedAt) / 1_000).toFixed(1);
}
