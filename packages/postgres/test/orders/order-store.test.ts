import type { AccountId } from '@order-gateway/domain/accounts';
import { type CreateOutcome, idBlockSize } from '@order-gateway/domain/orders';
import { describeOrderStore } from '@order-gateway/domain/testing/order-store-contract';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { expect, onTestFinished, test } from 'vitest';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { skipLock } from '../../src/orders/create/order-ids.ts';
import { queueLimits } from '../../src/queue-limits.ts';
import { orders } from '../../src/schema.ts';
import {
  countOrders as countOrdersOf,
  createMerchantId,
  createOrder,
  openContractStore,
} from '../../testing/contract-store.ts';
import { startChangingProxy } from '../../testing/database-proxy.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;

const database = useTestDatabase();
const openStore = useOrderStores(database);

const newMerchantId = () => createMerchantId(database.sql);
const countOrders = (merchantId: AccountId) => countOrdersOf(database.sql, merchantId);

/** Returns the kind of each outcome, or the message of its error. */
function outcomesOf(creating: readonly Promise<CreateOutcome>[]): Promise<string[]> {
  return Promise.all(
    creating.map((creation) => creation.then(({ kind }) => kind).catch((error: Error) => error.message)),
  );
}

describeOrderStore('the PostgreSQL order store', async () => openContractStore(database));

test('two stores that create the same order_ids at the same time store one order per order_id and return it to every call', async () => {
  const merchantId = await newMerchantId();
  const stores = [openStore(), openStore()];
  const orderIds = Array.from({ length: 200 }, (_, index) => `race-${(index * 7919) % 200}`);
  const calls = stores.flatMap((store) =>
    orderIds.map(async (orderId) => {
      const order = sampleOrder(merchantId, { order_id: orderId });
      return { orderId, order, outcome: await store.create(order, enoughMs) };
    }),
  );
  const results = await Promise.all(calls);
  for (const orderId of orderIds) {
    const pair = results.filter((result) => result.orderId === orderId);
    const created = pair.filter(({ outcome }) => outcome.kind === 'created');
    const exists = pair.flatMap(({ outcome }) => (outcome.kind === 'exists' ? [outcome.order] : []));
    expect([created.length, exists.length]).toEqual([1, 1]);
    expect(exists[0]).toEqual({ ...created[0]?.order, serviceOrderId: expect.any(Number) });
  }
  expect(await countOrders(merchantId)).toBe(200);
});

test('amounts are exact decimals in the database too, so that sums are exact', async () => {
  const merchantId = await newMerchantId();
  const store = openStore();
  for (const amount of [0.1, 0.2, 9_999_999_999_999.99]) {
    await store.create(sampleOrder(merchantId, { order_id: `${amount}`, order_amount: amount }), enoughMs);
  }
  const [row] = await database.sql`select sum(order_amount)::text as sum from orders where merchant_id = ${merchantId}`;
  expect(row?.sum).toBe('10000000000000.29');
});

test('a row that the database rejects fails alone', async () => {
  const merchantId = await newMerchantId();
  const store = openStore();
  const unknownMerchant = 9_000_000_000 as AccountId;
  const outcomes = await outcomesOf([
    store.create(sampleOrder(merchantId, { order_id: 'good-1' }), enoughMs),
    store.create(sampleOrder(unknownMerchant, { order_id: 'bad' }), enoughMs),
    store.create(sampleOrder(merchantId, { order_id: 'good-2' }), enoughMs),
  ]);
  expect(outcomes).toEqual([
    'created',
    'the database rejected a statement: 23503 orders_merchant_id_accounts_id_fk orders',
    'created',
  ]);
});

const createWithOrderId = (store: PostgresOrderStore, merchantId: AccountId, orderId: string) =>
  createOrder(store, sampleOrder(merchantId, { order_id: orderId }));

test('ids that turn out to be in use are replaced by a new block, and no call fails', async () => {
  const merchantId = await newMerchantId();
  const store = openStore();
  const { serviceOrderId } = await createWithOrderId(store, merchantId, 'first');
  // These orders use the rest of the block.
  await database.sql`
    insert into orders
    select (json_populate_record(o, json_build_object('service_order_id', n, 'order_id', 'taken ' || n))).*
    from orders o, generate_series(${serviceOrderId}::bigint + 1, ${serviceOrderId}::bigint + ${idBlockSize}) n
    where merchant_id = ${merchantId} and order_id = 'first'`;
  const orders = await Promise.all(
    Array.from({ length: 40 }, (_, index) => createWithOrderId(store, merchantId, `next-${index}`)),
  );
  for (const order of orders) expect(order.serviceOrderId).toBeGreaterThan(serviceOrderId + idBlockSize);
});

