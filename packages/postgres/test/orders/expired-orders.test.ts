import { setTimeout as sleep } from 'node:timers/promises';
import {
  type CreateOutcome,
  type LinkLookup,
  type Order,
  type OrderStatus,
  type OrderStore,
  transitions,
} from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { createMerchantId, createOrder } from '../../testing/contract-store.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;

const database = useTestDatabase();
const openStore = useOrderStores(database);
let store: PostgresOrderStore;
beforeAll(() => {
  store = openStore();
});

type Listed = Awaited<ReturnType<OrderStore['list']>>;

/** Returns the statuses that an outcome shows. */
function statusesOf(outcome: CreateOutcome | Omit<LinkLookup, 'merchant'> | Listed): readonly OrderStatus[] {
  if ('order' in outcome) return [outcome.order.orderStatus];
  if ('orders' in outcome) return outcome.orders.map(({ orderStatus }) => orderStatus);
  throw new Error(outcome.kind);
}

/** Calls that show the status of an order, each with what it shows for a cancelled order. */
const reads: readonly [string, (order: Order) => Promise<readonly OrderStatus[]>, readonly OrderStatus[]][] = [
  [
    'findByOrderId',
    async ({ merchantId, fields }) => statusesOf(await store.findByOrderId(merchantId, fields.order_id, enoughMs)),
    ['CANCELLED'],
  ],
  [
    'findByServiceOrderId',
    async ({ merchantId, serviceOrderId }) =>
      statusesOf(await store.findByServiceOrderId(merchantId, serviceOrderId, enoughMs)),
    ['CANCELLED'],
  ],
  ['findByToken', async ({ orderToken }) => statusesOf(await store.findByToken(orderToken, enoughMs)), ['CANCELLED']],
  ['findForPage', async ({ orderToken }) => statusesOf(await store.findForPage(orderToken, enoughMs)), ['CANCELLED']],
  ['create', async (order) => statusesOf(await store.create(order, enoughMs)), ['CANCELLED']],
  ['list', async ({ merchantId }) => statusesOf(await store.list(merchantId, { limit: 5 }, enoughMs)), ['CANCELLED']],
  [
    'list of EXPIRED',
    async ({ merchantId }) => statusesOf(await store.list(merchantId, { limit: 5, status: 'EXPIRED' }, enoughMs)),
    [],
  ],
];

async function orderExpiringIn(ms: number): Promise<Order> {
  const merchantId = await createMerchantId(database.sql);
  return createOrder(store, { ...sampleOrder(merchantId), expiresAtMs: Date.now() + ms });
}

/** Returns the order's stored status and the types of its events. */
async function stored({ merchantId }: Order): Promise<unknown> {
  const [row] = await database.sql`
    select order_status as status, array(select type from events e where e.merchant_id = o.merchant_id) as events
    from orders o where merchant_id = ${merchantId}`;
  return row;
}

/** Begins a transaction and executes a statement about an order in it. Returns a function that ends the transaction. */
async function begin(statement: string, { merchantId }: Order): Promise<(end: 'commit' | 'rollback') => Promise<void>> {
  const session = await database.sql.reserve();
  onTestFinished(() => session.release());
  await session.unsafe(`begin; ${statement.replace('$1', String(merchantId))}`);
  return async (end) => void (await session.unsafe(end));
}

const cancel = "update orders set order_status = 'CANCELLED', cancelled_at = now() where merchant_id = $1";

/**
 * Waits until a client of the store waits for a lock. A read waits on the client `expiries`, but `create` waits on
 * `orders`, because it inserts the order first.
 */
function untilBlocked(client: 'orders' | 'expiries' = 'expiries'): Promise<void> {
  const blocked = () => database.sql`
    select from pg_stat_activity
    where datname = current_database() and application_name = ${`order-gateway ${client}`} and wait_event_type = 'Lock'`;
  return expect.poll(blocked, { timeout: enoughMs }).toHaveLength(1);
}

test.each(reads)(
  '%s does not show an order as expired if a change in flight cancels it',
  async (name, read, cancelled) => {
    const order = await orderExpiringIn(-1_000);
    const end = await begin(cancel, order);
    const reading = read(order);
    await untilBlocked(name === 'create' ? 'orders' : 'expiries');
    await end('commit');
    expect(await reading).toEqual(cancelled);
    expect(await stored(order)).toEqual({ status: 'CANCELLED', events: [] });
  },
);

test.each(reads)('%s shows an order as expired only after its expiry is stored, with its event', async (name, read) => {
  const order = await orderExpiringIn(-1_000);
  const end = await begin(cancel, order);
  const reading = Promise.all([read(order), read(order), read(order)]);
  await untilBlocked(name === 'create' ? 'orders' : 'expiries');
  await end('rollback');
  expect(await reading).toEqual([['EXPIRED'], ['EXPIRED'], ['EXPIRED']]);
  expect(await stored(order)).toEqual({ status: 'EXPIRED', events: ['order.expired'] });
});

test('a cancellation that waits past the expiry agrees with a lookup after the expiry', async () => {
  const order = await orderExpiringIn(500);
  const end = await begin('select from orders where merchant_id = $1 for update', order);
  const cancelled: Order = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: Date.now() };
  const changing = store.change({ transition: transitions.cancel, order: cancelled }, enoughMs);
  await sleep(600);
  const reading = store.findByToken(order.orderToken, enoughMs);
  await untilBlocked();
  await end('commit');
  const { kind } = await changing;
  const status = kind === 'changed' ? 'CANCELLED' : 'EXPIRED';
  expect(statusesOf(await reading)).toEqual([status]);
  expect(await stored(order)).toMatchObject({ status });
});

test('a list stores the expiry of only those orders that are on its page', async () => {
  const merchantId = await createMerchantId(database.sql);
  const past = Date.now() - 1_000;
  const orders = [past, null, past, past + 3_600_000, past].map((expiresAtMs, index) => ({
    ...sampleOrder(merchantId, { order_id: `listed-${index}` }),
    createdAtMs: index,
    expiresAtMs,
  }));
  await Promise.all(orders.map((order) => createOrder(store, order)));
  expect(statusesOf(await store.list(merchantId, { limit: 4 }, enoughMs))).toEqual([
    ...['EXPIRED', 'UN_PAID', 'EXPIRED', 'UN_PAID'],
  ]);
  const expired = await database.sql`select order_id from events where merchant_id = ${merchantId} order by order_id`;
  expect(expired.map(({ order_id }) => order_id)).toEqual(['listed-2', 'listed-4']);
});

test('a lookup that waits for a change in flight ends with its connection or at its deadline, and delays no other lookup', async () => {
  const [blocked, other] = [await orderExpiringIn(-1_000), await orderExpiringIn(3_600_000)];
  const end = await begin(cancel, blocked);
  const reading = store.findByToken(blocked.orderToken, enoughMs);
  await untilBlocked();
  expect(statusesOf(await store.findByToken(other.orderToken, enoughMs))).toEqual(['UN_PAID']);
  await database.sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = 'order-gateway expiries'`;
  expect(await reading).toEqual({ kind: 'unavailable' });
  expect(await store.findByToken(blocked.orderToken, 300)).toEqual({ kind: 'deadline_exceeded' });
  await end('commit');
});
