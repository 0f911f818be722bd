import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventPage, EventPosition } from '@order-gateway/domain/events';
import { type Order, transitions } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { createMerchantId, createOrder } from '../../testing/contract-store.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;

const database = useTestDatabase();
const openStore = useOrderStores(database);

async function createOrders(store: PostgresOrderStore, count: number): Promise<[AccountId, Order[]]> {
  const merchantId = await createMerchantId(database.sql);
  const orders = Array.from({ length: count }, (_, index) => sampleOrder(merchantId, { order_id: `order-${index}` }));
  return [merchantId, await Promise.all(orders.map((order) => createOrder(store, order)))];
}

async function cancel(store: PostgresOrderStore, order: Order): Promise<void> {
  const cancelled: Order = { ...order, orderStatus: 'CANCELLED', cancelledAtMs: 1 };
  const outcome = await store.change({ transition: transitions.cancel, order: cancelled }, enoughMs);
  expect(outcome).toStrictEqual({ kind: 'changed' });
}

const read = (store: PostgresOrderStore, merchantId: AccountId, after?: EventPosition) =>
  store.listEvents(merchantId, { after, limit: 7 }, enoughMs);

function eventsOf(page: EventPage) {
  if (page.kind !== 'found') throw new Error(page.kind);
  return page.events;
}

const orderIdsOf = (page: EventPage) => eventsOf(page).map(({ order }) => order.fields.order_id);

/** Reads the feed until `isDone` accepts the number of events that were read. Returns the ids of their orders. */
async function follow(store: PostgresOrderStore, merchantId: AccountId, isDone: (seen: number) => boolean) {
  const seen: string[] = [];
  let after: EventPosition | undefined;
  while (!isDone(seen.length)) {
    const page = await read(store, merchantId, after);
    seen.push(...orderIdsOf(page));
    after = page.kind === 'found' ? (page.scannedTo ?? after) : after;
  }
  return seen;
}

/** Stores the event of an order in a transaction, and runs `during` before it commits. */
async function storeSlowly(order: Order, during: () => Promise<void>): Promise<void> {
  await database.sql.begin(async (session) => {
    await session`insert into events (merchant_id, event_id, type, created_at, order_id)
      values (${order.merchantId}, ${`evt_${'0'.repeat(32)}`}, 'order.cancelled', now(), ${order.fields.order_id})`;
    await during();
  });
}

test('readers of several processes see each event once and in the same order while changes commit', async () => {
  const [writer, ...readers] = [openStore(), openStore(), openStore(), openStore()] as const;
  const [merchantId, orders] = await createOrders(writer, 300);
  const following = readers.map((reader) => follow(reader, merchantId, (seen) => seen >= orders.length));
  await Promise.all(orders.map((order) => cancel(writer, order)));

  const [first = [], ...otherFeeds] = await Promise.all(following);
  expect(first.toSorted()).toEqual(orders.map(({ fields }) => fields.order_id).toSorted());
  for (const feed of otherFeeds) expect(feed).toEqual(first);
});

test('an event whose change commits late delays no other event, and appears after a cursor issued before the commit', async () => {
  const store = openStore();
  const [merchantId, [late, early] = []] = await createOrders(store, 2);
  if (late === undefined || early === undefined) throw new Error('no orders');
  let after: EventPosition | undefined;
  await storeSlowly(late, async () => {
    await cancel(store, early);
    const page = await read(store, merchantId);
    expect(orderIdsOf(page)).toEqual([early.fields.order_id]);
    [after] = eventsOf(page);
  });
  expect(orderIdsOf(await read(store, merchantId, after))).toEqual([late.fields.order_id]);
  expect(orderIdsOf(await read(store, merchantId))).toEqual([early, late].map(({ fields }) => fields.order_id));
});

