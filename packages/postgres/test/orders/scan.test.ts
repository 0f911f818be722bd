import type { AccountId } from '@order-gateway/domain/accounts';
import type { Order } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { beforeAll, expect, test } from 'vitest';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { scanEvents, scanOrders } from '../../src/orders/operators/scan.ts';
import { createOrder } from '../../testing/contract-store.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const [shop, neighbour] = [1, 2] as [AccountId, AccountId];

const database = useTestDatabase();
const openStore = useOrderStores(database);
let store: PostgresOrderStore;

beforeAll(async () => {
  await database.sql`insert into accounts (name, client_id) values ('Shop', 'app_1'), ('Neighbour', 'app_2')`;
  store = openStore();
});

const create = (merchantId: AccountId, orderId: string) =>
  createOrder(store, sampleOrder(merchantId, { order_id: orderId }));

test('scanOrders returns all orders with the prefix over several pages, and no other orders', async () => {
  const orderIds = Array.from({ length: 4_050 }, (_, index) => `run_%-${index}`);
  const stored = await Promise.all(orderIds.map((orderId) => create(shop, orderId)));
  for (const other of ['run_%', 'run_x-1', 'RUN_%-1', 'a run_%-1']) await create(shop, other);
  await create(neighbour, 'run_%-1');

  const found = await Array.fromAsync(scanOrders(database.url, { merchantId: shop, orderIdPrefix: 'run_%-' }));
  const byId = (a: Order, b: Order) => a.serviceOrderId - b.serviceOrderId;
  expect(found.map(({ order }) => order).toSorted(byId)).toEqual(stored.toSorted(byId));
  expect(found.flatMap(({ sharedFields }) => sharedFields)).toEqual([]);
});

test('scanOrders closes its connection when its reader stops early', async () => {
  for await (const { order } of scanOrders(database.url, { merchantId: neighbour, orderIdPrefix: '' })) {
    expect(order.merchantId).toBe(neighbour);
    break;
  }
  const open = () => database.sql`select 1 from pg_stat_activity 
    where application_name = 'order-gateway scan' and datname = current_database()`;
  await expect.poll(async () => (await open()).length).toBe(0);
});

test('scanEvents returns the events about orders with the prefix over several pages, in the order of their ids, and no other events', async () => {
  const { sql } = database;
  const insert = (merchantId: AccountId, prefix: string, count: number) => sql`
    insert into events (merchant_id, event_id, type, created_at, order_id)
    select ${merchantId}, 'evt_' || ${prefix} || n,
      case when n % 2 = 0 then 'order.paid' else 'order.cancelled' end, now(), ${prefix} || n
    from generate_series(1, ${count}) n`;
  await insert(shop, 'run_%-', 5_001);
  for (const prefix of ['run_x-', 'RUN_%-', 'a run_%-']) await insert(shop, prefix, 2);
  await insert(neighbour, 'run_%-', 2);

  const found = await Array.fromAsync(scanEvents(database.url, { merchantId: shop, orderIdPrefix: 'run_%-' }));
  const expected = Array.from({ length: 5_001 }, (_, index) => index + 1)
    .map((n) => ({
      eventId: `evt_run_%-${n}`,
      type: n % 2 === 0 ? 'order.paid' : 'order.cancelled',
      orderId: `run_%-${n}`,
    }))
    .sort((a, b) => (a.eventId < b.eventId ? -1 : 1));
  expect(found.map(({ eventId, type, orderId }) => ({ eventId, type, orderId }))).toEqual(expected);
});
