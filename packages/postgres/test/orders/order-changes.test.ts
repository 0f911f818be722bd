import { orderAfter } from '@order-gateway/domain/events';
import { type Order, transitions } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { expect, onTestFinished, test } from 'vitest';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { createMerchantId } from '../../testing/contract-store.ts';
import { runIntoDeadlock } from '../../testing/deadlock.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;

const database = useTestDatabase();
const openStore = useOrderStores(database);

const newMerchantId = () => createMerchantId(database.sql);

test('processes that sweep at the same time store each expiry once, and do not change other unpaid orders', async () => {
  const merchantId = await newMerchantId();
  const sweepers = [openStore(), openStore(), openStore()];
  const [store] = sweepers as [PostgresOrderStore];
  const now = Date.now();
  const orders = Array.from({ length: 1_400 }, (_, index): Order => {
    const expiresAtMs = index < 1_200 ? now - 1_000 : index < 1_300 ? now + 3_600_000 : null;
    return { ...sampleOrder(merchantId, { order_id: `swept-${index}` }), expiresAtMs };
  });
  await Promise.all(orders.map((order) => store.create(order, enoughMs)));

  const sweep = async (sweeper: PostgresOrderStore): Promise<number> => {
    const { count, isDone } = await sweeper.expire();
    return isDone ? count : count + (await sweep(sweeper));
  };
  const swept = await Promise.all(sweepers.map(sweep));

  // Counts the expired orders that the concurrent sweeps may not have stored as such.
  const remaining = await sweep(store);
  expect(swept.reduce((sum, count) => sum + count, remaining)).toBe(1_200);
  expect(await database.sql`select order_status, count(*)::int from orders group by 1 order by 1`).toEqual([
    { order_status: 'EXPIRED', count: 1_200 },
    { order_status: 'UN_PAID', count: 200 },
  ]);
  expect(
    await database.sql`select type, count(*)::int, count(distinct order_id)::int as orders from events group by 1`,
  ).toEqual([{ type: 'order.expired', count: 1_200, orders: 1_200 }]);
  expect(await sweep(store)).toBe(0);
});

test('a sweep that waits too long for a lock rejects, so that the caller can log the error', async () => {
  const alterDatabase = `alter database ${new URL(database.url).pathname.slice(1)}`;
  onTestFinished(async () => void (await database.sql.unsafe(`${alterDatabase} reset lock_timeout`)));
  await database.sql.unsafe(`${alterDatabase} set lock_timeout = '50ms'`);
  const store = openStore();
  const order = { ...sampleOrder(await newMerchantId()), expiresAtMs: Date.now() - 1 };
  await store.create(order, enoughMs);
  await database.sql.begin(async (session) => {
    await session`select from orders where merchant_id = ${order.merchantId} for update`;
    await expect(store.expire()).rejects.toThrow('timed out waiting for a lock');
  });
  expect(await store.expire()).toStrictEqual({ count: 1, isDone: true });
});

test('a sweep that deadlocks with another session changes nothing, and reports that it is not done', async () => {
  const store = openStore();
  const merchantId = await newMerchantId();
  for (const index of [1, 2]) {
    const order = sampleOrder(merchantId, { order_id: `order-${index}` });
    await store.create({ ...order, expiresAtMs: Date.now() - 1_000 + index }, enoughMs);
  }
  const deadlocked = { merchantId, applicationName: 'order-gateway sweeps' };
  const swept = await runIntoDeadlock(database.sql, deadlocked, () => store.expire());
  expect(swept).toStrictEqual({ count: 0, isDone: false });
  expect(await store.expire()).toStrictEqual({ count: 2, isDone: true });
});