test('no id is assigned twice, across all merchants and processes, even if the sequence is set back', async () => {
  const merchantIds = await Promise.all(Array.from({ length: 4 }, () => newMerchantId()));
  const before = [openStore(), openStore()];
  const createSome = (stores: PostgresOrderStore[], name: string) =>
    Promise.all(
      Array.from({ length: 80 }, (_, index) => {
        const [store, merchantId] = [stores[index % stores.length], merchantIds[index % 4]];
        if (store === undefined || merchantId === undefined) throw new Error('there is no such store');
        return createWithOrderId(store, merchantId, `${name}-${index}`);
      }),
    );
  const orders = await createSome(before, 'before');
  await database.sql`select setval('service_order_id_blocks', 1)`;
  orders.push(...(await createSome([openStore(), openStore(), ...before], 'after')));
  expect(new Set(orders.map(({ serviceOrderId }) => serviceOrderId)).size).toBe(160);
});

test('an id far above the sequence stops no process, and the sequence never moves back', async () => {
  const merchantId = await newMerchantId();
  const { serviceOrderId: usual } = await createWithOrderId(openStore(), merchantId, 'usual');
  const far = usual + 1e14;
  await database.sql`update orders set service_order_id = ${far} where merchant_id = ${merchantId}`;
  const moved = Math.ceil(far / idBlockSize) + 1_000;
  const session = await database.sql.reserve();
  onTestFinished(() => session.release());
  await session`select pg_advisory_lock(${skipLock})`;
  const creating = [1, 2, 3, 4].map((number) => createWithOrderId(openStore(), merchantId, `far-${number}`));
  const waiting = () => session`select from pg_locks where locktype = 'advisory' and not granted`;
  await expect.poll(waiting).toHaveLength(creating.length);
  // Another process has moved the sequence first.
  await session`select setval('service_order_id_blocks', ${moved})`;
  await session`select pg_advisory_unlock(${skipLock})`;
  const blocks = (await Promise.all(creating)).map(({ serviceOrderId }) => Math.ceil(serviceOrderId / idBlockSize));
  expect(new Set(blocks).size).toBe(creating.length);
  expect(Math.min(...blocks)).toBeGreaterThan(moved);
});

