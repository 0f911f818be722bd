import { Code } from '@connectrpc/connect';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import { describe, expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from '../../helpers/grpc/rpc-clients.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, createOrder, credentialHeaders, postJson } from '../../helpers/send-order.ts';

// Behaviour of GetOrder and CancelOrder that no fixture shows.

const gateway = useGateway();

test.each([
  ...['a/b', '/leading and trailing/', 'a//b', 'a/../b', '100%', '%2F', '%252F', 'a?b=c#d', 'a+b c', '"quoted"'],
  ...['ß/😀/שלום', 'a;b', '__proto__', '*', 'cancel', '/cancel', '😀'.repeat(128), `${'/'.repeat(127)}x`],
])('the order %j is found and cancelled by its percent-encoded id', async (orderId) => {
  const created = await createOrder(gateway, orderId);
  const path = `/order/${encodeURIComponent(orderId)}`;
  expect(await callJson(gateway, 'GET', path)).toMatchObject({ status: 200, body: created });
  const body = { ...created, order_status: 'CANCELLED' };
  expect(await callJson(gateway, 'POST', `${path}/cancel`)).toMatchObject({ status: 200, body });
});

test('no response of GET /order/{order_id} may be cached, and HEAD has no body', async () => {
  const other = await gateway.newMerchant();
  await createOrder(gateway, 'not-cached');
  for (const [path, headers, status] of [
    ['not-cached', gateway.headers, 200],
    ['not-yet', gateway.headers, 404],
    ['not-cached', credentialHeaders(other.credentials), 404],
    ['not-cached', {}, 401],
  ] as const) {
    for (const method of ['GET', 'HEAD']) {
      const response = await fetch(`${gateway.url}/order/${path}`, { method, headers });
      expect([response.status, response.headers.get('cache-control')]).toEqual([status, 'no-store']);
      if (method === 'HEAD') expect(await response.text()).toBe('');
    }
  }
});

describe('GetOrder', () => {
  test('with a timeout of years, each call is logged with the outcome that the client received', async () => {
    // Each protocol reads its own header.
    const headers = { ...gateway.headers, 'connect-timeout-ms': '9999999999', 'grpc-timeout': '99999999H' };
    const callsBefore = gateway.calls.length;
    const calls = rpcClients(OrderService, gateway).flatMap(({ client }) =>
      Array.from({ length: 20 }, () =>
        rpcErrorOf(client.getOrder({ order: { case: 'orderId', value: 'not-there' } }, { headers })),
      ),
    );
    for (const error of await Promise.all(calls)) expect(error).toEqual({ code: Code.NotFound, reason: 'not_found' });
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
