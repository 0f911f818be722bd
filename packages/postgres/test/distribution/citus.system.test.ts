import { withSession } from '@order-gateway/dev-postgres/testing';
import { type CitusCluster, missingCitus } from '@order-gateway/dev-postgres/testing/citus';
import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventFeed } from '@order-gateway/domain/events';
import {
  decideRefund,
  idBlockSize,
  type OrderPayment,
  type OrderStore,
  transitions,
} from '@order-gateway/domain/orders';
import { describeOrderStore } from '@order-gateway/domain/testing/order-store-contract';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { drizzle } from 'drizzle-orm/postgres-js';
import { describe, expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { inspectServer, workerConnectionsMax } from '../../src/connections/inspect-server.ts';
import { openWriteCheck } from '../../src/connections/write-check.ts';
import { openMerchantManagement } from '../../src/merchant-management.ts';
import { migrateDatabase, requireSchema } from '../../src/migrate.ts';
import { openOrderStore, type PostgresOrderStore } from '../../src/order-store.ts';
import { createOrderIds } from '../../src/orders/create/order-ids.ts';
import { countErasableOrders, type ErasureTarget, eraseOrders } from '../../src/orders/operators/erase-orders.ts';
import { failRefund } from '../../src/orders/operators/fail-refund.ts';
import { exportOrders } from '../../src/orders/operators/order-archive.ts';
import { changeReversals } from '../../src/orders/plpgsql-functions.ts';
import { type ClaimedDelivery, openWebhookDeliveries } from '../../src/webhooks/webhook-deliveries.ts';
import { createMerchantId, createOrder, openContractStore } from '../../testing/contract-store.ts';
import { distributedTables, startDistributedCluster } from '../../testing/distributed-database.ts';
import { createManagedTarget, managementChanges } from '../../testing/management-changes.ts';
import { doMerchantOperations, isOfMerchant } from '../../testing/merchant-operations.ts';
import { testPatience } from '../../testing/patience.ts';
import { urlAs } from '../../testing/production-database.ts';
import { type RecordedRun, startRecordingProxy } from '../../testing/recording-proxy.ts';
import { runQuery } from '../../testing/run-query.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;

describe.skipIf(mustSkip('orders on Citus', missingCitus()))('on Citus', () => {
  let cluster: CitusCluster;
  const database = useTestDatabase(async () => {
    cluster = await startDistributedCluster();
    // The tests' own sessions keep no connection to a worker, because its first use after the worker's restart fails.
    await runQuery(cluster.url, 'alter role order_gateway_owner set citus.max_cached_conns_per_worker = 0');
    return { url: cluster.url, drop: cluster.close };
  });
  const gatewayUrl = () => urlAs(database.url, 'order_gateway');

  describeOrderStore('the PostgreSQL order store', async () =>
    openContractStore({ url: gatewayUrl(), sql: database.sql, isDistributed: true }),
  );

  const openStore = () => {
    const store = openOrderStore({ url: gatewayUrl(), isDistributed: true });
    onTestFinished(store.close);
    return store;
  };

  /** Returns a function that sweeps, and returns how many rows all of its sweeps have changed. */
  const counting = (sweep: PostgresOrderStore['expire']) => {
    let total = 0;
    return async () => {
      total += (await sweep()).count;
      return total;
    };
  };

  test('the owner migrates, and the gateway starts, while a worker is down', async () => {
    const [worker] = cluster.workers;
    worker?.kill();
    onTestFinished(() => worker?.start());
    await migrateDatabase(database.url);
    await requireSchema(gatewayUrl());
    expect(await inspectServer(gatewayUrl())).toMatchObject({ hasCitus: true });
  });

  test('a start names the workers that accept fewer connections than its processes can use', async () => {
    // Of 200 connections, 3 are reserved for superusers.
    const accepted = 197;
    const fitting = Math.floor(accepted / workerConnectionsMax);
    expect(await inspectServer(gatewayUrl(), fitting)).toMatchObject({ smallWorkers: {} });
    const workers = cluster.workers.map(({ port }) => [`127.0.0.1:${port}`, accepted]);
    expect((await inspectServer(gatewayUrl(), fitting + 1)).smallWorkers).toEqual(Object.fromEntries(workers));
  });

  test('while a worker is down, a new process creates orders of merchants on other servers', async () => {
    const { first, other } = await placedMerchants();
    const worker = cluster.workers.find(({ port }) => port === first.port);
    worker?.kill();
    onTestFinished(() => worker?.start());
    const store = openOrderStore({ url: gatewayUrl(), isDistributed: true, patience: testPatience });
    onTestFinished(store.close);
    expect(kindsOf(await createAll(store, [other], 'started-'))).toEqual(['created']);
  });

  test('the owner creates a schema, and migrates the tables, on all servers', async () => {
    await database.sql`create schema created`;
    await database.sql`drop schema created`;
    await database.sql`delete from drizzle.__drizzle_migrations where id = (select max(id) from drizzle.__drizzle_migrations)`;
    await migrateDatabase(database.url);
    await requireSchema(gatewayUrl());
  });

  test('a migration distributes the tables and functions that a version adds to a cluster', async () => {
    const readDistribution = () => database.sql`
      select logicalrelid::regclass::text as name, colocationid as colocation from pg_dist_partition union all
      select objid::regproc::text, colocationid from pg_dist_object
      where classid = 'pg_proc'::regclass and distribution_argument_index is not null order by 1`;
    const before = await readDistribution();
    // Returns to what version 1.0.0 distributed, before the last migration.
    await database.sql`select undistribute_table('pending_refunds')`;
    await database.sql`alter table pending_refunds add constraint pending_refunds_merchant_id_accounts_id_fk
      foreign key (merchant_id) references accounts (id)`;
    await database.sql`drop function change_reversals, run_on_shards`;
    await database.sql.unsafe(changeReversals.definition);
    await database.sql`delete from drizzle.__drizzle_migrations where id = (select max(id) from drizzle.__drizzle_migrations)`;
    expect(await readDistribution()).toHaveLength(before.length - 3);
    await migrateDatabase(database.url);
    expect(await readDistribution()).toEqual(before);
  });

  test('if a process dies before a payment changes its order, the payment is recorded when it is reported again, but only for that order', async () => {
    const store = openStore();
    const merchantId = await createMerchantId(database.sql);
    const [order, other] = [
      await createOrder(store, sampleOrder(merchantId, { order_id: 'reported' })),
      await createOrder(store, sampleOrder(merchantId, { order_id: 'other' })),
    ];
    const payment: OrderPayment = { checkoutId: merchantId, paymentId: 'p-1', paidAtMs: order.createdAtMs };
    const key = { checkoutId: merchantId, paymentId: 'p-1' };
    await database.sql`insert into payments values (${merchantId}, 'p-1', ${merchantId}, 'reported')`;
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
    const merchantIds = [
      await createMerchantId(database.sql),
      await createMerchantId(database.sql),
      await createMerchantId(database.sql),
    ];
    for (const merchantId of merchantIds) {
      await createOrder(store, { ...sampleOrder(merchantId), expiresAtMs: Date.now() - 1_000 });
    }
    const expire = counting(store.expire);
    await expect.poll(expire).toBe(3);
    const update = database.sql`update events set created_at = now() - interval '31 days' where merchant_id = any(${merchantIds})`;
    expect((await update).count).toBe(3);
    const deleteOldEvents = counting(store.deleteOldEvents);
    await expect.poll(deleteOldEvents).toBe(3);
  });

  /** Creates an endpoint for each merchant, whose deliveries are the only ones that are due. */
  const queueDeliveries = async (store: OrderStore, merchantIds: readonly AccountId[], perEndpoint = 1) => {
    await database.sql`update webhook_deliveries set next_attempt_at = null`;
    for (const merchantId of merchantIds) {
      await database.sql`insert into webhook_endpoints (merchant_id, endpoint_id, url, signing_secret)
        values (${merchantId}, 'we_1', 'https://shop.example.com', '')`;
      for (let number = 0; number < perEndpoint; number += 1) {
        const order = await createOrder(store, sampleOrder(merchantId, { order_id: `delivered-${number}` }));
        const cancelled = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: 1 } as const;
        await store.change({ transition: transitions.cancel, order: cancelled }, enoughMs);
      }
    }
  };
  const openDeliveries = () => {
    const deliveries = openWebhookDeliveries({ url: gatewayUrl(), isDistributed: true, patience: testPatience });
    onTestFinished(deliveries.close);
    return deliveries;
  };

  test('deliveries of several merchants are claimed, and their results are stored', async () => {
    const [store, deliveries] = [openStore(), openDeliveries()];
    const merchantIds = [
      await createMerchantId(database.sql),
      await createMerchantId(database.sql),
      await createMerchantId(database.sql),
    ];
    await queueDeliveries(store, merchantIds);
    await expect.poll(async () => (await deliveries.readHealth())?.overdueSeconds).toBeGreaterThan(0);
    const claimed: ClaimedDelivery[] = [];
    const claim = async () => {
      const { deliveries: more } = await deliveries.claim({
        failing: false,
        perEndpoint: 16,
        inFlight: new Map(),
        limit: 2,
      });
      expect(more.length).toBeLessThanOrEqual(2);
      claimed.push(...more);
      return claimed.map(({ merchantId }) => merchantId).toSorted((a, b) => a - b);
    };
    await expect.poll(claim).toEqual(merchantIds);
    for (const delivery of claimed) await deliveries.record(delivery, { kind: 'endpoint_gone', text: 'HTTP 410' });
    const stored =
      await database.sql`select disabled_at is not null as is_disabled, last_result, next_attempt_at from webhook_endpoints
      join webhook_deliveries using (merchant_id, endpoint_id) where merchant_id = any(${merchantIds})`;
    expect(stored).toEqual(
      merchantIds.map(() => ({ is_disabled: true, last_result: 'HTTP 410', next_attempt_at: null })),
    );
  });

  test('the endpoints on the shards of a server share the limit of a claim', async () => {
    const [store, deliveries] = [openStore(), openDeliveries()];
    const { first, neighbour } = await placedMerchants();
    const merchantIds = [first.merchantId, neighbour.merchantId];
    await queueDeliveries(store, merchantIds, 2);
    await expect.poll(async () => (await deliveries.readHealth())?.overdueSeconds).toBeGreaterThan(0);
    const claim = async () => {
      // The server has about half of the shards, so its part of the limit is 2 or 3.
      const filter = { failing: false, perEndpoint: 16, inFlight: new Map(), limit: 6 };
      const { deliveries: claimed, isDone } = await deliveries.claim(filter);
      return { isDone, claimed: merchantIds.map((id) => claimed.filter(({ merchantId }) => merchantId === id).length) };
    };
    expect((await claim()).claimed).toEqual([1, 1]);
    expect((await claim()).claimed).toEqual([1, 1]);
    await expect.poll(claim).toEqual({ isDone: true, claimed: [0, 0] });
  });

  test('deliveries to disabled endpoints are claimed without an endpoint, more than are sent at a time', async () => {
    const [store, deliveries] = [openStore(), openDeliveries()];
    const { first, other } = await placedMerchants();
    const merchantIds = [first.merchantId, other.merchantId];
    await queueDeliveries(store, merchantIds, 3);
    await expect.poll(async () => (await deliveries.readHealth())?.overdueSeconds).toBeGreaterThan(0);
    await database.sql`update webhook_endpoints set disabled_at = now() where merchant_id = any(${merchantIds})`;
    const filter = { perEndpoint: 1, inFlight: new Map(), limit: 64 };
    expect((await deliveries.claim({ ...filter, failing: false })).deliveries).toEqual([]);
    const { deliveries: claimed } = await deliveries.claim({ ...filter, failing: true });
    expect(claimed.map(({ merchantId, endpoint }) => ({ merchantId, endpoint }))).toEqual(
      expect.arrayContaining(merchantIds.map((merchantId) => ({ merchantId, endpoint: undefined }))),
    );
    expect(claimed).toHaveLength(6);
  });

  test("an export reads one shard at a time, and operators' commands fail while a worker is down", async () => {
    const store = openStore();
    const { first, other } = await placedMerchants();
    const createdAtMs = Date.parse('2020-01-01T00:00:00Z');
    for (const { merchantId } of [first, other]) await createOrder(store, { ...sampleOrder(merchantId), createdAtMs });
    const before = new Date(createdAtMs + 1);
    const proxy = await startRecordingProxy(database.url);
    onTestFinished(() => proxy.close());
    const exported = async () => {
      const range = { fromMs: createdAtMs, beforeMs: before.getTime() };
      return (await Array.fromAsync(exportOrders(proxy.url, range))).flat().length;
    };
    const erasable = () => countErasableOrders(database.url, { by: 'age', before });
    expect(await exported()).toBe(2);
    const pages = proxy.runs.filter(({ text }) => text.includes('to_jsonb'));
    expect(pages.length).toBeGreaterThan(1);
    for (const page of pages) expect(await tasksOf(database.url, page)).toEqual([1]);
    expect(await erasable()).toBeGreaterThanOrEqual(2);
    const worker = cluster.workers.find(({ port }) => port === first.port);
    worker?.kill();
    onTestFinished(() => worker?.start());
    await expect(exported()).rejects.toThrow('08006');
    await expect(erasable()).rejects.toThrow('08006');
  });

  /** Creates an order that a checkout system reported as paid, and requests its refund. */
  const requestRefund = async (store: OrderStore, merchantId: AccountId, checkoutId: AccountId, orderId: string) => {
    const order = await createOrder(store, sampleOrder(merchantId, { order_id: orderId }));
    const payment: OrderPayment = { checkoutId, paymentId: orderId, paidAtMs: order.createdAtMs };
    const paid = { ...order, orderStatus: 'PAID', payment } as const;
    expect(await store.change({ transition: transitions.pay, order: paid }, enoughMs)).toEqual({ kind: 'changed' });
    const request = { refundId: 'r-1', amount: undefined, note: undefined };
    const decided = decideRefund(paid, request, true, order.createdAtMs);
    if (!decided.ok || decided.value.kind !== 'reverse') throw new Error('the order can not be refunded');
    expect(await store.changeReversals(decided.value.change, enoughMs)).toEqual({ kind: 'changed' });
    return order;
  };

  test('a pending refund counts for the health, is listed, and ends when an operator fails it', async () => {
    const store = openStore();
    const [merchantId, checkoutId] = [await createMerchantId(database.sql), await createMerchantId(database.sql)];
    const order = await requestRefund(store, merchantId, checkoutId, 'refunded');
    const pending = () => store.listPendingRefunds(checkoutId, { limit: 9 }, enoughMs);
    expect(await pending()).toMatchObject({ refunds: [{ orderId: 'refunded', refundId: 'r-1' }] });
    await expect.poll(async () => (await store.readRefundHealth())?.pendingSeconds).toBeGreaterThan(0);
    expect(await failRefund({ url: database.url }, order.orderToken, 'r-1')).toBe('failed');
    expect(await failRefund({ url: database.url }, order.orderToken, 'r-1')).toBe('not_pending');
    expect(await pending()).toEqual({ kind: 'found', refunds: [], isIncomplete: false });
    const logged = await database.sql`select details from audit_log where action = 'orders.refund_fail'`;
    expect(logged).toMatchObject([{ details: { order_id: 'refunded', refund_id: 'r-1' } }]);
  });

  test('deliveries to an endpoint end when the merchant removes it', async () => {
    const management = openMerchantManagement({ url: gatewayUrl(), isDistributed: true, patience: testPatience });
    onTestFinished(management.close);
    const target = await createManagedTarget(database.url, database.sql, true);
    const { merchantId, endpointId } = target;
    await database.sql`update webhook_deliveries set next_attempt_at = now() where merchant_id = ${merchantId}`;
    await management.perform(target, (managed) => managed.remove(merchantId, endpointId), enoughMs);
    expect(
      await database.sql`select next_attempt_at, last_result from webhook_deliveries where merchant_id = ${merchantId}`,
    ).toEqual([{ next_attempt_at: null, last_result: 'no endpoint' }]);
  });

  test('a merchant manages endpoints, secrets and a brand, but nothing with a revoked secret', async () => {
    const management = openMerchantManagement({ url: gatewayUrl(), patience: testPatience });
    onTestFinished(management.close);
    for (const [name, change] of Object.entries(managementChanges)) {
      const target = await createManagedTarget(database.url, database.sql, true);
      const done = await management.perform(target, (managed) => change(managed, target), enoughMs);
      const url = 'https://shop.example.com/revoked';
      const revoked = await management.perform(
        target,
        async (managed) => {
          await database.sql`update client_secrets set ends_at = now() where account_id = ${target.merchantId}
            and id = (select min(id) from client_secrets where account_id = ${target.merchantId})`;
          return managed.create(target.merchantId, { url, signingSecret: Uint8Array.of(1) });
        },
        enoughMs,
      );
      const stored =
        await database.sql`select from webhook_endpoints where merchant_id = ${target.merchantId} and url = ${url}`;
      expect([name, done.kind, revoked.kind, stored.length]).toEqual([name, 'done', 'unauthenticated', 0]);
    }
  });

  test('each statement of calls that share batches runs on one server', async () => {
    const proxy = await startRecordingProxy(database.url);
    onTestFinished(() => proxy.close());
    const store = openOrderStore({ url: proxy.url, isDistributed: true });
    onTestFinished(store.close);
    const merchantId = await createMerchantId(database.sql);
    const order = await createOrder(store, sampleOrder(merchantId, { order_id: 'lone' }));
    await store.create(order, enoughMs);
    await store.findByOrderId(merchantId, 'lone', enoughMs);
    // There are enough orders for those of one merchant to share statements. The two merchants share none.
    const other = await createMerchantId(database.sql);
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
    await store.findByPaymentId(merchantId, 'p-1', enoughMs);
    await store.findForPage(order.orderToken, enoughMs);
    await store.list(merchantId, { limit: 1 }, enoughMs);
    await store.list(merchantId, { limit: 1, metadata: { key: 'value' } }, enoughMs);
    const payment = { checkoutId: merchantId, paymentId: 'p-1', paidAtMs: order.createdAtMs };
    await store.findForPayment(order.orderToken, payment, enoughMs);
    await store.startPayment(order, { checkoutId: merchantId, attemptId: 'a-1' }, 60, enoughMs);
    await store.change({ transition: transitions.pay, order: { ...order, orderStatus: 'PAID', payment } }, enoughMs);
    await store.listEvents(merchantId, { limit: 1 }, enoughMs);

    const tasks: number[] = [];
    for (const run of proxy.runs.filter(isOfMerchant)) tasks.push(...(await tasksOf(database.url, run)));
    expect(tasks.filter((count) => count > 1)).toEqual([]);
    // Accounts and payments are on the coordinator, so a statement about them needs no task.
    expect(tasks.filter((count) => count === 1).length).toBeGreaterThanOrEqual(14);
  });

  /** Returns a merchant on each of the two workers, and a merchant in another shard of the first worker. */
  const placedMerchants = async () => {
    const placed = Map.groupBy(
      await Promise.all(Array.from({ length: 16 }, () => createMerchantId(database.sql).then(placementOf))),
      ({ port }) => port,
    );
    const [[first, ...others] = [], [other] = []] = [...placed.values()];
    const neighbour = others.find(({ shard }) => shard !== first?.shard);
    if (first === undefined || neighbour === undefined || other === undefined)
      throw new Error('not all workers have merchants');
    return { first, neighbour, other };
  };
  const placementOf = async (merchantId: AccountId) => {
    const [row] = await database.sql`select shardid, nodeport from pg_dist_placement join pg_dist_node using (groupid)
      where shardid = get_shard_id_for_distribution_column('orders', ${merchantId}::bigint)`;
    return { merchantId, shard: row?.shardid, port: row?.nodeport };
  };
  const orderIds = Array.from({ length: 20 }, (_, index) => `order-${index}`);
  /** Opens the sessions of a store, because the first order of each session takes longest. */
  const connect = async (store: OrderStore, merchants: readonly { readonly merchantId: AccountId }[]) => {
    for (const { merchantId } of merchants) await createOrder(store, sampleOrder(merchantId));
  };
  const createAll = (store: OrderStore, merchants: readonly { readonly merchantId: AccountId }[], prefix: string) =>
    Promise.all(
      merchants.flatMap(({ merchantId }) =>
        orderIds.map((id) => store.create(sampleOrder(merchantId, { order_id: prefix + id }), enoughMs)),
      ),
    );
  const kindsOf = (outcomes: readonly { readonly kind: string }[]) => [...new Set(outcomes.map(({ kind }) => kind))];

  test('a batch contains only merchants of one server, and orders are still created after one of the merchants has moved', async () => {
    const proxy = await startRecordingProxy(database.url);
    onTestFinished(() => proxy.close());
    const store = openOrderStore({ url: proxy.url, isDistributed: true });
    onTestFinished(store.close);
    const { first, neighbour, other } = await placedMerchants();
    await connect(store, [first, neighbour, other]);
    expect(kindsOf(await createAll(store, [first, neighbour, other], 'before-'))).toEqual(['created']);
    const batches = proxy.runs.filter(({ text }) => text.includes('insert_orders'));
    const merchantsOf = ({ values }: RecordedRun): AccountId[] =>
      JSON.parse(values[1] ?? '').map((row: { merchant_id: AccountId }) => row.merchant_id);
    const ports = batches.map((run) =>
      [first, neighbour, other]
        .filter(({ merchantId }) => merchantsOf(run).includes(merchantId))
        .map(({ port }) => port),
    );
    expect(ports.map((portsOfBatch) => new Set(portsOfBatch).size).filter((count) => count !== 1)).toEqual([]);
    expect(ports.some((portsOfBatch) => portsOfBatch.length === 2)).toBe(true);

    await database.sql`select citus_move_shard_placement(${neighbour.shard}, '127.0.0.1', ${neighbour.port}, '127.0.0.1', ${other.port}, 'block_writes')`;
    expect(kindsOf(await createAll(store, [first, neighbour], 'after-'))).toEqual(['created']);
    expect(kindsOf(await createAll(store, [first, neighbour], 'after-'))).toEqual(['exists']);
  });

  test('while a server hangs, orders of merchants on other servers are created', async () => {
    const store = openStore();
    const { first, other } = await placedMerchants();
    await connect(store, [first, other]);
    expect(kindsOf(await createAll(store, [first, other], 'before-'))).toEqual(['created']);
    const server = cluster.workers.find(({ port }) => port === first.port);
    server?.hang();
    onTestFinished(() => server?.resume());
    const creationsOfFirst = createAll(store, [first], 'concurrent-');
    expect(kindsOf(await createAll(store, [other], 'concurrent-'))).toEqual(['created']);
    expect(kindsOf(await createAll(store, [other], 'before-'))).toEqual(['exists']);
    expect(kindsOf(await creationsOfFirst)).toEqual(['unavailable']);
    server?.resume();
    await expect.poll(async () => kindsOf(await createAll(store, [first], 'later-'))).toEqual(['exists']);
  });

  /** Performs each operation of a store for one merchant. Returns the kinds of the outcomes. */
  const performAll = async (
    store: OrderStore & EventFeed,
    merchantId: AccountId,
    prefix: string,
    checkoutId = merchantId,
  ) => {
    const order = await createOrder(store, sampleOrder(merchantId, { order_id: `${prefix}1` }));
    const cancelled = await createOrder(store, sampleOrder(merchantId, { order_id: `${prefix}2` }));
    const payment = { checkoutId, paymentId: prefix, paidAtMs: order.createdAtMs };
    const attempt = { checkoutId, attemptId: prefix };
    return kindsOf([
      await store.findByOrderId(merchantId, `${prefix}1`, enoughMs),
      await store.findByServiceOrderId(merchantId, order.serviceOrderId, enoughMs),
      await store.findByToken(order.orderToken, enoughMs),
      await store.findForPage(order.orderToken, enoughMs),
      await store.findForPayment(order.orderToken, payment, enoughMs),
      await store.startPayment(order, attempt, 60, enoughMs),
      await store.endPayment({ ...order, lease: { ...attempt, endsAtMs: 0, isLive: true } }, attempt, enoughMs),
      await store.change({ transition: transitions.pay, order: { ...order, orderStatus: 'PAID', payment } }, enoughMs),
      await store.findByPaymentId(merchantId, prefix, enoughMs),
      await store.change(
        { transition: transitions.cancel, order: { ...cancelled, orderStatus: 'CANCELLED', cancelledAtMs: 1 } },
        enoughMs,
      ),
      await store.list(merchantId, { limit: 1 }, enoughMs),
      await store.listEvents(merchantId, { limit: 1 }, enoughMs),
      await store.countByDay(merchantId, 0, enoughMs),
    ]);
  };

  test('while a server hangs, every operation of merchants on other servers succeeds', async () => {
    const store = openOrderStore({ url: gatewayUrl(), isDistributed: true, patience: testPatience });
    onTestFinished(store.close);
    const { first, other } = await placedMerchants();
    const succeeded = ['found', 'changed'];
    for (const { merchantId } of [first, other]) {
      expect(await performAll(store, merchantId, 'before-')).toEqual(succeeded);
    }
    const order = await createOrder(store, sampleOrder(first.merchantId, { order_id: 'unpaid' }));
    const server = cluster.workers.find(({ port }) => port === first.port);
    server?.hang();
    onTestFinished(() => server?.resume());
    // There are more calls of each kind than connections.
    const waiting = Array.from({ length: 8 }, () => [
      store.findByOrderId(first.merchantId, 'before-1', waitLimitMs),
      store.findForPage(order.orderToken, waitLimitMs),
      store.startPayment(order, { checkoutId: first.merchantId, attemptId: 'waiting' }, 60, waitLimitMs),
      store.list(first.merchantId, { limit: 1 }, waitLimitMs),
      store.listEvents(first.merchantId, { limit: 1 }, waitLimitMs),
      store.countByDay(first.merchantId, 0, waitLimitMs),
    ]).flat();
    // The shard of the checkout system's id is on the server that hangs.
    expect(await performAll(store, other.merchantId, 'concurrent-', first.merchantId)).toEqual(succeeded);
    server?.resume();
    expect(kindsOf(await Promise.all(waiting))).toEqual(['found', 'changed']);
  });

  test('one process uses at most the documented number of connections of a worker', async () => {
    const options = { url: gatewayUrl(), isDistributed: true, patience: testPatience };
    const [store, deliveries, management] = [
      openOrderStore(options),
      openWebhookDeliveries(options),
      openMerchantManagement(options),
    ];
    onTestFinished(async () => void (await Promise.all([store, deliveries, management].map(({ close }) => close()))));
    const merchantIds = await Promise.all(Array.from({ length: 16 }, () => createMerchantId(database.sql)));
    await Promise.all(merchantIds.map((merchantId) => performAll(store, merchantId, 'p-')));
    await store.expire();
    await store.deleteOldEvents();
    await store.findNewEvents(new Map(merchantIds.map((merchantId) => [merchantId, 0])));
    await deliveries.readHealth();
    await deliveries.claim({ failing: false, perEndpoint: 16, inFlight: new Map(), limit: 100 });
    // The name of a connection between servers contains the process of its session on the coordinator.
    const sessions = await runQuery(
      cluster.coordinator.url,
      "select pid from pg_stat_activity where application_name like 'order-gateway %'",
    );
    const pids = new Set(sessions.map(({ pid }) => pid));
    for (const worker of cluster.workers) {
      const connections = await runQuery(
        worker.url,
        `select substring(application_name from 'gpid=(\\d+)')::bigint % 10000000000 as pid from pg_stat_activity
         where application_name like 'citus_internal gpid=%'`,
      );
      const ofProcess = connections.filter(({ pid }) => pids.has(Number(pid)));
      expect(ofProcess.length).toBeGreaterThan(0);
      expect(ofProcess.length).toBeLessThanOrEqual(workerConnectionsMax);
    }
  });

  test('while a server hangs, results of deliveries to merchants on other servers are stored', async () => {
    const options = { url: gatewayUrl(), isDistributed: true, patience: testPatience };
    const [store, deliveries] = [openOrderStore(options), openWebhookDeliveries(options)];
    onTestFinished(async () => void (await Promise.all([store.close(), deliveries.close()])));
    const { first, other } = await placedMerchants();
    for (const { merchantId } of [first, other]) {
      await database.sql`insert into webhook_endpoints (merchant_id, endpoint_id, url, signing_secret)
        values (${merchantId}, 'we_1', 'https://shop.example.com', '')`;
      await performAll(store, merchantId, 'delivered-');
    }
    const claimed: ClaimedDelivery[] = [];
    const ofMerchant = (id: AccountId) => claimed.filter(({ merchantId }) => merchantId === id);
    const claim = async () => {
      const filter = { failing: false, perEndpoint: 16, inFlight: new Map(), limit: 64 };
      claimed.push(...(await deliveries.claim(filter)).deliveries);
      return [first, other].map(({ merchantId }) => ofMerchant(merchantId).length);
    };
    await expect.poll(claim).toEqual([2, 2]);
    const record = (id: AccountId) =>
      Promise.all(
        ofMerchant(id).map((delivery) => deliveries.record(delivery, { kind: 'delivered', text: 'HTTP 200' })),
      );
    const server = cluster.workers.find(({ port }) => port === first.port);
    server?.hang();
    onTestFinished(() => server?.resume());
    const waiting = record(first.merchantId);
    await record(other.merchantId);
    server?.resume();
    await waiting;
    const stored = await database.sql`select count(*)::int as delivered from webhook_deliveries
      where merchant_id in (${first.merchantId}, ${other.merchantId}) and delivered_at is not null`;
    expect(stored).toEqual([{ delivered: 4 }]);
  });

  test('while a server hangs, deliveries of merchants on other servers are claimed, and their orders expire', async () => {
    const options = { url: gatewayUrl(), isDistributed: true, patience: testPatience };
    const [store, deliveries] = [openOrderStore(options), openWebhookDeliveries(options)];
    onTestFinished(async () => void (await Promise.all([store.close(), deliveries.close()])));
    const { first, other } = await placedMerchants();
    await connect(store, [first, other]);
    for (const { merchantId } of [first, other]) {
      await database.sql`insert into webhook_endpoints (merchant_id, endpoint_id, url, signing_secret)
        values (${merchantId}, 'we_1', 'https://shop.example.com', '')`;
    }
    const claimed: number[] = [];
    const claim = async () => {
      const filter = { failing: false, perEndpoint: 16, inFlight: new Map(), limit: 64 };
      for (const { merchantId } of (await deliveries.claim(filter)).deliveries) claimed.push(merchantId);
      return [first, other].map(({ merchantId }) => claimed.filter((id) => id === merchantId).length);
    };
    const expire = counting(store.expire);
    const expiredOrder = (merchantId: AccountId) => ({
      ...sampleOrder(merchantId, { order_id: 'expired' }),
      expiresAtMs: Date.now() - 1_000,
    });
    await performAll(store, first.merchantId, 'p-');
    await createOrder(store, expiredOrder(first.merchantId));
    const server = cluster.workers.find(({ port }) => port === first.port);
    server?.hang();
    onTestFinished(() => server?.resume());
    await performAll(store, other.merchantId, 'p-');
    await expect.poll(claim).toEqual([0, 2]);
    const withNewEvents = () => store.findNewEvents(new Map([first, other].map(({ merchantId }) => [merchantId, 0])));
    await expect.poll(withNewEvents).toEqual(new Set([other.merchantId]));
    await createOrder(store, expiredOrder(other.merchantId));
    await expect.poll(expire).toBe(1);
    await expect.poll(claim).toEqual([0, 3]);
    server?.resume();
    await expect.poll(expire).toBe(2);
    await expect.poll(claim).toEqual([3, 3]);
    await expect.poll(withNewEvents).toEqual(new Set([first.merchantId, other.merchantId]));
  });

  test('while a server hangs, the pending refunds of merchants on other servers are listed, and count for the health', async () => {
    const store = openOrderStore({ url: gatewayUrl(), isDistributed: true, patience: testPatience });
    onTestFinished(store.close);
    const { first, other } = await placedMerchants();
    const checkoutId = await createMerchantId(database.sql);
    await requestRefund(store, first.merchantId, checkoutId, 'first');
    await requestRefund(store, other.merchantId, checkoutId, 'second');
    const list = (page: Parameters<OrderStore['listPendingRefunds']>[1]) =>
      store.listPendingRefunds(checkoutId, page, enoughMs);
    const [oldest] = await list({ limit: 1 }).then((page) => (page.kind === 'found' ? page.refunds : []));
    expect(oldest).toMatchObject({ orderId: 'first' });
    expect(await list({ limit: 9, after: oldest })).toMatchObject({ refunds: [{ orderId: 'second' }] });
    const server = cluster.workers.find(({ port }) => port === first.port);
    server?.hang();
    onTestFinished(() => server?.resume());
    expect(await list({ limit: 9 })).toMatchObject({
      kind: 'found',
      refunds: [{ orderId: 'second' }],
      isIncomplete: true,
    });
    await expect.poll(async () => (await store.readRefundHealth())?.pendingSeconds).toBeGreaterThan(0);
    server?.resume();
    await expect
      .poll(() => list({ limit: 9 }))
      .toMatchObject({ refunds: [{ orderId: 'first' }, { orderId: 'second' }], isIncomplete: false });
  });

  test('while a server hangs, orders of merchants on other servers are erased', async () => {
    const store = openStore();
    const { first, other } = await placedMerchants();
    for (const { merchantId } of [first, other]) {
      await createOrder(store, { ...sampleOrder(merchantId, { order_id: 'old' }, { cart: '17' }), createdAtMs: -2 });
      await createOrder(store, sampleOrder(merchantId, { order_id: 'new' }));
    }
    const erase = (target: ErasureTarget) =>
      eraseOrders({ url: gatewayUrl(), key: new Uint8Array(32), actor: 'alice' }, target).catch(() => 'failed');
    // Orders of other tests are not as old.
    const eraseOld = () => erase({ by: 'age', before: new Date(-1) });
    const leftOf = async (merchantId: AccountId) => {
      const [orders, pairs] = [
        await database.sql`select order_id from orders where merchant_id = ${merchantId} and erased_digest is null order by order_id`,
        await database.sql`select from order_metadata where merchant_id = ${merchantId}`,
      ];
      return [...orders.map(({ order_id }) => order_id), pairs.length];
    };
    const server = cluster.workers.find(({ port }) => port === first.port);
    server?.hang();
    onTestFinished(() => server?.resume());
    await expect.poll(async () => [await eraseOld(), await leftOf(other.merchantId)]).toEqual(['failed', ['new', 0]]);
    const [{ client_id } = {}] = await database.sql`select client_id from accounts where id = ${other.merchantId}`;
    const eraseNew = () => erase({ by: 'order', clientId: client_id, orderId: 'new' });
    await expect.poll(async () => [await eraseNew(), await leftOf(other.merchantId)]).toContainEqual([0]);
    server?.resume();
    expect(await leftOf(first.merchantId)).toEqual(['new', 'old', 1]);
    await expect.poll(async () => [await eraseOld(), await leftOf(first.merchantId)]).toContainEqual(['new', 0]);
    const logged = await database.sql`select details from audit_log where action = 'orders.erase' order by id`;
    expect(logged.map(({ details }) => [details.by, details.orders])).toEqual([
      ['age', 1],
      ['order', 1],
      ['age', 1],
    ]);
  });

  test('the share of merchants that are served falls while a server is down or hangs, and rises afterwards', async () => {
    const [store, writeCheck] = [openStore(), openWriteCheck({ url: gatewayUrl() })];
    onTestFinished(writeCheck.close);
    const served = async () => {
      // The check of the coordinator needs no other server.
      await writeCheck.run();
      const ratio = await store.readServedRatio();
      return ratio === 0 ? 'none' : ratio < 1 ? 'some' : 'all';
    };
    await expect.poll(served).toBe('all');
    const [hanging, killed] = cluster.workers;
    hanging?.hang();
    onTestFinished(() => hanging?.resume());
    await expect.poll(served).toBe('some');
    hanging?.resume();
    await expect.poll(served).toBe('all');
    killed?.kill();
    onTestFinished(() => killed?.start());
    await expect.poll(served).toBe('some');
    hanging?.hang();
    await expect.poll(served).toBe('none');
  });

  test('a session needs no other server for its next ids', async () => {
    const { first } = await placedMerchants();
    const server = cluster.workers.find(({ port }) => port === first.port);
    await withSession(database.url, async (client) => {
      const ids = createOrderIds(drizzle({ client }), { number: 1, anyMerchant: () => first.merchantId });
      await ids.take();
      server?.hang();
      onTestFinished(() => server?.resume());
      const taken = new Set<number>();
      for (let count = 0; count < 2 * idBlockSize; count += 1) taken.add(await ids.take());
      expect(taken.size).toBe(2 * idBlockSize);
    });
  });

  test('each statement of a merchant runs on one shard', async () => {
    const proxy = await startRecordingProxy(database.url);
    onTestFinished(() => proxy.close());
    await doMerchantOperations(proxy.url, database.sql, true);
    const functions = await database.sql`select proname from pg_proc where 'merchant_id' = any(proargnames)`;
    const names = [...(await distributedTables()), ...functions.map(({ proname }) => proname)];
    const isDistributed = new RegExp(`\\b(${names.join('|')})\\b`);
    const onOtherShards: string[] = [];
    for (const run of proxy.runs.filter(isOfMerchant)) {
      if (!isDistributed.test(run.text)) continue;
      const tasks = await tasksOf(database.url, run);
      if (tasks.join() !== '1') onOtherShards.push(`${tasks.join()}: ${run.text}`);
    }
    expect(onOtherShards).toEqual([]);
  });

  test('while the coordinator is down, sweeps have nothing to do, and lists of refunds fail', async () => {
    const [store, checkoutId] = [openStore(), await createMerchantId(database.sql)];
    cluster.coordinator.kill();
    onTestFinished(() => cluster.coordinator.start());
    expect(await store.expire()).toEqual({ count: 0, isDone: true });
    expect(await store.listPendingRefunds(checkoutId, { limit: 9 }, enoughMs)).toEqual({ kind: 'unavailable' });
    expect(await store.readRefundHealth()).toBeUndefined();
  });
});

/** Returns the number of tasks of each query that the coordinator sends to workers for a statement. */
async function tasksOf(url: string, { text, values }: RecordedRun): Promise<number[]> {
  return withSession(url, async (session) => {
    await session.unsafe(`prepare recorded as ${text}`);
    const literals = values.map((value) => (value === null ? 'null' : `'${value.replaceAll("'", "''")}'`));
    const run = literals.length === 0 ? 'execute recorded' : `execute recorded(${literals.join()})`;
    const [row] = await session.unsafe(`explain (format json, costs off) ${run}`);
    return JSON.stringify(row)
      .matchAll(/"Task Count":(\d+)/g)
      .map(([, count]) => Number(count))
      .toArray();
  });
}
