import { Code } from '@connectrpc/connect';
import { verifyReturn } from '@gateway/client';
import { CheckoutService } from '@gateway/contract/gateway/v1/checkout_service_pb';
import { OrderStatus } from '@gateway/contract/gateway/v1/order_pb';
import { OrderService } from '@gateway/contract/gateway/v1/order_service_pb';
import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { runQuery } from '@gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { grpcClient, rpcClients, rpcErrorOf } from '../helpers/rpc-clients.ts';
import { giveSigningSecret, scrape, useGateway } from '../helpers/running-gateway.ts';
import { answerOf, callJson, createOrder, postJson, postOrder } from '../helpers/send-order.ts';

// What the fixtures of ResolvePaymentLink and RecordPayment do not show.

const gateway = useGateway();

const input = validOrderInput();
const paidAt = new Date().toISOString();

function payment(orderToken: string, changes: Record<string, unknown> = {}) {
  return {
    orderToken,
    paymentId: `pay-${orderToken}`,
    paidAt,
    orderAmount: input.order_amount,
    orderCurrency: input.order_currency,
    ...changes,
  };
}

test('RecordPayment reads the amount from the digits that are sent', async () => {
  const { order_token } = await createOrder(gateway, 'digits', { order_amount: 10 });
  for (const amount of ['10.000000000000000001', '"10"', '1e1 ', '10.00']) {
    const others = `"order_token":"${order_token}","payment_id":"digits","paid_at":"${paidAt}","order_currency":"EUR"`;
    const path = '/gateway.v1.CheckoutService/RecordPayment';
    const response = await postJson(gateway.checkout, path, `{${others},"order_amount":${amount}}`);
    const { code, order_status } = Object(await response.json());
    const isTen = amount === '10.00' || amount === '1e1 ';
    expect([amount, code, order_status]).toEqual([
      amount,
      ...(isTen ? [undefined, 'PAID'] : ['invalid_argument', undefined]),
    ]);
  }
});

test('a refused payment is an event and is counted, and the log says which checkout system sent it', async () => {
  const end = new Date(Date.now() + 120_000).toISOString();
  const { order_token } = await createOrder(gateway, 'expiring', { order_expires_at: end });
  const late = grpcClient(CheckoutService, gateway).recordPayment(payment(order_token, { paidAt: end }), {
    headers: gateway.checkout.headers,
  });
  expect(await rpcErrorOf(late)).toEqual({ code: Code.FailedPrecondition, reason: 'order_expired' });
  expect(await runQuery(gateway.databaseUrl, "select type from events where order_id = 'expiring'")).toEqual([
    { type: 'order.payment_refused' },
  ]);
  await expect.poll(() => gateway.calls.at(-1)).toMatchObject({ code: 'order_expired', checkout_id: 2 });
  const refusals = [...(await scrape(gateway)).matchAll(/^gateway_payments_refused_total\{(.*)\} (\d+)/gm)];
  expect(refusals.map(([, labels, count]) => [labels, count]).filter(([, count]) => count !== '0')).toEqual([
    ['code="order_expired",mode="live"', '1'],
  ]);
  // One for each code and mode, so that the first refusal is an increase.
  expect(refusals).toHaveLength(8);
});

test('the return is signed where the merchant has a signing secret, with the current status', async () => {
  const { clientId, clientSecret } = await gateway.accounts.create('Signing Shop');
  const secret = await giveSigningSecret(gateway.databaseUrl, clientId);
  const shop = { url: gateway.url, credentials: { clientId, clientSecret } };
  const { order_token, service_order_id } = await answerOf(await postOrder(shop, validOrderInput({ order_id: 'a|b' })));
  for (const { name, client } of rpcClients(CheckoutService, gateway)) {
    const link = await client.resolvePaymentLink({ orderToken: order_token }, { headers: gateway.checkout.headers });
    const signed = { order_id: 'a|b', service_order_id, order_status: name === 'grpc' ? 'UN_PAID' : 'PAID' };
    expect(await verifyReturn(link.returnUrl, secret), name).toMatchObject(signed);
    const paid = await client.recordPayment(payment(order_token), { headers: gateway.checkout.headers });
    expect(await verifyReturn(paid.returnUrl, secret), name).toMatchObject({ ...signed, order_status: 'PAID' });
  }
});

