import type { MerchantId } from '@gateway/domain/merchant';
import { newOrder } from '@gateway/domain/testing/sample-orders';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startThrowawayPostgres, type ThrowawayPostgres } from '../testing/throwaway-postgres.ts';
import { migrateDatabase } from './migrate.ts';
import { openOrderStore, type PostgresOrderStore } from './order-store.ts';

// What the look-ups find is told by the suite for all stores, in order-store.test.ts; this is how they stand trouble.

const enoughMs = 20_000;

let server: ThrowawayPostgres;
let sql: postgres.Sql;
let store: PostgresOrderStore;
const merchantId = 1 as MerchantId;

const kept = newOrder(merchantId, { order_id: 'kept' });
const found = { kind: 'found', order: kept, merchantName: 'Shop' };

beforeAll(async () => {
  server = await startThrowawayPostgres();
  await migrateDatabase(server.url);
  sql = postgres(server.url, { max: 2, onnotice: () => {} });
  await sql`insert into merchants (name, client_id) values ('Shop', 'app_000000000000000000000001')`;
  store = openOrderStore({ url: server.url });
  await store.create(kept, enoughMs);
  // Enough rows and statistics for the planner to tell one index from another.
  await Promise.all(
    Array.from({ length: 500 }, (_, place) => store.create(newOrder(merchantId, { order_id: `${place}` }), enoughMs)),
  );
  await sql`analyze orders`;
});

afterAll(async () => {
  await store?.close();
  await sql?.end({ timeout: 1 });
  await server?.stop();
});

/** Does something while nobody else can use the orders in a way that the lock forbids. */
async function whileLocked(mode: 'exclusive' | 'access exclusive', work: () => Promise<void>): Promise<void> {
  await sql.begin(async (session) => {
    await session.unsafe(`lock table orders in ${mode} mode`);
    await work();
  });
}

test('look-ups are answered while all inserting connections are busy', async () => {
  const created = Promise.withResolvers<unknown>();
  await whileLocked('exclusive', async () => {
    created.resolve(store.create(newOrder(merchantId, { order_id: 'waits' }), enoughMs));
    expect(await store.findByToken(kept.orderToken, enoughMs)).toStrictEqual(found);
  });
  expect(await created.promise).toEqual({ kind: 'created' });
});

test('a look-up that the database keeps waiting is answered at its deadline', async () => {
  await whileLocked('access exclusive', async () => {
    expect(await store.findByToken(kept.orderToken, 50)).toEqual({ kind: 'deadline_exceeded' });
  });
  expect(await store.findByToken(kept.orderToken, enoughMs)).toStrictEqual(found);
});

test('look-ups over the bound of the waiting line are refused at once', async () => {
  // A store of its own, on whose connections nothing of the test before is still under way.
  const idle = openOrderStore({ url: server.url });
  const outcomes = await Promise.all(Array.from({ length: 3_000 }, () => idle.findByToken(kept.orderToken, enoughMs)));
  await idle.close();
  const overloaded = outcomes.filter(({ kind }) => kind === 'overloaded');
  // Two groups of 16 leave before the line is full.
  expect(overloaded.length).toBe(3_000 - 1_024 - 2 * 16);
  expect(outcomes.filter(({ kind }) => kind === 'found').length).toBe(1_024 + 2 * 16);
});

test('killed connections answer unavailable and are opened again', async () => {
  const kinds = new Set<string>();
  for (let round = 0; round < 40; round += 1) {
    const answers = Promise.all(Array.from({ length: 50 }, () => store.findByToken(kept.orderToken, enoughMs)));
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'order-gateway lookups'`;
    for (const { kind } of await answers) kinds.add(kind);
  }
  expect(kinds.difference(new Set(['found', 'unavailable'])).size).toBe(0);
  await expect.poll(() => store.findByToken(kept.orderToken, enoughMs)).toStrictEqual(found);
  // A statement whose connection dies unseen is given up after 5 s.
}, 60_000);

test.each([
  ['order_id', 'orders_merchant_id_order_id_pk', "merchant_id = 1 and order_id = 'kept'"],
  ['service order id', 'orders_merchant_id_service_order_id', 'merchant_id = 1 and service_order_id = 1'],
  ['token', 'orders_order_token', "order_token = 'x'"],
])('a look-up by %s has an index', async (_, index, condition) => {
  const plan = await sql.begin(async (session) => {
    // A small table is quicker read whole, so the planner is told not to.
    await session`set local enable_seqscan = off`;
    return session.unsafe(`explain select * from orders where ${condition}`);
  });
  expect(JSON.stringify(plan)).toContain(index);
});
