import { Code } from '@connectrpc/connect';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { beforeAll, describe, expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from '../helpers/rpc-clients.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { callJson, createOrder, credentialHeaders, postJson } from '../helpers/send-order.ts';

// What the fixtures of GetOrder and CancelOrder do not show.

const gateway = useGateway();
let other: Record<string, string>;
beforeAll(async () => {
  other = credentialHeaders(await gateway.accounts.create('Other Shop'));
});

function getOrder(path: string, headers: Record<string, string> = gateway.headers): Promise<Response> {
  return fetch(`${gateway.url}/order/${path}`, { headers, signal: AbortSignal.timeout(30_000) });
}

describe('GET /order/{order_id} and POST /order/{order_id}/cancel', () => {
  test.each([
    ...['a/b', '/leading and trailing/', 'a//b', 'a/../b', '100%', '%2F', '%252F', 'a?b=c#d', 'a+b c', '"quoted"'],
    ...['ß/😀/שלום', 'a;b', '__proto__', '*', 'cancel', '/cancel', '😀'.repeat(128), `${'/'.repeat(127)}x`],
  ])('find the order %j by its percent-encoded id', async (orderId) => {
    const created = await createOrder(gateway, orderId);
    const path = `/order/${encodeURIComponent(orderId)}`;
    expect(await callJson(gateway, 'GET', path)).toMatchObject({ status: 200, body: created });
    const body = { ...created, order_status: 'CANCELLED' };
    expect(await callJson(gateway, 'POST', `${path}/cancel`)).toMatchObject({ status: 200, body });
  });

  test('find no order by an id whose slashes are not encoded', async () => {
    await createOrder(gateway, '2026/11/0001');
    expect(await callJson(gateway, 'GET', '/order/2026/11/0001')).toMatchObject({ status: 404 });
    expect(await callJson(gateway, 'POST', '/order/2026/11/0001/cancel')).toMatchObject({ status: 404 });
  });
});

describe('GET /order/{order_id}', () => {
  test("another merchant's order gets the response of an order that does not exist", async () => {
    await createOrder(gateway, 'mine');
    const answers = await Promise.all(
      ['mine', 'never-sent'].map(async (orderId) => {
        const response = await getOrder(orderId, { ...other, 'x-request-id': 'same' });
        return [response.status, await response.text()];
      }),
    );
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]).toEqual([404, expect.stringContaining('"code":"not_found"')]);
  });

  test.each(['', '%00', 'a%0Ab', '%20', 'x'.repeat(129), '%zz', '%ff'])(
    'answers 404 for %j, which is no order_id',
    async (path) => {
      expect(await callJson(gateway, 'GET', `/order/${path}`)).toMatchObject({
        status: 404,
        body: { code: 'not_found' },
      });
      expect(gateway.errors).toEqual([]);
    },
  );

  test('responses are not cached, so that an order is found once it exists, by its own merchant only', async () => {
    await createOrder(gateway, 'cached-nowhere');
    for (const [path, headers, status] of [
      ['cached-nowhere', gateway.headers, 200],
      ['not-yet', gateway.headers, 404],
      ['cached-nowhere', other, 404],
      ['cached-nowhere', {}, 401],
    ] as const) {
      for (const method of ['GET', 'HEAD']) {
        const response = await fetch(`${gateway.url}/order/${path}`, { method, headers });
        expect([response.status, response.headers.get('cache-control')]).toEqual([status, 'no-store']);
        if (method === 'HEAD') expect(await response.text()).toBe('');
      }
    }
  });

  test('logs one line with the outcome', async () => {
    await createOrder(gateway, 'logged');
    await (await getOrder('logged', { ...gateway.headers, 'x-request-id': 'lookup-1' })).text();
    const call = { request_id: 'lookup-1', protocol: 'json', merchant_id: 1, code: 'ok' };
    await expect.poll(() => gateway.calls.at(-1)).toMatchObject(call);
  });
});

const notFound = { code: Code.NotFound, reason: 'not_found' };

describe('GetOrder', () => {
  test("responds NOT_FOUND to ids that no order has, and to the service_order_id of another merchant's", async () => {
    const id = BigInt((await createOrder(gateway, 'rpc-mine')).service_order_id);
    for (const { name, client } of rpcClients(OrderService, gateway)) {
      const ask = (order: Parameters<typeof client.getOrder>[0]['order'], headers = gateway.headers) =>
        rpcErrorOf(client.getOrder({ ...(order === undefined ? {} : { order }) }, { headers }));
      expect(await ask({ case: 'serviceOrderId', value: id }, other), name).toEqual(notFound);
      expect(await ask({ case: 'serviceOrderId', value: id + 2n ** 53n }), name).toEqual(notFound);
      expect(await ask({ case: 'orderId', value: 'a\u0000b' }), name).toEqual(notFound);
    }
    expect(gateway.errors).toEqual([]);
  });

  test('a timeout of years: the call is logged with the response that the client got', async () => {
    // Each protocol reads its own.
    const headers = { ...gateway.headers, 'connect-timeout-ms': '9999999999', 'grpc-timeout': '99999999H' };
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

  test.each(['{"order_id":"a","order_id":"b"}', '{"order_id":"a","service_order_id":"1"}'])(
    'rejects the JSON %j as malformed',
    async (body) => {
      const response = await postJson(gateway, '/gateway.v1.OrderService/GetOrder', body);
      expect([response.status, await response.json()]).toMatchObject([400, { code: 'invalid_argument' }]);
    },
  );
});
