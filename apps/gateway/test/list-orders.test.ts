import { Code } from '@connectrpc/connect';
import { OrderService, OrderStatus } from '@gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { beforeAll, describe, expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from './rpc-clients.ts';
import { useGateway } from './running-gateway.ts';
import { answerOf, credentialHeaders, postOrder } from './send-order.ts';

const gateway = useGateway();
let createdAt: string[];
beforeAll(async () => {
  createdAt = [];
  for (let index = 0; index < 25; index += 1) createdAt.push((await createOrder(`order-${index}`)).created_at);
  await cancel('order-3');
});

const own = () => credentialHeaders(gateway.credentials);

async function createOrder(orderId: string) {
  return answerOf(await postOrder(gateway, validOrderInput({ order_id: orderId })));
}

async function cancel(orderId: string) {
  await (await fetch(`${gateway.url}/order/${orderId}/cancel`, { method: 'POST', headers: own() })).text();
}

interface Page {
  readonly orders: readonly Record<string, unknown>[];
  readonly next_cursor?: string;
}

async function get(path: string, query: Record<string, string> = {}, headers = own()) {
  const response = await fetch(`${gateway.url}/${path}?${new URLSearchParams(query)}`, { headers });
  return { status: response.status, body: Object(await response.json()) };
}

const idsOf = ({ orders }: Page) => orders.map(({ order_id }) => order_id);

/** From the newest to the oldest. */
const allIds = Array.from({ length: 25 }, (_, index) => `order-${24 - index}`);

describe('GET /orders', () => {
  test('lists 20 order records, newest first, and the rest after the cursor', async () => {
    const { status, body: first } = await get('orders');
    expect([status, idsOf(first)]).toEqual([200, allIds.slice(0, 20)]);
    const [record] = first.orders;
    expect(record).toStrictEqual((await get(`order/${record.order_id}`)).body);
    const { body: second } = await get('orders', { cursor: first.next_cursor });
    expect([idsOf(second), Object.hasOwn(second, 'next_cursor')]).toEqual([allIds.slice(20), false]);
  });

  test('has no cursor where the last page is full', async () => {
    const { body } = await get('orders', { limit: '25' });
    expect([idsOf(body), body.next_cursor]).toEqual([allIds, undefined]);
  });

  test('neither skips nor repeats an order while others are added', async () => {
    const seen: unknown[] = [];
    let cursor: string | undefined;
    do {
      const { body } = await get('orders', { limit: '7', ...(cursor === undefined ? {} : { cursor }) });
      seen.push(...idsOf(body));
      cursor = body.next_cursor;
      await createOrder(`added-${seen.length}`);
    } while (cursor !== undefined);
    expect(seen).toEqual(allIds);
  });

  test('filters by status and by time of creation', async () => {
    expect(idsOf((await get('orders', { status: 'CANCELLED' })).body)).toEqual(['order-3']);
    expect((await get('orders', { status: 'PAID' })).body).toStrictEqual({ orders: [] });
    const [from = '', to = ''] = [createdAt[5], createdAt[8]];
    const { body } = await get('orders', { created_from: from, created_to: to, status: 'UN_PAID' });
    const expected = allIds.filter((_, index) => {
      const time = createdAt[24 - index] ?? '';
      return time >= from && time < to && index !== 21;
    });
    expect(idsOf(body)).toEqual(expected);
  });

  test('reads a plus sign that was not encoded', async () => {
    const response = await fetch(`${gateway.url}/orders?created_from=${createdAt[24]}&limit=100`, { headers: own() });
    expect(response.status).toBe(200);
  });

  test('shows a merchant only its own orders', async () => {
    const other = credentialHeaders(await createMerchant(gateway.databaseUrl, 'Other Shop'));
    expect((await get('orders', {}, other)).body).toStrictEqual({ orders: [] });
    const { body } = await get('orders');
    const { body: stolen } = await get('orders', { cursor: body.next_cursor }, other);
    expect(stolen).toStrictEqual({ orders: [] });
  });

  test.each<[Record<string, string>, [string, string][]]>([
    [{ limit: '0' }, [['limit', 'out_of_range']]],
    [{ limit: '101' }, [['limit', 'out_of_range']]],
    [{ limit: '-1' }, [['limit', 'out_of_range']]],
    [{ limit: '1.5' }, [['limit', 'bad_format']]],
    [{ limit: '' }, [['limit', 'bad_format']]],
    [{ status: 'FOO' }, [['status', 'not_allowed']]],
    [{ status: 'paid' }, [['status', 'not_allowed']]],
    [{ created_from: '2026-11-20' }, [['created_from', 'bad_format']]],
    [{ created_to: '2026-11-20T21:01:42' }, [['created_to', 'bad_format']]],
    [{ cursor: 'garbage' }, [['cursor', 'bad_format']]],
    [{ cursor: '' }, [['cursor', 'bad_format']]],
    [{ cursor: Buffer.from('1.99999999999999999').toString('base64url') }, [['cursor', 'bad_format']]],
    [{ cursor: Buffer.from('253402300800000.1').toString('base64url') }, [['cursor', 'bad_format']]],
    [{ created_to: '9999-12-31T23:59:59-00:01' }, [['created_to', 'bad_format']]],
    [
      { limit: 'x', status: 'x', created_from: 'x', created_to: 'x', cursor: 'x' },
      [
        ['status', 'not_allowed'],
        ['created_from', 'bad_format'],
        ['created_to', 'bad_format'],
        ['limit', 'bad_format'],
        ['cursor', 'bad_format'],
      ],
    ],
  ])('rejects %j', async (query, expected) => {
    const { status, body } = await get('orders', query);
    const errors = body.errors.map(({ field, code }: { field: string; code: string }) => [field, code]);
    expect([status, body.code, errors]).toEqual([400, 'invalid_request', expected]);
  });

  test('rejects a parameter that is given twice', async () => {
    const response = await fetch(`${gateway.url}/orders?limit=1&limit=2`, { headers: own() });
    expect(Object(await response.json()).errors).toMatchObject([{ field: 'limit', code: 'bad_format' }]);
  });
});

describe('ListOrders', () => {
  test('lists the same pages over every protocol', async () => {
    const { body } = await get('orders', { limit: '3', status: 'UN_PAID' });
    for (const { name, client } of rpcClients(OrderService, gateway)) {
      const page = await client.listOrders({ limit: 3, status: OrderStatus.UN_PAID }, { headers: own() });
      expect(
        page.orders.map(({ orderId }) => orderId),
        name,
      ).toEqual(idsOf(body));
      expect(page.nextCursor, name).toBe(body.next_cursor);
      const next = await client.listOrders({ limit: 1, cursor: page.nextCursor ?? '' }, { headers: own() });
      const { body: expected } = await get('orders', { limit: '1', cursor: body.next_cursor });
      expect(
        next.orders.map(({ orderId }) => orderId),
        name,
      ).toEqual(idsOf(expected));
    }
  });

  test('rejects wrong parameters with their names', async () => {
    for (const { name, client } of rpcClients(OrderService, gateway)) {
      const call = client.listOrders(
        { limit: 0, status: 0, createdFrom: 'x', createdTo: '', cursor: '' },
        { headers: own() },
      );
      expect(await rpcErrorOf(call), name).toEqual({
        code: Code.InvalidArgument,
        reason: 'invalid_request',
        violations: [
          'status not_allowed',
          'created_from bad_format',
          'created_to bad_format',
          'limit out_of_range',
          'cursor bad_format',
        ],
      });
    }
  });
});
