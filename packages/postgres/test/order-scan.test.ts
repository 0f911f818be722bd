import type { MerchantId } from '@gateway/domain/merchant';
import { newOrder } from '@gateway/domain/testing/sample-orders';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { scanOrders } from '../src/order-scan.ts';
import { openOrderStore, type PostgresOrderStore } from '../src/order-store.ts';
import { useTestDatabase } from '../testing/test-database.ts';

const [shop, neighbour] = [1, 2] as [MerchantId, MerchantId];

const database = useTestDatabase();
let store: PostgresOrderStore;

beforeAll(async () => {
  await database.sql`insert into merchants (name, client_id) values ('Shop', 'app_1'), ('Neighbour', 'app_2')`;
  store = openOrderStore({ url: database.url });
});

afterAll(() => store?.close());

async function create(merchantId: MerchantId, orderId: string) {
  const outcome = await store.create(newOrder(merchantId, { order_id: orderId }), 20_000);
  if (outcome.kind !== 'created') throw new Error(outcome.kind);
  return outcome.order;
}

test('returns all orders with the prefix over several pages, and no others', async () => {
  const orderIds = Array.from({ length: 4_050 }, (_, index) => `run_%-${index}`);
  const stored = await Promise.all(orderIds.map((orderId) => create(shop, orderId)));
  for (const stranger of ['run_%', 'run_x-1', 'RUN_%-1', 'a run_%-1']) await create(shop, stranger);
  await create(neighbour, 'run_%-1');

  const found = await Array.fromAsync(scanOrders(database.url, { merchantId: shop, orderIdPrefix: 'run_%-' }));
  const byId = (a: (typeof found)[number], b: (typeof found)[number]) => a.serviceOrderId - b.serviceOrderId;
  expect(found.toSorted(byId)).toEqual(stored.toSorted(byId));
}, 30_000);

test('closes its connection when its reader stops early', async () => {
  for await (const order of scanOrders(database.url, { merchantId: neighbour, orderIdPrefix: '' })) {
    expect(order.merchantId).toBe(neighbour);
    break;
  }
  const open = () => database.sql`select 1 from pg_stat_activity 
    where application_name = 'order-gateway scan' and datname = current_database()`;
  await expect.poll(async () => (await open()).length).toBe(0);
});
