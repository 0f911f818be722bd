import { Code } from '@connectrpc/connect';
import { OrderService, OrderStatus } from '@gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { runQuery } from '@gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from './rpc-clients.ts';
import { useGateway } from './running-gateway.ts';
import { answerOf, credentialHeaders, postOrder } from './send-order.ts';

const gateway = useGateway();

const own = () => credentialHeaders(gateway.credentials);

async function createOrder(orderId: string, overrides: Record<string, unknown> = {}) {
  return answerOf(await postOrder(gateway, validOrderInput({ order_id: orderId, ...overrides })));
}

/** Status, header and body of a cancellation over JSON. */
async function cancel(path: string, headers: Record<string, string> = own()) {
  const response = await fetch(`${gateway.url}/order/${path}/cancel`, { method: 'POST', headers });
  return {
    status: response.status,
    replayed: response.headers.get('idempotent-replayed'),
    body: Object(await response.json()),
  };
}

test('cancels an order once, and then returns the same record as replayed', async () => {
  const created = await createOrder('cancelled');
  const before = Date.now();
  const first = await cancel('cancelled');
  expect(first).toMatchObject({
    status: 200,
    replayed: null,
    body: { ...created, order_status: 'CANCELLED', mode: 'live', cancelled_at: expect.stringMatching(/\+00:00$/) },
  });
  expect(Date.parse(first.body.cancelled_at)).toBeGreaterThanOrEqual(before);
  expect(await cancel('cancelled')).toStrictEqual({ ...first, replayed: 'true' });
  const again = await postOrder(gateway, validOrderInput({ order_id: 'cancelled' }));
  expect([again.status, await answerOf(again)]).toMatchObject([200, { order_status: 'CANCELLED' }]);
});

test('cancels by either id, over every protocol', async () => {
  for (const [index, { name, client }] of rpcClients(OrderService, gateway).entries()) {
    const { service_order_id } = await createOrder(`rpc-${index}`);
    let replayed: (string | null)[] = [];
    const options = {
      headers: own(),
      onHeader: (header: Headers) => {
        replayed = [...replayed, header.get('idempotent-replayed')];
      },
    };
    const first = await client.cancelOrder({ order: { case: 'orderId', value: `rpc-${index}` } }, options);
    expect(first, name).toMatchObject({ orderId: `rpc-${index}`, orderStatus: OrderStatus.CANCELLED, mode: 'live' });
    const order = { case: 'serviceOrderId', value: BigInt(service_order_id) } as const;
    expect(await client.cancelOrder({ order }, options), name).toStrictEqual(first);
    expect(replayed, name).toStrictEqual([null, 'true']);
    expect(await client.getOrder({ order }, { headers: own() }), name).toMatchObject({
      orderStatus: OrderStatus.CANCELLED,
      cancelledAt: first.cancelledAt,
    });
    const unknown = client.cancelOrder({ order: { case: 'orderId', value: 'never-sent' } }, options);
    expect(await rpcErrorOf(unknown), name).toEqual({ code: Code.NotFound, reason: 'not_found' });
    expect(await rpcErrorOf(client.cancelOrder({}, options)), name).toEqual({
      code: Code.InvalidArgument,
      reason: 'invalid_order',
      violations: ['order_id missing'],
    });
  }
});

test.each(['a/b', '100%', 'ß/😀', 'cancel', '/cancel', '😀'.repeat(128)])(
  'finds the order %j by its percent-encoded id',
  async (orderId) => {
    await createOrder(orderId);
    expect((await cancel(encodeURIComponent(orderId))).body).toMatchObject({
      order_id: orderId,
      order_status: 'CANCELLED',
    });
  },
);

test('rejects a paid and an expired order, and the order of another merchant', async () => {
  await createOrder('paid');
  await createOrder('expired');
  const set = (orderId: string, values: string) =>
    runQuery(gateway.databaseUrl, `update orders set ${values} where order_id = '${orderId}'`);
  await set('paid', "order_status = 'PAID', paid_at = now(), payment_id = 'p'");
  await set('expired', 'order_expires_at = now()');
  expect(await cancel('paid')).toMatchObject({ status: 409, body: { code: 'order_already_paid' } });
  expect(await cancel('expired')).toMatchObject({ status: 409, body: { code: 'order_expired' } });
  const other = credentialHeaders(await createMerchant(gateway.databaseUrl, 'Other Shop'));
  expect(await cancel('paid', other)).toMatchObject({ status: 404, body: { code: 'not_found' } });
  expect(await cancel('paid', {})).toMatchObject({ status: 401, body: { code: 'unauthenticated' } });
});

test('takes POST only', async () => {
  for (const [method, allow] of [
    ['DELETE', 'POST'],
    ['PUT', 'POST'],
  ] as const) {
    const response = await fetch(`${gateway.url}/order/cancelled/cancel`, { method, headers: own() });
    expect([response.status, response.headers.get('allow')?.includes(allow)]).toEqual([405, true]);
  }
  const response = await fetch(`${gateway.url}/order/cancelled`, { method: 'POST', headers: own() });
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
});
