import type { AccountId } from '@order-gateway/domain/accounts';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { beforeAll, expect, test } from 'vitest';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

// What lookups find is tested by the store contract in order-store.test.ts; this file tests failures and load.

const enoughMs = 20_000;

const database = useTestDatabase();
const openStore = useOrderStores(database);
let store: PostgresOrderStore;
const merchantId = 1 as AccountId;
const clientId = 'app_000000000000000000000001';

const stored = sampleOrder(merchantId, { order_id: 'stored' });
const found = {
  kind: 'found',
  order: { ...stored, serviceOrderId: expect.any(Number) },
  merchant: { clientId, name: 'Shop', mode: 'live', isDisabled: false, returnSecrets: [], brand: null },
};

beforeAll(async () => {
  await database.sql`insert into accounts (name, client_id) values ('Shop', ${clientId})`;
  store = openStore();
  await store.create(stored, enoughMs);
});

/** Runs `work` while another session holds a lock on the orders. */
async function whileLocked(mode: 'exclusive' | 'access exclusive', work: () => Promise<void>): Promise<void> {
  await database.sql.begin(async (session) => {
    await session.unsafe(`lock table orders in ${mode} mode`);
    await work();
  });
}

test('lookups work while the inserting connection is busy', async () => {
  const created = Promise.withResolvers<unknown>();
  await whileLocked('exclusive', async () => {
    created.resolve(store.create(sampleOrder(merchantId, { order_id: 'waits' }), enoughMs));
    expect(await store.findByToken(stored.orderToken, enoughMs)).toStrictEqual(found);
  });
  expect(await created.promise).toMatchObject({ kind: 'created' });
});

test('a lookup that waits for a lock ends at its deadline', async () => {
  await whileLocked('access exclusive', async () => {
    expect(await store.findByToken(stored.orderToken, 50)).toEqual({ kind: 'deadline_exceeded' });
  });
  expect(await store.findByToken(stored.orderToken, enoughMs)).toStrictEqual(found);
});

test('lookups beyond the queue limit are rejected as overloaded', async () => {
  // A separate store is used, because the connections of the shared one may still run statements of the previous test.
  const idle = openStore();
  const outcomes = await Promise.all(
    Array.from({ length: 3_000 }, () => idle.findByToken(stored.orderToken, enoughMs)),
  );
  const overloaded = outcomes.filter(({ kind }) => kind === 'overloaded');
  // Two batches of 16 are sent before the queue is full.
  expect(overloaded.length).toBe(3_000 - 1_024 - 2 * 16);
  expect(outcomes.filter(({ kind }) => kind === 'found').length).toBe(1_024 + 2 * 16);
});

test('times are read as they were stored, even if the database has another date style', async () => {
  const times = {
    createdAtMs: Date.parse('2026-11-03T20:01:42.172Z'),
    expiresAtMs: Date.parse('2999-04-05T00:00:00Z'),
  };
  const order = { ...sampleOrder(merchantId, { order_id: 'times' }), ...times };
  await database.sql.unsafe(`alter database ${new URL(database.url).pathname.slice(1)} set datestyle = 'SQL, DMY'`);
  const otherStore = openStore();
  await otherStore.create(order, enoughMs);
  expect(await otherStore.findByOrderId(merchantId, 'times', enoughMs)).toMatchObject({ kind: 'found', order: times });
});

test('lookups on killed connections are unavailable, and the connections are replaced', async () => {
  const kinds = new Set<string>();
  for (let round = 0; round < 40; round += 1) {
    const finding = Promise.all(Array.from({ length: 50 }, () => store.findByToken(stored.orderToken, enoughMs)));
    await database.sql`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'order-gateway lookups' and datname = current_database()`;
    for (const { kind } of await finding) kinds.add(kind);
  }
  expect(kinds.difference(new Set(['found', 'unavailable'])).size).toBe(0);
  // A statement whose connection was lost without notice ends after 5 s.
  await expect.poll(() => store.findByToken(stored.orderToken, enoughMs)).toStrictEqual(found);
});
