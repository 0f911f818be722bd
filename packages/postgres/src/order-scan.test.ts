import type { MerchantId } from '@gateway/domain/merchant';
import { newOrder } from '@gateway/domain/testing/sample-orders';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startThrowawayPostgres, type ThrowawayPostgres } from '../testing/throwaway-postgres.ts';
import { migrateDatabase } from './migrate.ts';
import { scanOrders } from './order-scan.ts';
import { openOrderStore, type PostgresOrderStore } from './order-store.ts';

const [shop, neighbour] = [1, 2] as [MerchantId, MerchantId];

let server: ThrowawayPostgres;
let store: PostgresOrderStore;

beforeAll(async () => {
  server = await startThrowawayPostgres();
  await migrateDatabase(server.url);
  const sql = postgres(server.url, { max: 1, onnotice: () => {} });
  await sql`insert into merchants (name, client_id) values ('Shop', 'app_1'), ('Neighbour', 'app_2')`;
  await sql.end({ timeout: 1 });
  store = openOrderStore({ url: server.url });
});

afterAll(async () => {
  await store?.close();
  await server?.stop();
});

async function keep(merchantId: MerchantId, orderId: string) {
  const order = newOrder(merchantId, { order_id: orderId });
  expect(await store.create(order, 20_000)).toEqual({ kind: 'created' });
  return order;
}

test('gives all orders with the prefix, whole, over more pages than one, and none of others', async () => {
  const orderIds = Array.from({ length: 4_050 }, (_, place) => `run_%-${place}`);
  const kept = await Promise.all(orderIds.map((orderId) => keep(shop, orderId)));
  for (const stranger of ['run_%', 'run_x-1', 'RUN_%-1', 'a run_%-1']) await keep(shop, stranger);
  await keep(neighbour, 'run_%-1');

  const found = await Array.fromAsync(scanOrders(server.url, { merchantId: shop, orderIdPrefix: 'run_%-' }));
  const byId = (a: (typeof found)[number], b: (typeof found)[number]) => a.serviceOrderId - b.serviceOrderId;
  expect(found.toSorted(byId)).toEqual(kept.toSorted(byId));
}, 30_000);

test('lets its connection go when its reader stops early', async () => {
  for await (const order of scanOrders(server.url, { merchantId: neighbour, orderIdPrefix: '' })) {
    expect(order.merchantId).toBe(neighbour);
    break;
  }
  const sql = postgres(server.url, { max: 1 });
  const open = () => sql`select 1 from pg_stat_activity where application_name = 'order-gateway scan'`;
  await expect.poll(async () => (await open()).length).toBe(0);
  await sql.end({ timeout: 1 });
});
