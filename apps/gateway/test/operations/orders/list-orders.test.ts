import { beforeAll, expect, test } from 'vitest';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder } from '../../helpers/send-order.ts';

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