test('a change queues a delivery of its event to each enabled endpoint that accepts the type', async () => {
  const store = openStore();
  const [active, disabled, without] = [await newMerchantId(), await newMerchantId(), await newMerchantId()];
  await database.sql`insert into webhook_endpoints (merchant_id, endpoint_id, url, signing_secret, disabled_at, event_types) values
    (${active}, 'all', 'https://shop.example.com', '', null, null),
    (${active}, 'some', 'https://shop.example.com', '', null, '{order.paid,order.cancelled}'),
    (${active}, 'others', 'https://shop.example.com', '', null, '{order.paid}'),
    (${active}, 'disabled', 'https://shop.example.com', '', now(), null),
    (${disabled}, 'disabled', 'https://shop.example.com', '', now(), null)`;
  for (const merchantId of [active, disabled, without]) {
    const order = sampleOrder(merchantId);
    await store.create(order, enoughMs);
    const cancelled: Order = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: 1 };
    const change = { transition: transitions.cancel, order: cancelled };
    expect(await store.change(change, enoughMs)).toStrictEqual({ kind: 'changed' });
  }
  const rows = await database.sql`
    select d.merchant_id::int, endpoint_id, attempts, next_attempt_at <= now() as is_due, delivered_at
    from webhook_deliveries d join events using (merchant_id, event_id) order by endpoint_id`;
  expect(rows).toEqual(
    ['all', 'some'].map((endpoint_id) => ({
      merchant_id: active,
      endpoint_id,
      attempts: 0,
      is_due: true,
      delivered_at: null,
    })),
  );
});

test('events are deleted after 30 days, with their deliveries', async () => {
  const store = openStore();
  const merchantId = await newMerchantId();
  await store.create(sampleOrder(merchantId, { order_id: 'of an event' }), enoughMs);
  await database.sql`
    insert into events select ${merchantId}, 'evt_' || n, null, 'order.paid',
      now() - case when n <= 700 then interval '30 days 1 minute' else interval '29 days' end, 'of an event'
    from generate_series(1, 710) n`;
  await database.sql`
    insert into webhook_deliveries (merchant_id, endpoint_id, event_id, attempts, delivered_at)
    select merchant_id, 'we_1', event_id, 1, now() from events where merchant_id = ${merchantId}`;

  expect(await store.deleteOldEvents()).toStrictEqual({ count: 500, isDone: false });
  expect(await store.deleteOldEvents()).toStrictEqual({ count: 200, isDone: true });
  const kept = await database.sql`select
    (select count(*)::int from events where merchant_id = ${merchantId}) as events,
    (select count(*)::int from webhook_deliveries where merchant_id = ${merchantId}) as deliveries`;
  expect(kept).toEqual([{ events: 10, deliveries: 10 }]);
});

test.each(['FOO', 'PAID', 'CANCELLED'])(
  'the database rejects the status %s, because it is unknown or the values that it requires are missing',
  async (status) => {
    const order = sampleOrder(await newMerchantId());
    await openStore().create(order, enoughMs);
    const setting = database.sql`update orders set order_status = ${status} where merchant_id = ${order.merchantId}`;
    await expect(setting).rejects.toMatchObject({ code: '23514' });
  },
);

