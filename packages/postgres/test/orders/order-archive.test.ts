import {
  decideRefund,
  decideReportedDispute,
  decideReportedRefund,
  type Order,
  type RefusedPayment,
  transitions,
} from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { beforeAll, describe, expect, test } from 'vitest';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { exportOrders, importOrders } from '../../src/orders/operators/order-archive.ts';
import { createMerchantId, createOrder } from '../../testing/contract-store.ts';
import { createMigratedDatabase } from '../../testing/migrated-database.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { createPartitionedDatabase } from '../../testing/partitioned-database.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;

/** When the first order was created. The others follow one millisecond apart. */
const firstMs = Date.parse('2026-01-01T00:00:00Z');
/** Several pages of orders. */
const count = 2_500;

describe.each([
  ['one table', createMigratedDatabase],
  ['partitions', createPartitionedDatabase],
])('in %s', (_, create) => {
  const database = useTestDatabase(create);
  const openStore = useOrderStores(database);
  let store: PostgresOrderStore;
  beforeAll(() => {
    store = openStore();
  });

  const stored = () => database.sql`select orders::text from orders order by order_token`;

  const exported = async (fromMs: number, beforeMs: number) => {
    const pages: string[][] = [];
    for await (const page of exportOrders(database.url, { fromMs, beforeMs })) pages.push(page);
    return pages.flat();
  };

  async function* linesOf(lines: readonly string[]) {
    yield* lines;
  }

  test('exported orders are restored exactly, once, and are found and replayed again', async () => {
    const merchants = [await createMerchantId(database.sql), await createMerchantId(database.sql)] as const;
    const orderOf = (index: number) => ({
      ...sampleOrder(
        merchants[index % 2 === 0 ? 0 : 1],
        {
          order_id: `order-${index} \u2028 "\\ {NULL}, 店`,
          order_note: 'line\r\nbreak\t\u2029',
          order_amount: index === 0 ? 9_999_999_999_999.99 : 0.1,
        },
        index % 3 === 0 ? { number: String(index), 'a"b': '{"\\": 店}' } : null,
      ),
      createdAtMs: firstMs + index,
    });
    const creating = Array.from({ length: count }, (_, index) => createOrder(store, orderOf(index)));
    const [first] = await Promise.all(creating);
    if (first === undefined) throw new Error('nothing was created');
    const payment = { checkoutId: null, paymentId: 'p', paidAtMs: firstMs };
    const paid = { ...first, orderStatus: 'PAID' as const, payment };
    await store.change({ transition: transitions.pay, order: paid }, enoughMs);
    const before = await stored();

    const lines = await exported(firstMs, firstMs + count - 1);
    expect(lines).toHaveLength(count - 1);
    await database.sql`delete from orders where created_at < ${new Date(firstMs + count - 1).toISOString()}`;
    await database.sql`delete from order_metadata`;
    expect(await stored()).toHaveLength(1);
    expect(await importOrders(database.url, linesOf(lines))).toEqual({ restored: count - 1, existing: 0 });
    expect(await importOrders(database.url, linesOf(lines))).toEqual({ restored: 0, existing: count - 1 });

    expect(await stored()).toEqual(before);
    expect(await store.create(orderOf(0), enoughMs)).toEqual({ kind: 'exists', order: paid });
    expect(await store.findByToken(first.orderToken, enoughMs)).toMatchObject({ kind: 'found', order: paid });
    const listed = await store.list(merchants[0], { metadata: { number: '0' }, limit: 5 }, enoughMs);
    expect(listed).toMatchObject({ kind: 'found', orders: [paid] });
  });

  test('the refused payments of a restored order are known and listed', async () => {
    const merchantId = await createMerchantId(database.sql);
    const createdAtMs = Date.parse('2024-01-01T00:00:00Z');
    const order = await createOrder(store, { ...sampleOrder(merchantId), createdAtMs });
    const payment = {
      checkoutId: merchantId,
      paymentId: 'p-21',
      paidAtMs: createdAtMs,
      amount: order.fields.order_amount,
    };
    const refused = { ...payment, currency: 'JPY', code: 'payment_mismatch' as const };
    // The order itself has only the latest 20.
    for (let number = 1; number <= 21; number += 1) {
      const refusal = { order, payment: { ...refused, paymentId: `p-${number}`, paidOn: '2024-01-02' } };
      expect(await store.refusePayment(refusal, enoughMs)).toEqual({ kind: 'changed' });
    }
    const find = async () => ({
      ...(await store.findForPayment(order.orderToken, payment, enoughMs)),
      nowMs: undefined,
    });
    const before = await find();
    expect(before).toMatchObject({
      isKnown: true,
      storedPaidOn: '2024-01-02',
      refused,
      order: { refusedPayments: Array.from({ length: 20 }, (_, index) => ({ paymentId: `p-${index + 2}` })) },
    });
    const listed = async () => [
      await database.sql`select refused_payments::text from refused_payments order by refused_at`,
      await database.sql`select payments::text from payments where merchant_id = ${merchantId} order by 1`,
    ];
    const rows = await listed();
    expect(rows.map(({ length }) => length)).toEqual([21, 21]);

    const lines = await exported(createdAtMs, createdAtMs + 1);
    const deleteAll = async () => {
      for (const table of ['orders', 'payments', 'refused_payments'])
        await database.sql`delete from ${database.sql(table)} where merchant_id = ${merchantId}`;
    };
    await deleteAll();
    for (const restored of [1, 0])
      expect(await importOrders(database.url, linesOf(lines))).toEqual({ restored, existing: 1 - restored });
    expect(await listed()).toEqual(rows);
    expect(await find()).toEqual(before);

    // Earlier versions exported only the refused payments that the order has.
    const earlier = lines.map((line) => JSON.stringify({ ...JSON.parse(line), refused: undefined }));
    await deleteAll();
    expect(await importOrders(database.url, linesOf(earlier))).toEqual({ restored: 1, existing: 0 });
    const latest = rows.map((all) => all.slice(-20).map(() => expect.anything()));
    expect(await listed()).toEqual(latest);
    expect(await find()).toEqual(before);
  });

  test('the refunds and disputes of a restored order are known, and are owed or pending as before', async () => {
    const merchantId = await createMerchantId(database.sql);
    const createdAtMs = Date.parse('2024-02-01T00:00:00Z');
    const order = await createOrder(store, { ...sampleOrder(merchantId), createdAtMs });
    const checkoutId = await createMerchantId(database.sql);
    const payment = { checkoutId, paymentId: 'p-1', paidAtMs: createdAtMs };
    await store.change({ transition: transitions.pay, order: { ...order, orderStatus: 'PAID', payment } }, enoughMs);
    const { order_amount: amount, order_currency: currency } = order.fields;
    const second = { checkoutId, paymentId: 'p-2', amount, currency, code: 'order_already_paid' as const };
    const paid = { ...order, orderStatus: 'PAID' as const, payment };
    const third = { ...second, paymentId: 'p-3' };
    for (const paymentId of ['p-2', 'p-3', 'p-4', 'p-5'])
      await store.refusePayment({ order: paid, payment: { ...second, paymentId, paidAtMs: createdAtMs } }, enoughMs);
    const change = async (
      decide: (found: Order, refused: RefusedPayment | null) => ReturnType<typeof decideRefund>,
      reported = second,
    ) => {
      const found = await store.findForPayment(order.orderToken, reported, enoughMs);
      const decided = found.kind === 'found' ? decide(found.order, found.refused) : undefined;
      if (!decided?.ok || decided.value.kind !== 'reverse') throw new Error('nothing was decided');
      expect(await store.changeReversals(decided.value.change, enoughMs)).toEqual({ kind: 'changed' });
    };
    const report = { ...second, refundId: null, providerRefundId: 're-1', status: 'SUCCEEDED', reason: null } as const;
    await change((found) => decideRefund(found, { refundId: 'r-1', amount, note: undefined }, true, createdAtMs));
    await change((found, refused) =>
      decideReportedRefund(found, { ...report, refundedAtMs: createdAtMs }, refused, createdAtMs),
    );
    // The rest of this payment is still owed.
    const part = { ...report, ...third, providerRefundId: 're-2', amount: 1n as typeof amount };
    await change(
      (found, refused) => decideReportedRefund(found, { ...part, refundedAtMs: null }, refused, createdAtMs),
      third,
    );
    for (const [paymentId, status] of [
      ['p-4', 'LOST'],
      ['p-5', 'WON'],
      // More than was paid goes back: the time when nothing was owed any more stays.
      ['p-2', 'LOST'],
    ] as const) {
      const dispute = { ...second, paymentId, disputeId: 'd-1', status, reason: null };
      await change((found, refused) => decideReportedDispute(found, dispute, refused, createdAtMs + 1_000), dispute);
    }
    const tables = ['orders', 'payments', 'refused_payments', 'pending_refunds'] as const;
    const contents = () =>
      Promise.all(
        tables.map(
          (table) =>
            database.sql`select entry::text from ${database.sql(table)} entry where merchant_id = ${merchantId} order by 1`,
        ),
      );
    const before = await contents();
    expect(before.map(({ length }) => length)).toEqual([1, 5, 4, 1]);
    const refundedAt = before[2]?.map(({ entry }) => /"2024-02-01 00:00:0(\S+)\+\d\d"\)$|,\)$/.exec(entry)?.[1]);
    expect(refundedAt?.toSorted()).toEqual(['0', '1.001', undefined, undefined]);
    const lines = await exported(createdAtMs, createdAtMs + 1);
    for (const table of tables)
      await database.sql`delete from ${database.sql(table)} where merchant_id = ${merchantId}`;
    expect(await importOrders(database.url, linesOf(lines))).toEqual({ restored: 1, existing: 0 });
    expect(await contents()).toEqual(before);
  });

  test('an order that changed after its export stays as it is', async () => {
    const merchantId = await createMerchantId(database.sql);
    const createdAtMs = Date.parse('2025-01-01T00:00:00Z');
    const order = await createOrder(store, { ...sampleOrder(merchantId), createdAtMs });
    const lines = await exported(createdAtMs, createdAtMs + 1);
    const cancelled = { ...order, orderStatus: 'CANCELLED' as const, cancelledAtMs: createdAtMs };
    await store.change({ transition: transitions.cancel, order: cancelled }, enoughMs);
    expect(await importOrders(database.url, linesOf(lines))).toEqual({ restored: 0, existing: 1 });
    const found = await store.findByOrderId(merchantId, cancelled.fields.order_id, enoughMs);
    expect(found).toEqual({ kind: 'found', order: cancelled });
  });

  test('an import with an invalid line fails, and the error contains the number of the line but not its text', async () => {
    const createdAtMs = Date.parse('2024-01-01T00:00:00Z');
    await createOrder(store, { ...sampleOrder(await createMerchantId(database.sql)), createdAtMs });
    const [line = ''] = await exported(createdAtMs, createdAtMs + 1);
    for (const [wrong, code] of [
      ['{"customer_name": "Ada"}', '23502'],
      ['Ada', '22P02'],
    ] as const) {
      for (const before of [2, 1_000]) {
        const lines = linesOf([...Array(before).fill(line), wrong, line]);
        const message = new RegExp(`^line ${before + 1}: the database rejected a statement: ${code}(?!.*Ada)`);
        await expect(importOrders(database.url, lines)).rejects.toThrow(message);
      }
    }
  });
});
