import { beforeAll, describe, expect, test } from 'vitest';
import { useGateway } from '../helpers/running-gateway.ts';
import { callJson, createOrder } from '../helpers/send-order.ts';

// Behaviour of ListOrders that no fixture shows.

const gateway = useGateway();
beforeAll(async () => {
  for (let index = 0; index < 25; index += 1) await createOrder(gateway, `order-${index}`);
});

const list = (query: Record<string, string> = {}) => callJson(gateway, 'GET', `/orders?${new URLSearchParams(query)}`);

const idsOf = ({ orders }: { orders: { order_id: string }[] }) => orders.map(({ order_id }) => order_id);

/** From the newest to the oldest. */
const allIds = Array.from({ length: 25 }, (_, index) => `order-${24 - index}`);

describe('GET /orders', () => {
  test('lists 20 orders, newest first, and the rest after the cursor', async () => {
    const { body: first } = await list();
    expect(idsOf(first)).toEqual(allIds.slice(0, 20));
    const { body: second } = await list({ cursor: first.next_cursor });
    expect([idsOf(second), Object.hasOwn(second, 'next_cursor')]).toEqual([allIds.slice(20), false]);
  });

  test('has no cursor if the last page is full', async () => {
    const { body } = await list({ limit: '25' });
    expect([idsOf(body), body.next_cursor]).toEqual([allIds, undefined]);
  });

  test('neither skips nor repeats an order while others are added', async () => {
    const seen: unknown[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await list({ limit: '7', ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...idsOf(body));
      cursor = body.next_cursor;
      await createOrder(gateway, `added-${seen.length}`);
    } while (cursor !== undefined);
    expect(seen).toEqual(allIds);
  });
});
