import { Code } from '@connectrpc/connect';
import { verifyReturn } from '@order-gateway/client';
import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { grpcClient, rpcClients, rpcErrorOf } from '../helpers/grpc/rpc-clients.ts';
import { giveSigningSecret, scrape, useGateway } from '../helpers/running-gateway.ts';
import { answerOf, createOrder, postJson, postOrder } from '../helpers/send-order.ts';

// Behaviour of ResolvePaymentLink and RecordPayment that no fixture shows.

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
  const refusals = [...(await scrape(gateway)).matchAll(/^order_gateway_payments_refused_total\{(.*)\} (\d+)/gm)];
  expect(refusals.map(([, labels, count]) => [labels, count]).filter(([, count]) => count !== '0')).toEqual([
    ['code="order_expired",mode="live"', '1'],
  ]);
  // There is one for each code and mode from the start, so that the first refused payment is an increase.
  expect(refusals).toHaveLength(8);
});

test('the return is signed if the merchant has a signing secret, with the current status', async () => {
  const { clientId, clientSecret } = await gateway.accounts.create('Signing Shop');
  const secret = await giveSigningSecret(gateway.databaseUrl, clientId);
  const shop = { url: gateway.url, credentials: { clientId, clientSecret } };
  const { order_token, service_order_id } = await answerOf(await postOrder(shop, validOrderInput({ order_id: 'a|b' })));
  for (const { name, client } of rpcClients(CheckoutService, gateway)) {
    const { order } = await client.resolvePaymentLink(
      { orderToken: order_token },
      { headers: gateway.checkout.headers },
    );
    const signed = { order_id: 'a|b', service_order_id, order_status: name === 'grpc' ? 'UN_PAID' : 'PAID' };
    expect(await verifyReturn(order?.returnUrl ?? '', secret), name).toMatchObject(signed);
    const paid = await client.recordPayment(payment(order_token), { headers: gateway.checkout.headers });
    expect(await verifyReturn(paid.order?.returnUrl ?? '', secret), name).toMatchObject({
      ...signed,
      order_status: 'PAID',
    });
  }
});

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
