import postgres from 'postgres';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { responseBytesMax } from '../../../src/limits.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, postJson } from '../../helpers/send-order.ts';

// Behaviour of ListOrders that no fixture shows.

const gateway = useGateway();
beforeAll(async () => {
  for (let index = 0; index < 25; index += 1) await createOrder(gateway, `order-${index}`);
});

const list = (query: Record<string, string> = {}) => callJson(gateway, 'GET', `/orders?${new URLSearchParams(query)}`);

const idsOf = ({ orders }: { orders: { order_id: string }[] }) => orders.map(({ order_id }) => order_id);

/** The ids of all orders, newest first. */
const allIds = Array.from({ length: 25 }, (_, index) => `order-${24 - index}`);

test('GET /orders: the last page has no cursor, even if it is full', async () => {
  const { body } = await list({ limit: '25' });
  expect([idsOf(body), Object.hasOwn(body, 'next_cursor')]).toEqual([allIds, false]);
});

test('GET /orders: lists 20 orders, newest first, and the rest after the cursor, even if an order is added in between', async () => {
  const { body: first } = await list();
  expect(idsOf(first)).toEqual(allIds.slice(0, 20));
  await createOrder(gateway, 'added');
  const { body: second } = await list({ cursor: first.next_cursor });
  expect([idsOf(second), Object.hasOwn(second, 'next_cursor')]).toEqual([allIds.slice(20), false]);
});

test('pages of orders and events with the longest refunds fit into a response of every protocol, and none is missing', async () => {
  const shop = await gateway.newMerchant('Refunding Shop', 'test');
  const ids = Array.from({ length: 8 }, (_, index) => `refunded-${index}`);
  const text = (length: number) => '\u{1f600}'.repeat(length);
  const refunds = Array.from({ length: 100 }, (_, index) => ({
    reporterId: 1,
    refundId: `${text(120)}${index}`,
    checkoutId: 2,
    providerRefundId: `${text(120)}${index}`,
    paymentId: text(128),
    amount: '0.01',
    currency: 'EUR',
    refundedAtMs: index,
    note: text(1_000),
    history: [{ status: 'SUCCEEDED', atMs: index, reason: text(128) }],
  }));
  for (const id of ids) {
    const { created_at } = await createOrder(shop, id);
    await callJson(shop, 'POST', `/order/${id}/payments`, { payment_id: id, paid_at: created_at });
  }
  const sql = postgres(gateway.databaseUrl, { max: 1 });
  onTestFinished(() => sql.end());
  const reversals = { version: 1, refunds, disputes: [] };
  await sql`update orders set reversals = ${sql.json(reversals)} where order_id like 'refunded-%'`;
  const bytes: number[] = [];
  /** Reads page after page. Returns the order_id of each item. */
  const readAll = async (read: (cursor: string | undefined) => Promise<Response>) => {
    const found: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const response = await read(cursor);
      const body = await response.text();
      expect([response.status, body.slice(0, 200)]).toEqual([200, expect.anything()]);
      bytes.push(Buffer.byteLength(body));
      const { orders, events = [], next_cursor } = JSON.parse(body);
      const items = orders ?? events.map(({ data, order = data }: { data: object; order: object }) => order);
      found.push(...items.map(({ order_id }: { order_id: string }) => order_id));
      if (next_cursor === undefined || items.length === 0) return found;
      cursor = next_cursor;
    }
  };
  const headers = { 'x-client-id': shop.credentials.clientId, 'x-client-secret': shop.credentials.clientSecret };
  const newestFirst = ids.toReversed();
  for (const [path, method, expected] of [
    ['orders', 'OrderService/ListOrders', newestFirst],
    ['events', 'EventService/ListEvents', ids],
  ] as const) {
    const overHttp = (cursor = '') => fetch(`${shop.url}/${path}?limit=100&cursor=${cursor}`, { headers });
    expect(await readAll(overHttp)).toEqual(expected);
    expect(await readAll((cursor) => postJson(shop, `/gateway.v1.${method}`, { limit: 100, cursor }))).toEqual(
      expected,
    );
  }
  expect(Math.max(...bytes)).toBeLessThan(responseBytesMax);
  // Several orders without long refunds share a page.
  expect(bytes.length).toBeLessThan(4 * (ids.length + 1));
});
