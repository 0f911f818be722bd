import { describeOrderStore } from '@order-gateway/domain/testing/order-store-contract';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { createMerchantId, openContractStore } from '../../testing/contract-store.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { createPartitionedDatabase, partition } from '../../testing/partitioned-database.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;

const database = useTestDatabase(createPartitionedDatabase);
const openStore = useOrderStores(database);

describeOrderStore('the PostgreSQL order store on hash partitions', async () => openContractStore(database));

test('ids that turn out to be in use are replaced, although their key has a different name in each partition', async () => {
  const merchantId = await createMerchantId(database.sql);
  const store = openStore();
  await store.create(sampleOrder(merchantId, { order_id: 'first' }), enoughMs);
  await database.sql`
    insert into orders
    select (json_populate_record(o, json_build_object('service_order_id', service_order_id + 1, 'order_id', 'taken'))).*
    from orders o where merchant_id = ${merchantId}`;
  expect(await store.create(sampleOrder(merchantId, { order_id: 'next' }), enoughMs)).toMatchObject({
    kind: 'created',
  });
});

test('orders are spread over partitions, and a second run of the script changes nothing', async () => {
  const orders = () => database.sql`select *, tableoid::regclass::text as table from orders order by order_token`;
  const before = await orders();
  expect(new Set(before.map(({ table }) => table)).size).toBe(4);
  await expect(partition(database.url)).rejects.toThrow('relation "orders_0" already exists');
  expect(await orders()).toEqual(before);
});
