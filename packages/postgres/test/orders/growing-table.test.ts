import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventFilter } from '@order-gateway/domain/events';
import {
  countedOrdersMax,
  type Order,
  type OrderFilter,
  type OrderPosition,
  orderStatuses,
  transitions,
} from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import type { DeliveryListFilter } from '@order-gateway/domain/webhooks';
import { beforeAll, describe, expect, test } from 'vitest';
import { openOrderStore, type PostgresOrderStore } from '../../src/order-store.ts';
import { openWebhookEndpoints } from '../../src/webhooks/webhook-endpoints.ts';
import { createMerchantId, createOrder } from '../../testing/contract-store.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;

/** From this run on, PostgreSQL may cache the plan of a prepared statement (manual, PREPARE). */
const runsUntilCached = 6;

const database = useTestDatabase();

// The table has no statistics until a test collects them, as in the first minute of a database.
beforeAll(() => database.sql`alter table orders set (autovacuum_enabled = false)`);

test('orders are found, listed and changed by index even if the table was almost empty at the first lookups', async () => {
  const store = openOrderStore(database.options);
  const merchantId = await createMerchantId(database.sql);
  const order = await createOrder(store, sampleOrder(merchantId, { order_id: 'first' }));
  // The change is from a state that the order is not in, so the statement finds the order but changes nothing.
  const stale = {
    transition: transitions.payLate,
    order: { ...order, payment: { checkoutId: null, paymentId: 'p', paidAtMs: 1 } },
  };
  const runEveryStatement = async () => [
    await store.create(sampleOrder(merchantId, { order_id: 'first' }), enoughMs),
    await store.findByOrderId(merchantId, 'first', enoughMs),
    await store.findByServiceOrderId(merchantId, order.serviceOrderId, enoughMs),
    await store.findByPaymentId(merchantId, 'p-1', enoughMs),
    await store.findByToken(order.orderToken, enoughMs),
    await store.change(stale, enoughMs),
    await store.list(merchantId, { limit: 20, createdToMs: 1 }, enoughMs),
    await store.list(merchantId, { limit: 20, createdToMs: 1, status: 'EXPIRED' }, enoughMs),
    await store.list(merchantId, { limit: 20, metadata: { a: 'b', c: 'd' } }, enoughMs),
    await store.countByDay(merchantId, 0, enoughMs),
    await store.list(merchantId, { limit: 20, currency: 'JPY' }, enoughMs),
    await store.listEvents(merchantId, { limit: 20 }, enoughMs),
  ];
  for (let run = 0; run < runsUntilCached; run += 1) await runEveryStatement();
  const orderIds = Array.from({ length: 2_000 }, (_, index) => `order-${index}`);
  const orders = await Promise.all(
    orderIds.map((order_id) => createOrder(store, sampleOrder(merchantId, { order_id }))),
  );
  // A batch of orders at the end of the table, so small that a scan of the table never pays off.
  const latest = orders.slice(-4);
  const lookups: readonly ((order: Order) => Promise<{ readonly kind: string }>)[] = [
    ({ fields }) => store.findByOrderId(merchantId, fields.order_id, enoughMs),
    ({ serviceOrderId }) => store.findByServiceOrderId(merchantId, serviceOrderId, enoughMs),
    ({ orderToken }) => store.findByToken(orderToken, enoughMs),
    ({ fields: { order_id } }) => store.create(sampleOrder(merchantId, { order_id }), enoughMs),
  ];
  for (const lookup of lookups) {
    const kinds = (await Promise.all(latest.map(lookup))).map(({ kind }) => kind);
    expect(new Set(kinds).difference(new Set(['found', 'exists']))).toEqual(new Set());
  }
  expect((await runEveryStatement()).map(({ kind }) => kind)).toEqual([
    ...['exists', 'found', 'found', 'unknown', 'found'],
    ...['conflict', 'found', 'found', 'found', 'found', 'found', 'found'],
  ]);
  await store.close();
  await expect.poll(connectionsOfStores).toBe(0);
  expect(await rowsReadByScans()).toBeLessThan(orderIds.length);
});

