import { Code } from '@connectrpc/connect';
import { verifyReturn } from '@order-gateway/client';
import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { grpcClient, rpcClients, rpcErrorOf } from '../../helpers/grpc/rpc-clients.ts';
import { giveSigningSecret, scrape, useGateway } from '../../helpers/running-gateway.ts';
import { createOrder, postJson, postPayment } from '../../helpers/send-order.ts';

// Behaviour of CheckoutService that no fixture shows.

const gateway = useGateway();

test('a refused payment is counted, and the log says which checkout system reported it', async () => {
  const end = new Date(Date.now() + 120_000).toISOString();
  const { order_token } = await createOrder(gateway, 'expiring', { order_expires_at: end });
  const refused = await postPayment(gateway.checkout, order_token, { paid_at: end });
  expect([refused.status, await refused.json()]).toMatchObject([400, { code: 'failed_precondition' }]);
  await expect.poll(() => gateway.calls.at(-1)).toMatchObject({ code: 'order_expired', checkout_id: 2 });
  const counters = [...(await scrape(gateway)).matchAll(/^order_gateway_payments_refused_total\{(.*)\} (\d+)/gm)];
  expect(counters.map(([, labels, count]) => [labels, count]).filter(([, count]) => count !== '0')).toEqual([
    ['code="order_expired",mode="live"', '1'],
  ]);
  // Each code and mode has a counter from the start, so that even the first refused payment shows as an increase.
  expect(counters).toHaveLength(8);
});

test('the return URL of a merchant with a signing secret is signed, with the current status', async () => {
  const shop = await gateway.newMerchant();
  const secret = await giveSigningSecret(gateway.databaseUrl, shop.credentials.clientId);
  const { order_token: orderToken, service_order_id } = await createOrder(shop, 'a|b');
  const { headers } = gateway.checkout;
  const { order_amount: orderAmount, order_currency: orderCurrency } = validOrderInput();
  const payment = { orderToken, paymentId: 'paid', paidAt: new Date().toISOString(), orderAmount, orderCurrency };
  for (const { name, client } of rpcClients(CheckoutService, gateway)) {
    const { order } = await client.resolvePaymentLink({ orderToken }, { headers });
    const signed = { order_id: 'a|b', service_order_id, order_status: name === 'grpc' ? 'UN_PAID' : 'PAID' };
    expect(await verifyReturn(order?.returnUrl ?? '', secret), name).toMatchObject(signed);
    const paid = await client.recordPayment(payment, { headers });
    const signedAsPaid = { ...signed, order_status: 'PAID' };
    expect(await verifyReturn(paid.order?.returnUrl ?? '', secret), name).toMatchObject(signedAsPaid);
  }
});

test('while a payment is in progress, every protocol says when the lease ends', async () => {
  const { order_token: orderToken } = await createOrder(gateway, 'claimed');
  const { headers } = gateway.checkout;
  const started = await grpcClient(CheckoutService, gateway).startPayment(
    { orderToken, attemptId: 'a-1', leaseSeconds: 3_600 },
    { headers },
  );
  expect(Math.abs(Date.parse(started.leaseEndsAt) - Date.now() - 3_600_000)).toBeLessThan(600_000);
  for (const { name, client } of rpcClients(CheckoutService, gateway)) {
    const rejected = client.startPayment({ orderToken, attemptId: 'a-2' }, { headers });
    const { code, reason, retryDelayMs = 0 } = await rpcErrorOf(rejected);
    expect([name, code, reason]).toEqual([name, Code.Aborted, 'payment_in_progress']);
    expect(Math.abs(retryDelayMs - 3_600_000), name).toBeLessThan(600_000);
  }
  const cancelled = await postJson(gateway, '/order/claimed/cancel', '');
  expect(cancelled.status).toBe(409);
  expect(Math.abs(Number(cancelled.headers.get('retry-after')) - 3_600)).toBeLessThan(600);
});