test('the ids of a lost connection are not used again, because the next connection may lead to another server', async () => {
  const merchantId = await newMerchantId();
  const store = openStore();
  const first = await createWithOrderId(store, merchantId, 'first');
  expect((await createWithOrderId(store, merchantId, 'second')).serviceOrderId).toBe(first.serviceOrderId + 1);
  const [end] = await database.sql`select last_value::float8 as block from service_order_id_blocks`;
  await database.sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'order-gateway orders' and datname = current_database()`;
  const sendAgain = async () => (await store.create(sampleOrder(merchantId, { order_id: 'third' }), enoughMs)).kind;
  await expect.poll(sendAgain).toBe('exists');
  const third = await store.findByOrderId(merchantId, 'third', enoughMs);
  if (third.kind !== 'found') throw new Error(third.kind);
  expect(third.order.serviceOrderId).toBeGreaterThan(end?.block * idBlockSize);
});

test('an order is created even if an existing order in its batch cannot be read', async () => {
  const merchantId = await newMerchantId();
  await database.sql`create role writer login password 'writer'`;
  await database.sql`grant insert, select (merchant_id, order_id, service_order_id) on orders to writer`;
  await database.sql`grant usage on sequence service_order_id_blocks to writer`;
  const url = Object.assign(new URL(database.url), { username: 'writer', password: 'writer' }).href;
  const store = openStore({ url });
  expect((await store.create(sampleOrder(merchantId, { order_id: 'there' }), enoughMs)).kind).toBe('created');
  const outcomes = await outcomesOf([
    store.create(sampleOrder(merchantId, { order_id: 'there' }), enoughMs),
    store.create(sampleOrder(merchantId, { order_id: 'new' }), enoughMs),
  ]);
  // A missing privilege is the operator's to grant: the order can be sent again.
  expect(outcomes).toEqual(['unavailable', 'created']);
});

test('an order counts as created only if its own row is returned, even if the database sends an extra response', async () => {
  const merchantId = await newMerchantId();
  let isDoubled = false;
  const proxy = await startChangingProxy(database.url, (chunk) => {
    const changed = isDoubled ? Buffer.concat([Buffer.from('Z\0\0\0\x05I'), chunk]) : chunk;
    isDoubled = false;
    return changed;
  });
  onTestFinished(() => proxy.close());
  const store = openStore({ url: proxy.url, limits: { ...queueLimits.orders, batchMax: 1 } });
  await store.create(sampleOrder(merchantId, { order_id: 'before' }), enoughMs);
  isDoubled = true;
  const unknownMerchant = 9_000_000_000 as AccountId;
  const [, rejected] = await Promise.all([
    store.create(sampleOrder(merchantId, { order_id: 'good' }), enoughMs),
    store.create(sampleOrder(unknownMerchant, { order_id: 'bad' }), enoughMs),
  ]);
  expect(rejected.kind).toBe('unavailable');
});

test('a database that was read-only for a while creates orders again', async () => {
  const merchantId = await newMerchantId();
  await database.sql`create role failing_over superuser login password 'writer'`;
  const store = openStore({
    url: Object.assign(new URL(database.url), { username: 'failing_over', password: 'writer' }).href,
  });
  const kindOf = async () => (await store.create(sampleOrder(merchantId, { order_id: 'one' }), enoughMs)).kind;
  await database.sql`alter role failing_over set default_transaction_read_only = on`;
  expect([await kindOf(), await kindOf()]).toEqual(['unavailable', 'unavailable']);
  await database.sql`alter role failing_over reset default_transaction_read_only`;
  await expect.poll(kindOf).not.toBe('unavailable');
});

test.each([
  { kills: 200, processes: 8 },
  { kills: 50, processes: 1 },
])(
  'after $kills kills of backends (stores: $processes), no acknowledged order is lost, and no call hangs',
  async ({ kills, processes }) => {
    const merchantId = await newMerchantId();
    const stores = Array.from({ length: processes }, () =>
      openStore({ limits: { ...queueLimits.orders, batchMax: 4 } }),
    );
    const create = (orderId: string, index: number) =>
      (stores[index % processes] ?? openStore()).create(sampleOrder(merchantId, { order_id: orderId }), enoughMs);
    const acknowledged: string[] = [];
    const unknown: string[] = [];
    let killed = 0;
    const killer = (async () => {
      while (killed < kills) {
        const victims = await database.sql`
        select pg_terminate_backend(pid) from pg_stat_activity
          where application_name = 'order-gateway orders' and datname = current_database()`;
        killed += victims.length;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    for (let round = 0; killed < kills; round += 1) {
      await Promise.all(
        Array.from({ length: 25 }, async (_, index) => {
          const orderId = `killed-${round}-${index}`;
          const { kind } = await create(orderId, index);
          (kind === 'created' ? acknowledged : unknown).push(orderId);
          if (kind !== 'created') expect(kind).toBe('unavailable');
        }),
      );
    }
    await killer;
    const rows = await drizzle({ client: database.sql })
      .select({ id: orders.order_id })
      .from(orders)
      .where(eq(orders.merchantId, merchantId));
    const stored = new Set(rows.map(({ id }) => id));
    expect(acknowledged.filter((orderId) => !stored.has(orderId))).toEqual([]);
    expect(unknown.length).toBeGreaterThan(0);
    // A merchant sends the same order_id again until it gets an outcome. One attempt may not be enough, because the
    // last connections have only just been killed.
    const sendAgain = async (orderId: string, index: number) => {
      for (let attempt = 0; attempt < 10; attempt += 1) {
        const { kind } = await create(orderId, index);
        if (kind !== 'unavailable') return kind;
      }
      return 'unavailable';
    };
    const outcomes = new Set(await Promise.all(unknown.map(sendAgain)));
    expect(outcomes.difference(new Set(['created', 'exists']))).toEqual(new Set());
    expect(await countOrders(merchantId)).toBe(acknowledged.length + unknown.length);
  },
);