test('a page of orders with a pair of metadata and a second filter reads a limited number of rows, and the next page continues where it ended', async () => {
  const merchantId = await createMerchantId(database.sql);
  const store = openOrderStore(database.options);
  const count = 3_000;
  const createdAtMs = Date.now();
  const creating = Array.from({ length: count }, (_, index) =>
    createOrder(store, {
      ...sampleOrder(merchantId, { order_id: `pair-${index}` }, { shop: 'a', [index === 0 ? 'rare' : 'half']: 'b' }),
      createdAtMs: createdAtMs + index,
    }),
  );
  const [oldest] = await Promise.all(creating);
  const before = await rowsRead('order_metadata');
  const rare = await store.list(merchantId, { metadata: { shop: 'a', rare: 'b' }, limit: 20 }, enoughMs);
  expect(rare).toMatchObject({ kind: 'found', orders: [oldest] });
  let after: OrderPosition | undefined;
  let pages = 0;
  do {
    const page = await store.list(merchantId, { metadata: { shop: 'a' }, status: 'PAID', after, limit: 20 }, enoughMs);
    if (page.kind !== 'found') throw new Error(page.kind);
    expect(page.orders).toEqual([]);
    after = page.scannedTo;
    pages += 1;
  } while (after !== undefined);
  await store.close();
  await expect.poll(connectionsOfStores).toBe(0);
  expect(pages).toBe(4);
  expect((await rowsRead('order_metadata')) - before).toBeLessThan(2 * count);
});

test('a page of orders in one currency reads a limited number of orders, and the next page continues where it ended', async () => {
  const merchantId = await createMerchantId(database.sql);
  const store = openOrderStore(database.options);
  const oldest = {
    ...sampleOrder(merchantId, { order_id: 'rare', order_currency: 'JPY', order_amount: 5 }),
    createdAtMs: 1,
  };
  const { order: rare } = (await store.create(oldest, enoughMs)) as { order: Order };
  const { orderToken } = await createOrder(store, sampleOrder(merchantId, { order_id: 'usual' }));
  await database.sql`
    insert into orders select (jsonb_populate_record(orders, jsonb_build_object(
      'service_order_id', service_order_id + n, 'order_id', 'usual-' || n, 'created_at', created_at + n * interval '1 ms'))).*
    from orders, generate_series(1, 3000) as n where order_token = ${orderToken}`;
  await database.sql`analyze orders`;
  const before = await rowsRead('orders');
  const found: Order[] = [];
  let after: OrderPosition | undefined;
  let pages = 0;
  do {
    const page = await store.list(merchantId, { currency: 'JPY', after, limit: 20 }, enoughMs);
    if (page.kind !== 'found') throw new Error(page.kind);
    found.push(...page.orders);
    after = page.scannedTo;
    pages += 1;
  } while (after !== undefined);
  await store.close();
  await expect.poll(connectionsOfStores).toBe(0);
  expect([found, pages]).toEqual([[rare], 4]);
  // Each order is read once, and the found ones once more.
  expect((await rowsRead('orders')) - before).toBeLessThan(3_100);
});

