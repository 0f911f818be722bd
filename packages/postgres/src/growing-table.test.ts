import type { MerchantId } from '@gateway/domain/merchant';
import { newOrder } from '@gateway/domain/testing/sample-orders';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startThrowawayPostgres, type ThrowawayPostgres } from '../testing/throwaway-postgres.ts';
import { migrateDatabase } from './migrate.ts';
import { openOrderStore } from './order-store.ts';

const enoughMs = 20_000;

/** From this run on PostgreSQL may keep the plan of a prepared statement (manual, PREPARE). */
const runsUntilKept = 6;

let server: ThrowawayPostgres;
let sql: postgres.Sql;

beforeAll(async () => {
  server = await startThrowawayPostgres();
  await migrateDatabase(server.url);
  sql = postgres(server.url, { max: 1, onnotice: () => {} });
  // As in the first minute of a database, but for as long as the test takes.
  await sql`alter table orders set (autovacuum_enabled = false)`;
});

afterAll(async () => {
  await sql?.end({ timeout: 1 });
  await server?.stop();
});

test('orders are found over their indexes also where the table was empty when the first were looked for', async () => {
  const store = openOrderStore({ url: server.url });
  const [merchant] = await sql`insert into merchants (name, client_id) values ('Shop', 'app') returning id::int`;
  const merchantId = merchant?.id as MerchantId;
  const order = newOrder(merchantId, { order_id: 'first' });
  await store.create(order, enoughMs);
  const findEveryWay = async () => [
    await store.create(newOrder(merchantId, { order_id: 'first' }), enoughMs),
    await store.findByOrderId(merchantId, 'first', enoughMs),
    await store.findByServiceOrderId(merchantId, order.serviceOrderId, enoughMs),
    await store.findByToken(order.orderToken, enoughMs),
  ];
  for (let run = 0; run < runsUntilKept; run += 1) await findEveryWay();
  const orderIds = Array.from({ length: 2_000 }, (_, place) => `order-${place}`);
  await Promise.all(orderIds.map((order_id) => store.create(newOrder(merchantId, { order_id }), enoughMs)));
  expect((await findEveryWay()).map(({ kind }) => kind)).toEqual(['exists', 'found', 'found', 'found']);
  await store.close();
  await expect.poll(connectionsOfStores).toBe(0);
  expect(await rowsReadWhole()).toBeLessThan(orderIds.length);
});

async function connectionsOfStores(): Promise<number> {
  const rows = await sql`select 1 from pg_stat_activity where application_name like 'order-gateway %'`;
  return rows.length;
}

/** Rows that were read by going through the whole table, as connections that have ended told it. */
async function rowsReadWhole(): Promise<number> {
  const [row] = await sql`select seq_tup_read::int as rows from pg_stat_user_tables where relname = 'orders'`;
  return row?.rows;
}
