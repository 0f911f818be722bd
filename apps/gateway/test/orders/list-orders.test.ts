import { beforeAll, describe, expect, test } from 'vitest';
import { useGateway } from '../helpers/running-gateway.ts';
import { callJson, createOrder } from '../helpers/send-order.ts';

// What the fixtures of ListOrders do not show.

const gateway = useGateway();
const createdAt: string[] = [];
beforeAll(async () => {
  for (let index = 0; index < 25; index += 1) createdAt.push((await createOrder(gateway, `order-${index}`)).created_at);
  await callJson(gateway, 'POST', '/order/order-3/cancel');
});

const list = (query: Record<string, string> = {}, credentials = gateway.credentials) =>
  callJson({ ...gateway, credentials }, 'GET', `/orders?${new URLSearchParams(query)}`);

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

  test('has no cursor where the last page is full', async () => {
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

  test('filters by status and by time of creation', async () => {
    const [from = '', to = ''] = [createdAt[2], createdAt[8]];
    const { body } = await list({ created_from: from, created_to: to, status: 'UN_PAID' });
    const expected = allIds.filter((orderId, index) => {
      const time = createdAt[24 - index] ?? '';
      return time >= from && time < to && orderId !== 'order-3';
    });
    expect(idsOf(body)).toEqual(expected);
    expect(idsOf((await list({ status: 'CANCELLED' })).body)).toEqual(['order-3']);
  });

  test("shows a merchant only its own orders, whatever another's cursor is", async () => {
    const other = await gateway.accounts.create('Other Shop');
    const { body } = await list();
    expect((await list({}, other)).body).toStrictEqual({ orders: [] });
    expect((await list({ cursor: body.next_cursor }, other)).status).toBe(400);
  });

  test.each([
    [`cursor=${Buffer.from('1.99999999999999999').toString('base64url')}`, 'cursor'],
    [`cursor=${Buffer.from('253402300800000.1').toString('base64url')}`, 'cursor'],
    ['limit=1&limit=2', 'limit'],
  ])('rejects %s', async (query, field) => {
    const { status, body } = await callJson(gateway, 'GET', `/orders?${query}`);
    expect([status, body]).toMatchObject([400, { code: 'invalid_request', errors: [{ field, code: 'bad_format' }] }]);
  });
});