test('readers that wait for the feed, which another process has locked, assign no position twice', async () => {
  const readers = [openStore(), openStore()] as const;
  const [merchantId, orders] = await createOrders(readers[0], 5);
  for (const order of orders) await cancel(readers[0], order);
  await database.sql`insert into event_feeds values (${merchantId}, 40)`;
  const waiting = () => database.sql`select from pg_stat_activity
    where datname = current_database() and application_name = 'order-gateway lists' and wait_event_type = 'Lock'`;
  let reading: Promise<EventPage>[] = [];
  await database.sql.begin(async (session) => {
    await session`select from event_feeds where merchant_id = ${merchantId} for update`;
    reading = readers.map((reader) => read(reader, merchantId));
    await expect.poll(waiting).toHaveLength(2);
  });
  const expected = orders.map(({ fields }, index) => [41 + index, fields.order_id]);
  for (const page of await Promise.all(reading)) {
    expect(eventsOf(page).map(({ position, order }) => [position, order.fields.order_id])).toEqual(expected);
  }
});

test('a cursor expires if its event is deleted or, as after a restore, has a different position', async () => {
  const store = openStore();
  const [merchantId, orders] = await createOrders(store, 2);
  for (const order of orders) await cancel(store, order);
  const [first, second] = eventsOf(await read(store, merchantId));
  if (first === undefined || second === undefined) throw new Error('no events');
  expect(await read(store, merchantId, { ...first, position: second.position })).toEqual({ kind: 'cursor_expired' });
  expect(await read(store, merchantId, { position: 99, eventId: first.eventId })).toEqual({ kind: 'cursor_expired' });
  await database.sql`delete from events where event_id = ${first.eventId}`;
  expect(await read(store, merchantId, first)).toEqual({ kind: 'cursor_expired' });
  expect(eventsOf(await read(store, merchantId, second))).toEqual([]);
});

test('a first read of many events assigns positions in bounded steps, and a filter finds the last of them', async () => {
  const store = openStore();
  const [merchantId, [order] = []] = await createOrders(store, 1);
  if (order === undefined) throw new Error('no order');
  await database.sql`insert into events select ${merchantId}, 'evt_' || lpad(n::text, 32, '0'), null,
    case when n = 2_500 then 'order.paid' else 'order.cancelled' end, now(), ${order.fields.order_id} from generate_series(1, 2_500) n`;
  const types = ['order.paid'] as const;
  let after: EventPosition | undefined;
  for (const isCut of [true, true, false]) {
    const page = await store.listEvents(merchantId, { types, after, limit: 7 }, enoughMs);
    expect(page).toMatchObject({ kind: 'found', isCut });
    if (page.kind !== 'found') throw new Error(page.kind);
    after = page.scannedTo;
    expect(page.events).toHaveLength(isCut ? 0 : 1);
  }
  expect(after).toEqual({ position: 2_500, eventId: `evt_${'2500'.padStart(32, '0')}` });
});

test("a page of one order's events does not wait until the events of other orders have positions", async () => {
  const store = openStore();
  const [merchantId, [order, other] = []] = await createOrders(store, 2);
  if (order === undefined || other === undefined) throw new Error('no orders');
  await cancel(store, order);
  await read(store, merchantId);
  await cancel(store, other);
  const ofOrder = ({ fields }: Order, after?: EventPosition) =>
    store.listEvents(merchantId, { orderId: fields.order_id, after, limit: 7 }, enoughMs);
  const withoutPosition = () =>
    database.sql`select event_id from events where merchant_id = ${merchantId} and position is null`;
  const page = await ofOrder(order);
  expect(orderIdsOf(page)).toEqual([order.fields.order_id]);
  expect(await withoutPosition()).toHaveLength(1);
  const [event] = eventsOf(page);
  expect(await ofOrder(order, event)).toMatchObject({ kind: 'found', events: [] });
  expect(await withoutPosition()).toHaveLength(0);
  expect(orderIdsOf(await ofOrder(other, event))).toEqual([other.fields.order_id]);
});

test('merchants with events after the given positions are found, even if these events have no position yet', async () => {
  const store = openStore();
  const [merchantId, [order] = []] = await createOrders(store, 1);
  const [idleMerchantId] = await createOrders(store, 0);
  if (order === undefined) throw new Error('no order');
  const find = (position: number) =>
    store.findNewEvents(new Map([merchantId, idleMerchantId].map((id) => [id, position])));
  expect(await find(0)).toEqual(new Set());
  await cancel(store, order);
  expect(await find(0)).toEqual(new Set([merchantId]));
  const [event] = eventsOf(await read(store, merchantId));
  expect(await find(0)).toEqual(new Set([merchantId]));
  expect(await find(event?.position ?? 0)).toEqual(new Set());
});