test('a sweep and a read never store the expiry of an order whose lease began after they read it', async () => {
  const merchantId = await newMerchantId();
  const store = openStore();
  const order = { ...sampleOrder(merchantId), expiresAtMs: Date.now() - 1_000 };
  await store.create(order, enoughMs);
  const attempt = { checkoutId: merchantId, attemptId: 'a-1' };
  // Represents the start of a payment whose statement began before the expiry. It holds the lock of the row while the
  // sweep and the read wait, and commits before they continue.
  let pending: Promise<unknown>[] = [];
  await database.sql.begin(async (session) => {
    await session`
      update orders set lease_checkout_id = ${merchantId}, lease_attempt_id = 'a-1', lease_ends_at = now() + interval '1 hour'
      where merchant_id = ${merchantId} and order_id = ${order.fields.order_id}`;
    pending = [store.expire(), store.findByOrderId(merchantId, order.fields.order_id, enoughMs)];
    const waiting = () => database.sql`
      select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await expect.poll(async () => (await waiting()).length, { timeout: enoughMs }).toBe(2);
  });

  const found = await Promise.all(pending);
  expect(found).toMatchObject([
    { count: 0 },
    { order: { orderStatus: 'UN_PAID', lease: { ...attempt, isLive: true } } },
  ]);
  expect(await database.sql`select from events where merchant_id = ${merchantId}`).toEqual([]);
});

test('an order shows only its latest 20 refused payments, but the earlier ones are stored too', async () => {
  const store = openStore();
  const merchantId = await newMerchantId();
  const order = sampleOrder(merchantId);
  await store.create(order, enoughMs);
  const { order_amount: amount } = order.fields;
  const refuse = (index: number) => {
    const payment = { checkoutId: merchantId, paymentId: `p-${index}`, paidAtMs: order.createdAtMs, amount };
    return store.refusePayment({ order, payment: { ...payment, currency: 'JPY', code: 'payment_mismatch' } }, enoughMs);
  };
  for (let index = 0; index < 25; index += 1) expect(await refuse(index)).toStrictEqual({ kind: 'changed' });
  expect(await refuse(0)).toStrictEqual({ kind: 'conflict' });
  const found = await store.findByToken(order.orderToken, enoughMs);
  const shown = found.kind === 'found' ? found.order.refusedPayments.map(({ paymentId }) => paymentId) : [];
  expect(shown).toEqual(Array.from({ length: 20 }, (_, index) => `p-${index + 5}`));
  const key = { checkoutId: merchantId, paymentId: 'p-0' };
  const first = await store.findForPayment(order.orderToken, key, enoughMs);
  expect(first).toMatchObject({ isKnown: true, refused: { ...key, amount, currency: 'JPY' } });
  const [stored] = await database.sql`select count(*)::int from refused_payments where merchant_id = ${merchantId}`;
  expect(stored).toEqual({ count: 25 });
});

test('the payment of a deleted order is known, and cannot pay a new order with the same order_id', async () => {
  const store = openStore();
  const merchantId = await newMerchantId();
  const [deleted, order] = [sampleOrder(merchantId), sampleOrder(merchantId)];
  const payment = { checkoutId: merchantId, paymentId: 'p-1', paidAtMs: order.createdAtMs };
  const pay = (unpaid: Order) =>
    store.change({ transition: transitions.pay, order: { ...unpaid, orderStatus: 'PAID', payment } }, enoughMs);
  await store.create(deleted, enoughMs);
  expect(await pay(deleted)).toStrictEqual({ kind: 'changed' });
  await database.sql`delete from orders where merchant_id = ${merchantId}`;
  await store.create(order, enoughMs);
  expect(await pay(order)).toStrictEqual({ kind: 'conflict' });
  const found = await store.findForPayment(order.orderToken, payment, enoughMs);
  expect(found).toMatchObject({ isKnown: true, refused: null, order: { orderStatus: 'UN_PAID' } });
});

test('the event of each refused payment shows that payment last, even if several are refused at the same time', async () => {
  const store = openStore();
  const order = sampleOrder(await newMerchantId());
  const { merchantId, fields } = order;
  await store.create(order, enoughMs);
  const paymentIds = ['p-1', 'p-2', 'p-3'];
  await database.sql.begin(async (session) => {
    for (const paymentId of paymentIds) {
      await session`select refuse_payment(${merchantId}, ${fields.order_id}, 'UN_PAID', null, ${paymentId}, 10, 'JPY', now(), 'payment_mismatch')`;
    }
  });
  const page = await store.listEvents(merchantId, { limit: 10 }, enoughMs);
  const shown = page.kind === 'found' ? page.events.map((event) => orderAfter(event).refusedPayments) : [];
  expect(shown.map((refused) => refused.map(({ paymentId }) => paymentId).join()).toSorted()).toEqual([
    'p-1',
    'p-1,p-2',
    'p-1,p-2,p-3',
  ]);
  const times = await database.sql`select event.created_at from events as event
    join refused_payments using (merchant_id, order_id) where merchant_id = ${merchantId} and event.created_at = refused_at`;
  expect(times).toHaveLength(paymentIds.length);
});
