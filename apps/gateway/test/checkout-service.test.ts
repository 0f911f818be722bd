import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { verifyReturn } from '@gateway/client';
import { CheckoutService } from '@gateway/contract/gateway/v1/checkout_service_pb';
import { OrderService, OrderStatus, ServiceType } from '@gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { runQuery } from '@gateway/postgres/testing/run-query';
import { describe, expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from './rpc-clients.ts';
import { giveSigningSecret, useGateway } from './running-gateway.ts';
import { answerOf, credentialHeaders, postOrder } from './send-order.ts';

const gateway = useGateway();

const merchant = () => credentialHeaders(gateway.credentials);
const checkout = () => credentialHeaders(gateway.checkoutCredentials);

async function createOrder(orderId: string, overrides: Record<string, unknown> = {}) {
  return answerOf(await postOrder(gateway, validOrderInput({ order_id: orderId, ...overrides })));
}

const input = validOrderInput();

function payment(orderToken: string, changes: Record<string, unknown> = {}) {
  return {
    orderToken,
    paymentId: 'pay-1',
    paidAt: '2026-11-20T22:01:42.172+01:00',
    orderAmount: input.order_amount,
    orderCurrency: input.order_currency,
    ...changes,
  };
}

describe('ResolvePaymentLink', () => {
  test('returns who is paid what, over every protocol, and nothing of the customer', async () => {
    const { order_token: orderToken, ...created } = await createOrder('resolved', {
      order_amount: 9_999_999_999_999.99,
    });
    for (const { name, client } of rpcClients(CheckoutService, gateway)) {
      const { $typeName, ...facts } = await client.resolvePaymentLink({ orderToken }, { headers: checkout() });
      expect(facts, name).toStrictEqual({
        merchantName: 'Test Shop',
        serviceOrderId: BigInt(created.service_order_id),
        orderId: 'resolved',
        orderAmount: 9_999_999_999_999.99,
        orderCurrency: input.order_currency,
        orderNote: input.order_note,
        serviceType: ServiceType.PHYSICAL_GOODS,
        orderStatus: OrderStatus.UN_PAID,
        createdAt: created.created_at,
        returnUrl: `${input.return_url}&order_id=resolved&service_order_id=${created.service_order_id}&order_status=UN_PAID`,
        mode: 'live',
      });
      expect($typeName).toBe('gateway.v1.ResolvePaymentLinkResponse');
    }
  });

  test('does not find a link that does not exist', async () => {
    for (const { name, client } of rpcClients(CheckoutService, gateway)) {
      for (const orderToken of ['A'.repeat(32), '', 'A'.repeat(31), '\u0000'.repeat(32)]) {
        const rejected = await rpcErrorOf(client.resolvePaymentLink({ orderToken }, { headers: checkout() }));
        expect(rejected, `${name} ${orderToken}`).toEqual({ code: Code.NotFound, reason: 'not_found' });
      }
    }
  });
});

describe('RecordPayment', () => {
  test('makes the order PAID, once, over every protocol', async () => {
    for (const [index, { name, client }] of rpcClients(CheckoutService, gateway).entries()) {
      const { order_token, ...created } = await createOrder(`paid-${index}`);
      const record = async () => {
        let replayed: string | null = '';
        const onHeader = (header: Headers) => {
          replayed = header.get('idempotent-replayed');
        };
        const { $typeName: _, ...response } = await client.recordPayment(payment(order_token), {
          headers: checkout(),
          onHeader,
        });
        return { replayed, ...response };
      };
      const expected = {
        serviceOrderId: BigInt(created.service_order_id),
        orderId: `paid-${index}`,
        orderStatus: OrderStatus.PAID,
        paymentId: 'pay-1',
        paidAt: '2026-11-20T21:01:42.172+00:00',
        returnUrl: `${input.return_url}&order_id=paid-${index}&service_order_id=${created.service_order_id}&order_status=PAID`,
      };
      expect(await record(), name).toStrictEqual({ replayed: null, ...expected });
      expect(await record(), name).toStrictEqual({ replayed: 'true', ...expected });
      const another = client.recordPayment(payment(order_token, { paymentId: 'pay-2' }), { headers: checkout() });
      expect(await rpcErrorOf(another), name).toEqual({ code: Code.AlreadyExists, reason: 'order_already_paid' });
    }
  });

  test.each<[string, Record<string, unknown>, string[]]>([
    ['no payment_id', { paymentId: '' }, ['payment_id missing']],
    ['a payment_id of 129 characters', { paymentId: 'x'.repeat(129) }, ['payment_id too_long']],
    ['a payment_id with a control character', { paymentId: 'a\u0007' }, ['payment_id bad_characters']],
    ['no paid_at', { paidAt: '' }, ['paid_at missing']],
    ['a paid_at without an offset', { paidAt: '2026-11-20T21:01:42' }, ['paid_at bad_format']],
    ['no amount', { orderAmount: undefined }, ['order_amount missing']],
    ['no currency', { orderCurrency: '' }, ['order_currency missing']],
    [
      'nothing',
      { paymentId: '', paidAt: 'x', orderAmount: undefined, orderCurrency: '' },
      ['payment_id missing', 'paid_at bad_format', 'order_amount missing', 'order_currency missing'],
    ],
  ])('rejects %s as invalid_request', async (_, changes, violations) => {
    for (const { name, client } of rpcClients(CheckoutService, gateway)) {
      const rejected = rpcErrorOf(client.recordPayment(payment('A'.repeat(32), changes), { headers: checkout() }));
      expect(await rejected, name).toEqual({ code: Code.InvalidArgument, reason: 'invalid_request', violations });
    }
  });

  test('rejects another amount or currency than the order has, to the last digit', async () => {
    const { order_token } = await createOrder('mismatched', { order_amount: 10 });
    const mismatch = { code: Code.InvalidArgument, reason: 'payment_mismatch' };
    for (const { name, client } of rpcClients(CheckoutService, gateway)) {
      for (const changes of [
        { orderAmount: 10.01 },
        { orderAmount: 10.001 },
        { orderAmount: -10 },
        { orderAmount: Number.NaN },
      ]) {
        const call = client.recordPayment(payment(order_token, changes), { headers: checkout() });
        expect(await rpcErrorOf(call), `${name} ${changes.orderAmount}`).toEqual(mismatch);
      }
      const call = client.recordPayment(payment(order_token, { orderAmount: 10, orderCurrency: 'USD' }), {
        headers: checkout(),
      });
      expect(await rpcErrorOf(call), name).toEqual(mismatch);
    }
    for (const amount of ['10.000000000000000001', '1e1 ', '"10"', '10.00']) {
      const response = await fetch(`${gateway.url}/gateway.v1.CheckoutService/RecordPayment`, {
        method: 'POST',
        headers: { ...checkout(), 'content-type': 'application/json' },
        body: `{"order_token":"${order_token}","payment_id":"digits","paid_at":"2026-11-20T21:01:42Z","order_amount":${amount},"order_currency":"EUR"}`,
      });
      const { code, order_status } = Object(await response.json());
      const isTen = amount === '10.00' || amount === '1e1 ';
      expect([amount, code, order_status]).toEqual([
        amount,
        ...(isTen ? [undefined, 'PAID'] : ['invalid_argument', undefined]),
      ]);
    }
  });

  test('rejects the payment of an order that is cancelled, or was paid too late', async () => {
    const [{ client }] = rpcClients(CheckoutService, gateway) as [
      ReturnType<typeof rpcClients<typeof CheckoutService>>[0],
    ];
    const cancelled = await createOrder('cancelled');
    await fetch(`${gateway.url}/order/cancelled/cancel`, { method: 'POST', headers: merchant() });
    const call = client.recordPayment(payment(cancelled.order_token), { headers: checkout() });
    expect(await rpcErrorOf(call)).toEqual({ code: Code.FailedPrecondition, reason: 'order_cancelled' });
    const end = new Date(Date.now() + 120_000).toISOString();
    const expiring = await createOrder('expiring', { order_expires_at: end });
    const late = client.recordPayment(payment(expiring.order_token, { paidAt: end }), { headers: checkout() });
    expect(await rpcErrorOf(late)).toEqual({ code: Code.FailedPrecondition, reason: 'order_expired' });
    expect(await runQuery(gateway.databaseUrl, "select order_id from events where order_id = 'expiring'")).toEqual([]);
  });
});

test('the return is signed where the merchant has a signing secret, with the status of now', async () => {
  const { clientId, clientSecret } = await createMerchant(gateway.databaseUrl, 'Signing Shop');
  const secret = await giveSigningSecret(gateway.databaseUrl, clientId);
  const shop = { url: gateway.url, credentials: { clientId, clientSecret } };
  const { order_token, service_order_id } = await answerOf(await postOrder(shop, validOrderInput({ order_id: 'a|b' })));
  for (const { name, client } of rpcClients(CheckoutService, gateway)) {
    const link = await client.resolvePaymentLink({ orderToken: order_token }, { headers: checkout() });
    const signed = { order_id: 'a|b', service_order_id, order_status: name === 'grpc' ? 'UN_PAID' : 'PAID' };
    expect(await verifyReturn(link.returnUrl, secret), name).toMatchObject(signed);
    const paid = await client.recordPayment(payment(order_token), { headers: checkout() });
    expect(await verifyReturn(paid.returnUrl, secret), name).toMatchObject({ ...signed, order_status: 'PAID' });
  }
});

test('each service takes only the credentials of its own kind of client', async () => {
  const { order_token: orderToken } = await createOrder('permissions');
  const denied = { code: Code.PermissionDenied, reason: 'permission_denied' };
  for (const { name, client } of rpcClients(CheckoutService, gateway)) {
    for (const call of [
      client.resolvePaymentLink({ orderToken }, { headers: merchant() }),
      client.recordPayment(payment(orderToken), { headers: merchant() }),
    ]) {
      expect(await rpcErrorOf(call), name).toEqual(denied);
    }
    expect(await rpcErrorOf(client.resolvePaymentLink({ orderToken })), name).toMatchObject({
      reason: 'unauthenticated',
    });
  }
  for (const { name, client } of rpcClients(OrderService, gateway)) {
    const options = { headers: checkout() };
    for (const call of [
      client.createOrder({}, options),
      client.getOrder({}, options),
      client.cancelOrder({}, options),
      client.listOrders({}, options),
    ]) {
      expect(await rpcErrorOf(call), name).toEqual(denied);
    }
  }
  for (const [method, path] of [
    ['POST', 'order'],
    ['GET', 'order/permissions'],
    ['POST', 'order/permissions/cancel'],
    ['GET', 'orders'],
    ['GET', 'events'],
  ] as const) {
    const headers = { ...checkout(), 'content-type': 'application/json' };
    const response = await fetch(`${gateway.url}/${path}`, { method, headers });
    expect([path, response.status, Object(await response.json()).code]).toEqual([path, 403, 'permission_denied']);
  }
  await expect.poll(() => gateway.calls.at(-1)).toMatchObject({ code: 'permission_denied', checkout_id: 2 });
});

test('50 payments and 50 cancellations of one order at once: one wins, and all learn the result', async () => {
  const [{ client }] = rpcClients(CheckoutService, gateway) as [
    ReturnType<typeof rpcClients<typeof CheckoutService>>[0],
  ];
  const orders = createClient(OrderService, createGrpcTransport({ baseUrl: gateway.grpcUrl }));
  for (let round = 0; round < 4; round += 1) {
    const orderId = `raced-${round}`;
    const { order_token } = await createOrder(orderId);
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, async (_, call) => {
        const changing =
          call % 2 === 0
            ? client.recordPayment(payment(order_token), { headers: checkout() })
            : orders.cancelOrder({ order: { case: 'orderId', value: orderId } }, { headers: merchant() });
        return changing.then(
          ({ orderStatus }) => nameOf(orderStatus),
          async () => (await rpcErrorOf(changing)).reason,
        );
      }),
    );
    const { orderStatus } = await orders.getOrder(
      { order: { case: 'orderId', value: orderId } },
      { headers: merchant() },
    );
    const isPaid = orderStatus === OrderStatus.PAID;
    for (const [call, outcome] of outcomes.entries()) {
      const hasWon = (call % 2 === 0) === isPaid;
      expect(outcome).toBe(hasWon ? nameOf(orderStatus) : isPaid ? 'order_already_paid' : 'order_cancelled');
    }
    const events = await runQuery(gateway.databaseUrl, `select type from events where order_id = '${orderId}'`);
    expect(events).toEqual([{ type: isPaid ? 'order.paid' : 'order.cancelled' }]);
  }
});

function nameOf(status: OrderStatus): string | undefined {
  return Object.entries(OrderStatus).find(([, value]) => value === status)?.[0];
}
