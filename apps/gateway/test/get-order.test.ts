import { Code } from '@connectrpc/connect';
import { OrderService, OrderStatus } from '@gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { beforeAll, describe, expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from './rpc-clients.ts';
import { useGateway } from './running-gateway.ts';
import { answerOf, credentialHeaders, postOrder } from './send-order.ts';

const gateway = useGateway();
let other: Record<string, string>;
beforeAll(async () => {
  other = credentialHeaders(await createMerchant(gateway.databaseUrl, 'Other Shop'));
});

const own = () => credentialHeaders(gateway.credentials);

function getOrder(path: string, headers: Record<string, string> = own()): Promise<Response> {
  return fetch(`${gateway.url}/order/${path}`, { headers, signal: AbortSignal.timeout(30_000) });
}

async function createOrder(orderId: string, overrides: Record<string, unknown> = {}) {
  return answerOf(await postOrder(gateway, validOrderInput({ order_id: orderId, ...overrides })));
}

describe('GET /order/{order_id}', () => {
  test('responds 200 with the response of the creation and the rest of the order record', async () => {
    const created = await postOrder(gateway, validOrderInput({ order_id: 'look-up' }));
    const found = await getOrder('look-up');
    expect(found.status).toBe(200);
    expect(found.headers.get('content-type')).toContain('application/json');
    expect(found.headers.get('cache-control')).toBe('no-store');
    expect(found.headers.get('x-request-id')).toMatch(/^[0-9A-Za-z]{16}$/);
    const input = validOrderInput();
    expect(await found.json()).toStrictEqual({
      ...(await answerOf(created)),
      mode: 'live',
      order_amount: input.order_amount,
      order_currency: input.order_currency,
      order_note: input.order_note,
      service_type: input.service_type,
    });
  });

  test.each([
    'a/b',
    '/leading and trailing/',
    'a//b',
    'a/../b',
    '100%',
    '%2F',
    '%252F',
    'a?b=c#d',
    'a+b c',
    '"quoted"',
    'ß/😀/שלום',
    'a;b',
    '__proto__',
    '*',
    '😀'.repeat(128),
    `${'/'.repeat(127)}x`,
  ])('finds the order %j by its percent-encoded id', async (orderId) => {
    const created = await createOrder(orderId);
    const found = await getOrder(encodeURIComponent(orderId));
    expect([found.status, await answerOf(found)]).toMatchObject([200, created]);
  });

  test('finds an id with slashes in it also where a proxy has decoded them', async () => {
    const created = await createOrder('2026/11/0001');
    expect(await answerOf(await getOrder('2026/11/0001'))).toMatchObject(created);
  });

  test("another merchant's order is not found", async () => {
    await createOrder('mine');
    const answers = await Promise.all(
      ['mine', 'never-sent'].map(async (orderId) => {
        const response = await getOrder(orderId, { ...other, 'x-request-id': 'same' });
        return [response.status, await response.text()];
      }),
    );
    expect(answers[0]?.[0]).toBe(404);
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]?.[1]).toContain('"code":"not_found"');
  });

  test.each(['', '%00', 'a%0Ab', '%20', 'x'.repeat(129), '%zz', '%ff'])(
    'answers 404 for %j, which is no order_id',
    async (path) => {
      const response = await getOrder(path);
      expect([response.status, await response.json()]).toMatchObject([404, { code: 'not_found' }]);
      expect(gateway.errors).toEqual([]);
    },
  );

  test('asks for credentials before it looks', async () => {
    await createOrder('guarded');
    for (const headers of [{}, { ...own(), 'x-client-secret': `sk_${'0'.repeat(43)}` }]) {
      const response = await getOrder('guarded', headers);
      expect([response.status, await response.json()]).toMatchObject([401, { code: 'unauthenticated' }]);
    }
  });

  test('responses are not cached, so that an order is found once it exists, by its own merchant only', async () => {
    await createOrder('cached-nowhere');
    for (const [path, headers, status] of [
      ['cached-nowhere', own(), 200],
      ['not-yet', own(), 404],
      ['cached-nowhere', other, 404],
      ['cached-nowhere', {}, 401],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const { status: answered, headers: sent } = await fetch(`${gateway.url}/order/${path}`, { method, headers });
        expect([answered, sent.get('cache-control')]).toEqual([status, 'no-store']);
      }
    }
  });

  test('responds to HEAD without a body, and to other methods with 405', async () => {
    await createOrder('methods');
    const head = await fetch(`${gateway.url}/order/methods`, { method: 'HEAD', headers: own() });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const deleted = await fetch(`${gateway.url}/order/methods`, { method: 'DELETE', headers: own() });
    expect([deleted.status, deleted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  test('logs one line with the outcome', async () => {
    await createOrder('logged');
    await (await getOrder('logged', { ...own(), 'x-request-id': 'look-up-1' })).text();
    await expect.poll(() => gateway.calls.at(-1)?.request_id).toBe('look-up-1');
    expect(gateway.calls.at(-1)).toMatchObject({ protocol: 'json', merchant_id: 1, code: 'ok' });
  });
});

const notFound = { code: Code.NotFound, reason: 'not_found' };

describe('GetOrder', () => {
  test('finds an order by order_id and by service_order_id, over every protocol', async () => {
    const created = await createOrder('rpc-look-up');
    const expected = {
      serviceOrderId: BigInt(created.service_order_id),
      createdAt: created.created_at,
      orderId: 'rpc-look-up',
      orderStatus: OrderStatus.UN_PAID,
      orderToken: created.order_token,
      paymentLink: created.payment_link,
    };
    for (const { name, client } of rpcClients(OrderService, gateway)) {
      const byOrderId = await client.getOrder({ order: { case: 'orderId', value: 'rpc-look-up' } }, { headers: own() });
      expect(byOrderId, name).toMatchObject(expected);
      const byServiceOrderId = await client.getOrder(
        { order: { case: 'serviceOrderId', value: BigInt(created.service_order_id) } },
        { headers: own() },
      );
      expect(byServiceOrderId, name).toMatchObject(expected);
    }
  });

  test("responds NOT_FOUND to a missing order and to another merchant's", async () => {
    const created = await createOrder('rpc-mine');
    for (const { name, client } of rpcClients(OrderService, gateway)) {
      const ask = (order: Parameters<typeof client.getOrder>[0]['order'], headers = own()) =>
        rpcErrorOf(client.getOrder({ ...(order === undefined ? {} : { order }) }, { headers }));
      expect(await ask({ case: 'orderId', value: 'rpc-mine' }, other), name).toEqual(notFound);
      const mine = { case: 'serviceOrderId', value: BigInt(created.service_order_id) } as const;
      expect(await ask(mine, other), name).toEqual(notFound);
      for (const value of [0n, -1n, 2n ** 53n, 2n ** 63n - 1n, BigInt(created.service_order_id) + 2n ** 53n]) {
        expect(await ask({ case: 'serviceOrderId', value }), `${name} ${value}`).toEqual(notFound);
      }
      expect(await ask({ case: 'orderId', value: 'a\u0000b' }), name).toEqual(notFound);
    }
    expect(gateway.errors).toEqual([]);
  });

  test('a timeout of years: the call is logged with the response that the client got', async () => {
    // Each protocol reads its own.
    const headers = { ...own(), 'connect-timeout-ms': '9999999999', 'grpc-timeout': '99999999H' };
    const callsBefore = gateway.calls.length;
    const calls = rpcClients(OrderService, gateway).flatMap(({ client }) =>
      Array.from({ length: 20 }, () =>
        rpcErrorOf(client.getOrder({ order: { case: 'orderId', value: 'not-there' } }, { headers })),
      ),
    );
    for (const rejected of await Promise.all(calls)) expect(rejected).toEqual(notFound);
    await expect.poll(() => gateway.calls.length).toBe(callsBefore + calls.length);
    expect(gateway.calls.slice(callsBefore).filter(({ code }) => code !== 'not_found')).toEqual([]);
  });

  test('rejects a request that names no order, and one without credentials', async () => {
    for (const { name, client } of rpcClients(OrderService, gateway)) {
      expect(await rpcErrorOf(client.getOrder({}, { headers: own() })), name).toEqual({
        code: Code.InvalidArgument,
        reason: 'invalid_order',
        violations: ['order_id missing'],
      });
      const unnamed = await rpcErrorOf(client.getOrder({ order: { case: 'orderId', value: 'x' } }));
      expect(unnamed, name).toEqual({ code: Code.Unauthenticated, reason: 'unauthenticated' });
    }
  });

  test.each([
    '{',
    '{"order_id":1}',
    '{"order_id":"a","order_id":"b"}',
    '{"order_id":"a","service_order_id":"1"}',
    '[]',
  ])('rejects the JSON %j as malformed', async (body) => {
    const response = await fetch(`${gateway.url}/gateway.v1.OrderService/GetOrder`, {
      method: 'POST',
      headers: { ...own(), 'content-type': 'application/json' },
      body,
    });
    expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_argument' }]);
  });
});