test('50 payments and 50 cancellations of one order at once: one wins, and all learn the result', async () => {
  const client = grpcClient(CheckoutService, gateway);
  const orders = grpcClient(OrderService, gateway);
  for (let round = 0; round < 4; round += 1) {
    const orderId = `raced-${round}`;
    const { order_token } = await createOrder(gateway, orderId);
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, async (_, call) => {
        const changing =
          call % 2 === 0
            ? client.recordPayment(payment(order_token), { headers: gateway.checkout.headers })
            : orders
                .cancelOrder({ order: { case: 'orderId', value: orderId } }, { headers: gateway.headers })
                .then(({ order }) => ({ orderStatus: order?.orderStatus }));
        return changing.then(
          ({ orderStatus }) => nameOf(orderStatus),
          async () => (await rpcErrorOf(changing)).reason,
        );
      }),
    );
    const { order } = await orders.getOrder(
      { order: { case: 'orderId', value: orderId } },
      { headers: gateway.headers },
    );
    const isPaid = order?.orderStatus === OrderStatus.PAID;
    for (const [call, outcome] of outcomes.entries()) {
      const hasWon = (call % 2 === 0) === isPaid;
      expect(outcome).toBe(hasWon ? nameOf(order?.orderStatus) : isPaid ? 'order_already_paid' : 'order_cancelled');
    }
    const query = `select type from events where order_id = '${orderId}' order by transaction_id`;
    const events = (await runQuery(gateway.databaseUrl, query)).map(({ type }) => type);
    expect(events).toEqual(isPaid ? ['order.paid'] : ['order.cancelled', 'order.payment_refused']);
  }
});

function nameOf(status: OrderStatus | undefined): string | undefined {
  return Object.entries(OrderStatus).find(([, value]) => value === status)?.[0];
}

test('while a payment is in progress, every protocol says when the lease ends', async () => {
  const { order_token } = await createOrder(gateway, 'claimed');
  const started = await grpcClient(CheckoutService, gateway).startPayment(
    { orderToken: order_token, attemptId: 'a-1', leaseSeconds: 3_600 },
    { headers: gateway.checkout.headers },
  );
  expect(Math.abs(Date.parse(started.leaseEndsAt) - Date.now() - 3_600_000)).toBeLessThan(600_000);
  for (const { name, client } of rpcClients(CheckoutService, gateway)) {
    const other = client.startPayment(
      { orderToken: order_token, attemptId: 'a-2' },
      { headers: gateway.checkout.headers },
    );
    const { code, reason, retryDelayMs = 0 } = await rpcErrorOf(other);
    expect([name, code, reason]).toEqual([name, Code.Aborted, 'payment_in_progress']);
    expect(Math.abs(retryDelayMs - 3_600_000), name).toBeLessThan(600_000);
  }
  const cancelled = await postJson(gateway, '/order/claimed/cancel', '');
  expect(cancelled.status).toBe(409);
  expect(Math.abs(Number(cancelled.headers.get('retry-after')) - 3_600)).toBeLessThan(600);
});

test('50 attempts, payments and cancellations of one order at once: one attempt starts, and one payment pays', async () => {
  const client = grpcClient(CheckoutService, gateway);
  const { headers } = gateway.checkout;
  const { order_token } = await createOrder(gateway, 'attempted');
  const reasonOf = (call: Promise<unknown>) =>
    call.then(
      () => 'ok',
      async () => (await rpcErrorOf(call)).reason,
    );
  const started = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      reasonOf(client.startPayment({ orderToken: order_token, attemptId: `a-${index}` }, { headers })),
    ),
  );
  expect(started.filter((reason) => reason === 'ok')).toHaveLength(1);
  expect(started.filter((reason) => reason === 'payment_in_progress')).toHaveLength(49);
  const changes = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      index % 2 === 0
        ? reasonOf(client.recordPayment(payment(order_token, { paymentId: `p-${index}` }), { headers }))
        : postJson(gateway, '/order/attempted/cancel', '').then(({ status }) => `cancel ${status}`),
    ),
  );
  expect(changes.filter((outcome) => outcome === 'ok')).toHaveLength(1);
  expect(changes.filter((outcome) => outcome === 'order_already_paid')).toHaveLength(24);
  expect(changes.filter((outcome) => outcome === 'cancel 409')).toHaveLength(25);
  const record = (await callJson(gateway, 'GET', '/order/attempted')).body;
  expect(record).toMatchObject({ order_status: 'PAID' });
  expect(record.refused_payments).toHaveLength(20);
});