test('counting by day reads the newest orders, and no more of them than the limit', async () => {
  const merchantId = await createMerchantId(database.sql);
  const store = openOrderStore(database.options);
  const { orderToken } = await createOrder(store, sampleOrder(merchantId, { order_id: 'copied' }));
  const startMs = Date.now();
  // The copies alternate between three statuses.
  await database.sql`
    insert into orders select (jsonb_populate_record(orders, jsonb_build_object(
      'service_order_id', service_order_id + n, 'order_id', 'copy-' || n, 'created_at', to_timestamp(${startMs / 1_000}) - n * interval '1 s',
      'order_status', (array['UN_PAID', 'EXPIRED', 'CANCELLED'])[1 + n % 3],
      'cancelled_at', case when n % 3 = 2 then now() end))).*
    from orders, generate_series(1, ${countedOrdersMax + 5_000}::int) as n where order_token = ${orderToken}`;
  const before = await rowsRead('orders');
  const counted = await store.countByDay(merchantId, startMs - 86_400_000, enoughMs);
  if (counted.kind !== 'found') throw new Error(counted.kind);
  await store.close();
  await expect.poll(connectionsOfStores).toBe(0);
  expect(counted.days.reduce((sum, { created }) => sum + created, 0)).toBe(countedOrdersMax);
  expect(counted.cutOffMs).toBe(startMs - countedOrdersMax * 1_000);
  // One more order of each status is read, and a few rows for other statements.
  expect((await rowsRead('orders')) - before).toBeLessThan(countedOrdersMax + 100);
});

test('old events are found by index, even if many were deleted and newer ones are in their place', async () => {
  const merchantId = await createMerchantId(database.sql);
  const storeEvents = async (days: number, count: number) => {
    await database.sql`
      insert into events select ${merchantId}, gen_random_uuid(), null, 'order.paid',
        now() - ${days} * interval '1 day', 'first' from generate_series(1, ${count}::int)`;
    await database.sql`vacuum analyze events`;
  };
  const deleteOldEvents = async (): Promise<number> => {
    const store = openOrderStore(database.options);
    let count = 0;
    let isDone = false;
    while (!isDone) {
      const swept = await store.deleteOldEvents();
      count += swept.count;
      isDone = swept.isDone;
    }
    await store.close();
    await expect.poll(connectionsOfStores).toBe(0);
    return count;
  };
  await database.sql`alter table events set (autovacuum_enabled = false)`;
  await storeEvents(31, 3_000);
  expect(await deleteOldEvents()).toBe(3_000);
  await database.sql`vacuum events`;
  await storeEvents(1, 3_000);
  await storeEvents(31, 1);
  const before = await rowsRead('events');
  expect(await deleteOldEvents()).toBe(1);
  expect((await rowsRead('events')) - before).toBeLessThan(100);
});

