import { type CitusCluster, missingCitus } from '@gateway/dev-postgres/testing/citus';
import type { AccountId } from '@gateway/domain/accounts/account';
import type { OrderPayment } from '@gateway/domain/orders/order';
import { transitions } from '@gateway/domain/orders/order-states';
import { describeOrderStore } from '@gateway/domain/testing/order-store-contract';
import { sampleOrder } from '@gateway/domain/testing/sample-orders';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { leftOut } from '../../../../tools/left-out.ts';
import { openOrderStore } from '../../src/orders/order-store.ts';
import { openWebhookDeliveries } from '../../src/webhooks/webhook-deliveries.ts';
import { createMerchantId, createOrder, openContractStore } from '../../testing/contract-store.ts';
import { startDistributedCluster } from '../../testing/distributed-database.ts';
import { type RecordedRun, startRecordingProxy } from '../../testing/recording-proxy.ts';

const enoughMs = 20_000;

describe.skipIf(leftOut('orders on Citus', missingCitus()))('on Citus', () => {
  let cluster: CitusCluster;
  let sql: postgres.Sql;
  beforeAll(async () => {
    cluster = await startDistributedCluster();
    sql = postgres(cluster.url, { max: 2, onnotice: () => {} });
  });
  afterAll(async () => {
    await sql?.end({ timeout: 1 });
    await cluster?.close();
  });

  describeOrderStore('the PostgreSQL order store', async () =>
    openContractStore({ url: cluster.url, sql, isDistributed: true }),
  );

  const openStore = () => {
    const store = openOrderStore({ url: cluster.url, isDistributed: true });
    onTestFinished(store.close);
    return store;
  };

  test('a payment whose process died before it changed the order is recorded when it is reported again, for that order only', async () => {
    const store = openStore();
    const merchantId = await createMerchantId(sql);
    const [order, other] = [
      await createOrder(store, sampleOrder(merchantId, { order_id: 'reported' })),
      await createOrder(store, sampleOrder(merchantId, { order_id: 'other' })),
    ];
    const payment: OrderPayment = { checkoutId: merchantId, paymentId: 'p-1', paidAtMs: order.createdAtMs };
    const key = { checkoutId: merchantId, paymentId: 'p-1' };
    await sql`insert into payments values (${merchantId}, 'p-1', ${merchantId}, 'reported')`;
    expect(await store.findForPayment(other.orderToken, key, enoughMs)).toMatchObject({ isKnown: true, refused: null });
    const pay = (paid: typeof order) =>
      store.change({ transition: transitions.pay, order: { ...paid, orderStatus: 'PAID', payment } }, enoughMs);
    expect(await pay(other)).toStrictEqual({ kind: 'conflict' });
    expect(await store.findForPayment(order.orderToken, key, enoughMs)).toMatchObject({
      isKnown: false,
      refused: null,
    });
    expect(await pay(order)).toStrictEqual({ kind: 'changed' });
    expect(await store.findForPayment(order.orderToken, key, enoughMs)).toMatchObject({ isKnown: true });
  });

  test('the background jobs expire orders and delete events of several merchants', async () => {
    const store = openStore();
    const merchantIds = [await createMerchantId(sql), await createMerchantId(sql), await createMerchantId(sql)];
    for (const merchantId of merchantIds) {
      await createOrder(store, { ...sampleOrder(merchantId), expiresAtMs: Date.now() - 1_000 });
    }
    expect(await store.expire()).toStrictEqual({ count: 3, isDone: true });
    const update = sql`update events set created_at = now() - interval '31 days' where merchant_id = any(${merchantIds})`;
    expect((await update).count).toBe(3);
    expect(await store.deleteOldEvents()).toStrictEqual({ count: 3, isDone: true });
  });

  test('deliveries of several merchants are claimed, and their results are stored', async () => {
    const store = openStore();
    const deliveries = openWebhookDeliveries({ url: cluster.url, isDistributed: true });
    onTestFinished(deliveries.close);
    const merchantIds = [await createMerchantId(sql), await createMerchantId(sql), await createMerchantId(sql)];
    for (const merchantId of merchantIds) {
      await sql`insert into webhook_endpoints (merchant_id, endpoint_id, url, signing_secret)
        values (${merchantId}, 'we_1', 'https://shop.example.com', '')`;
      const order = await createOrder(store, sampleOrder(merchantId));
      const cancelled = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: 1 } as const;
      await store.change({ transition: transitions.cancel, order: cancelled }, enoughMs);
    }
    expect(await deliveries.overdueSeconds()).toBeGreaterThan(0);
    const filter = { failing: false, perEndpoint: 16, inFlight: new Map(), limit: 2 };
    const first = await deliveries.claim(filter);
    const rest = await deliveries.claim({ ...filter, after: first.at(-1) });
    const claimed = [...first, ...rest];
    expect(claimed.map(({ merchantId }) => merchantId)).toEqual(merchantIds);
    expect(await deliveries.claim(filter)).toEqual([]);
    for (const delivery of claimed) await deliveries.record(delivery, { kind: 'endpoint_gone', text: 'HTTP 410' });
    const stored =
      await sql`select disabled_at is not null as is_disabled, last_result, next_attempt_at from webhook_endpoints
      join webhook_deliveries using (merchant_id, endpoint_id) where merchant_id = any(${merchantIds})`;
    expect(stored).toEqual(
      merchantIds.map(() => ({ is_disabled: true, last_result: 'HTTP 410', next_attempt_at: null })),
    );
  });

  test('one server runs each statement of an operation', async () => {
    const proxy = await startRecordingProxy(cluster.url);
    onTestFinished(() => proxy.close());
    const store = openOrderStore({ url: proxy.url, isDistributed: true });
    onTestFinished(store.close);
    const merchantId = await createMerchantId(sql);
    // The first one looks for ids in use, on all servers.
    await createOrder(store, sampleOrder(merchantId, { order_id: 'first' }));
    const before = proxy.runs.length;
    const order = await createOrder(store, sampleOrder(merchantId, { order_id: 'lone' }));
    await store.create(order, enoughMs);
    await store.findByOrderId(merchantId, 'lone', enoughMs);
    // So many that they share statements with each other, but not with those of the other merchant.
    const other = await createMerchantId(sql);
    const orderIds = Array.from({ length: 40 }, (_, index) => `order-${index}`);
    const each = (run: (id: AccountId, orderId: string) => Promise<unknown>) =>
      Promise.all([merchantId, other].flatMap((id) => orderIds.map((orderId) => run(id, orderId))));
    for (const id of [merchantId, other]) {
      const create = (orderId: string) => store.create(sampleOrder(id, { order_id: orderId }), enoughMs);
      await Promise.all(orderIds.map(create));
      await Promise.all(orderIds.map(create));
    }
    await each((id, orderId) => store.findByOrderId(id, orderId, enoughMs));
    await store.findByServiceOrderId(merchantId, order.serviceOrderId, enoughMs);
    await store.findForPage(order.orderToken, enoughMs);
    await store.list(merchantId, { limit: 1 }, enoughMs);
    await store.list(merchantId, { limit: 1, metadata: { key: 'value' } }, enoughMs);
    const payment = { checkoutId: merchantId, paymentId: 'p-1', paidAtMs: order.createdAtMs };
    await store.findForPayment(order.orderToken, payment, enoughMs);
    await store.startPayment(order, { checkoutId: merchantId, attemptId: 'a-1' }, 60, enoughMs);
    await store.change({ transition: transitions.pay, order: { ...order, orderStatus: 'PAID', payment } }, enoughMs);
    await store.listEvents(merchantId, { limit: 1 }, enoughMs);

    const tasks = await Promise.all(proxy.runs.slice(before).map(tasksOf));
    expect(tasks.filter((count) => count > 1)).toEqual([]);
    // Accounts and payments are on the coordinator.
    expect(tasks.filter((count) => count === 1).length).toBeGreaterThanOrEqual(13);
  });

  /** The number of shards that a statement asks; 0 if it only asks the coordinator. */
  const tasksOf = async ({ text, values }: RecordedRun): Promise<number> => {
    const inline = text.replaceAll(/\$(\d+)/g, (_, number) => {
      const value = values[Number(number) - 1] ?? null;
      return value === null ? 'null' : `'${value.replaceAll("'", "''")}'`;
    });
    const [plan] = await sql.unsafe(`explain (format json) ${inline}`);
    return Number(/"Task Count":(\d+)/.exec(JSON.stringify(plan?.['QUERY PLAN']))?.[1] ?? 0);
  };
});