describe('a merchant that is newer than the statistics of the tables', () => {
  let merchantId: AccountId;
  let olderMerchantId: AccountId;
  let checkoutId: AccountId;
  let order: Order;
  const count = 5_000;

  /** Stores copies of an order with their metadata, events and deliveries. A tenth has an expiry that is not stored. */
  const storeCopies = async (original: Order, copies: number) => {
    await database.sql`
      insert into orders select (jsonb_populate_record(orders, jsonb_build_object(
        'service_order_id', service_order_id + n, 'order_id', 'copy-' || n, 'created_at', created_at - n * interval '1 s',
        'order_token', left(order_token, 20) || n, 'order_status', status,
        'paid_at', case status when 'PAID' then now() end, 'payment_id', case status when 'PAID' then 'p-' || n end,
        'cancelled_at', case status when 'CANCELLED' then now() end,
        'order_expires_at', case when n % 10 = 0 then now() - interval '1 hour' end))).*
      from orders, generate_series(1, ${copies}::int) as n,
        lateral (select case when n % 10 = 0 then 'UN_PAID' else (array['UN_PAID', 'PAID', 'CANCELLED'])[1 + n % 3] end as status) as state
      where order_token = ${original.orderToken}`;
    const ofMerchant = database.sql`merchant_id = ${original.merchantId}`;
    await database.sql`
      insert into order_metadata select merchant_id, sha256(convert_to(pair.key || '=' || pair.value, 'UTF8')), created_at, service_order_id
      from orders, jsonb_each_text(metadata) as pair where ${ofMerchant} on conflict do nothing`;
    await database.sql`
      insert into events select merchant_id, 'evt_' || lpad(to_hex(position), 32, '0'), position, 'order.paid', now(), order_id
      from (select *, row_number() over (order by service_order_id) as position from orders where ${ofMerchant}) as orders`;
    await database.sql`insert into event_feeds select merchant_id, max(position) from events where ${ofMerchant} group by merchant_id`;
    await database.sql`insert into webhook_deliveries select merchant_id, 'we_1', event_id, 1, null, now(), now() from events where ${ofMerchant}`;
  };

  beforeAll(async () => {
    const store = openOrderStore(database.options);
    const merchants = [await createMerchantId(database.sql), await createMerchantId(database.sql)] as const;
    checkoutId = await createMerchantId(database.sql);
    const originals = merchants.map((id) =>
      createOrder(store, sampleOrder(id, { order_id: 'original' }, { shop: 'a', desk: 'b' })),
    );
    const [older, newer] = (await Promise.all(originals)) as [Order, Order];
    await store.close();
    await storeCopies({ ...older, merchantId: merchants[0] }, 4 * count);
    await database.sql`vacuum analyze`;
    await storeCopies(newer, count);
    await Promise.all([1, 2].map(() => database.sql`select pg_stat_force_next_flush(), pg_sleep(0.1)`));
    [olderMerchantId, merchantId, order] = [...merchants, newer];
  });

  // The rows of each page, and a few of each range and for other statements.
  const page = 100;
  // A page with filters scans 1,000 orders, and looks up as many.
  const scan = 3_000;
  const cancelled = () => ({ ...order, orderStatus: 'CANCELLED', cancelledAtMs: 1 }) as const;
  const attempt = () => ({ checkoutId, attemptId: 'a-1' });
  const payment = () => ({ checkoutId, paymentId: 'p-x', paidAtMs: 1 });
  const listOf = (merchantId: AccountId, filter: Partial<OrderFilter>) => (store: PostgresOrderStore) =>
    store.list(merchantId, { limit: 20, ...filter }, enoughMs);
  const list = (filter: Partial<OrderFilter>) => (store: PostgresOrderStore) => listOf(merchantId, filter)(store);
  const feed = (filter: Partial<EventFilter>) => (store: PostgresOrderStore) =>
    store.listEvents(merchantId, { limit: 20, ...filter }, enoughMs);
  const deliveries = (filter: Partial<DeliveryListFilter>) => async () => {
    const endpoints = openWebhookEndpoints(database.options);
    const found = await endpoints.pageOfDeliveries(merchantId, 'we_1', { limit: 20, ...filter });
    await endpoints.close();
    return { kind: found.length > 0 ? 'found' : 'none' };
  };
  const calls: readonly [string, number, (store: PostgresOrderStore) => Promise<{ readonly kind: string }>][] = [
    ['list', page, list({})],
    ['list after a cursor', page, list({ after: { createdAtMs: Date.now() - 1_000_000, serviceOrderId: 1 } })],
    ...orderStatuses
      .filter((status) => status !== 'EXPIRED')
      .map((status): (typeof calls)[number] => [`list of ${status}`, page, list({ status })]),
    // Reads all of the merchant's own orders whose expiry is not stored, but none of another merchant.
    ['list of EXPIRED', count / 10 + 2 * page, list({ status: 'EXPIRED' })],
    ['list in a currency', scan, list({ currency: 'JPY' })],
    ['list with metadata', page, list({ metadata: { shop: 'a' } })],
    ['list with two pairs', scan, list({ metadata: { shop: 'a', desk: 'b' } })],
    ['list with metadata and a status', scan, list({ metadata: { shop: 'a' }, status: 'PAID' })],
    ['feed', page, feed({})],
    ['feed of an order', page, feed({ orderId: 'copy-9' })],
    ['feed of a type', page, feed({ types: ['order.paid'] })],
    ['deliveries', page, deliveries({})],
    ['deliveries of an order', page, deliveries({ orderId: 'copy-9' })],
    ['findByOrderId', page, (store) => store.findByOrderId(merchantId, 'copy-9', enoughMs)],
    ['findByServiceOrderId', page, (store) => store.findByServiceOrderId(merchantId, order.serviceOrderId, enoughMs)],
    ['findByPaymentId', page, (store) => store.findByPaymentId(merchantId, 'p-1', enoughMs)],
    ['findByToken', page, (store) => store.findByToken(order.orderToken, enoughMs)],
    ['findForPage', page, (store) => store.findForPage(order.orderToken, enoughMs)],
    ['findForPayment', page, (store) => store.findForPayment(order.orderToken, payment(), enoughMs)],
    [
      'findByOrderId together',
      page,
      async (store) => {
        const orderIds = ['copy-7', 'copy-8', 'copy-9'];
        const found = await Promise.all(orderIds.map((id) => store.findByOrderId(merchantId, id, enoughMs)));
        return found.find(({ kind }) => kind !== 'found') ?? { kind: 'found' };
      },
    ],
    ['create', page, (store) => store.create(sampleOrder(merchantId, { order_id: 'original' }), enoughMs)],
    ['startPayment', page, (store) => store.startPayment(order, attempt(), 60, enoughMs)],
    [
      'endPayment',
      page,
      async (store) => {
        const found = await store.findByOrderId(merchantId, 'original', enoughMs);
        return found.kind === 'found' ? store.endPayment(found.order, attempt(), enoughMs) : found;
      },
    ],
    ['change', page, (store) => store.change({ transition: transitions.cancel, order: cancelled() }, enoughMs)],
  ];

  test.each(calls)('%s reads at most %i rows', async (_name, rowsMax, call) => {
    expect((await readsOf(call)).rows).toBeLessThan(rowsMax);
  });

  test.each<Partial<OrderFilter>>([
    {},
    { status: 'PAID' },
    { currency: 'EUR' },
    { metadata: { shop: 'a' } },
    { metadata: { shop: 'a', desk: 'b' } },
    { metadata: { shop: 'a' }, status: 'PAID' },
  ])(
    'a page filtered by %j reads no more of the indexes if the merchant has four times as many orders',
    async (filter) => {
      const [few, many] = [await readsOf(list(filter)), await readsOf(listOf(olderMerchantId, filter))];
      // The first page of a merchant also stores the expiry of its orders.
      expect(many.blocks).toBeLessThan(1.8 * few.blocks);
    },
  );

  /** Makes a call in a store of its own, and returns what was read for it. */
  async function readsOf(call: (store: PostgresOrderStore) => Promise<{ readonly kind: string }>) {
    const before = await readsOfAll();
    const store = openOrderStore(database.options);
    const { kind } = await call(store);
    await store.close();
    await expect.poll(connectionsOfStores).toBe(0);
    expect(['found', 'exists', 'changed', 'unknown']).toContain(kind);
    const after = await readsOfAll();
    return { rows: after.rows - before.rows, blocks: after.blocks - before.blocks };
  }
});

async function connectionsOfStores(): Promise<number> {
  const rows = await database.sql`select 1 from pg_stat_activity 
    where application_name like 'order-gateway %' and datname = current_database()`;
  return rows.length;
}

/** Returns the number of rows of a table that were read, as reported by connections that have ended. */
async function rowsRead(table: string): Promise<number> {
  const [row] = await database.sql`
    select (seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_user_tables where relname = ${table}`;
  return row?.rows;
}

/** Returns the rows of all tables and the blocks of their indexes that were read by connections that have ended. */
async function readsOfAll(): Promise<{ readonly rows: number; readonly blocks: number }> {
  const [reads] = await database.sql`
    select sum(seq_tup_read + idx_tup_fetch)::int as rows, sum(idx_blks_hit + idx_blks_read)::int as blocks
    from pg_stat_user_tables join pg_statio_user_tables using (relid)`;
  return { rows: reads?.rows, blocks: reads?.blocks };
}

/** Returns the number of rows read by sequential scans, as reported by connections that have ended. */
async function rowsReadByScans(): Promise<number> {
  const [row] = await database.sql`select seq_tup_read::int as rows from pg_stat_user_tables where relname = 'orders'`;
  return row?.rows;
}
