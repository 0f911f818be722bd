import { Code } from '@connectrpc/connect';
import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import type { MerchantMode } from '@order-gateway/domain/accounts';
import { expect, test } from 'vitest';
import { grpcClient, rpcErrorOf } from '../../helpers/grpc/rpc-clients.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { postOrder, postPayment, pressPay, readOrder } from '../../helpers/send-order.ts';

const gateway = useGateway({ checkoutUrl: 'https://checkout.example.com/{order_token}' });

/** Creates a merchant with an order, disables the merchant, and waits until the gateway rejects its calls. */
async function disabledMerchant(mode: MerchantMode) {
  const merchant = await gateway.newMerchant('Closed Shop', mode);
  const created = await postOrder(merchant);
  expect(created.status).toBe(201);
  await gateway.accounts.disable(merchant.credentials.clientId);
  await expect.poll(async () => (await postOrder(merchant)).status).toBe(401);
  return { merchant, order: await readOrder(created) };
}

test('a disabled merchant is unauthenticated until it is enabled again, and its order is kept', async () => {
  const { merchant, order } = await disabledMerchant('live');
  const wrong = { ...merchant.credentials, clientSecret: `sk_${'0'.repeat(43)}` };
  const [disabled, unknown] = await Promise.all([postOrder(merchant), postOrder({ ...merchant, credentials: wrong })]);
  const { request_id: _, ...problem } = (await disabled.json()) as Record<string, unknown>;
  expect(await unknown.json()).toMatchObject(problem);
  await gateway.accounts.enable(merchant.credentials.clientId);
  const replayed = await postOrder(merchant);
  expect([replayed.status, await readOrder(replayed)]).toEqual([200, order]);
});

test('while a merchant is disabled, no payment of its orders can start, but a payment that was made is recorded', async () => {
  const { order } = await disabledMerchant('live');
  const page = await fetch(order.payment_link);
  const text = await page.text();
  expect([page.status, text.includes('Closed Shop'), text.includes('checkout.example.com')]).toEqual([
    200,
    true,
    false,
  ]);
  const json = await fetch(order.payment_link, { headers: { accept: 'application/json' } });
  expect(await json.json()).toMatchObject({ order_status: 'UN_PAID', checkout_url: null });
  const checkout = grpcClient(CheckoutService, gateway);
  const headers = gateway.checkout.headers;
  const { order_token: orderToken } = order;
  for (const call of [
    checkout.resolvePaymentLink({ orderToken }, { headers }),
    checkout.startPayment({ orderToken, attemptId: 'attempt' }, { headers }),
  ]) {
    expect(await rpcErrorOf(call)).toEqual({ code: Code.NotFound, reason: 'not_found' });
  }
  expect((await postPayment(gateway.checkout, orderToken)).status).toBe(200);
  expect(await checkout.resolvePaymentLink({ orderToken }, { headers })).toMatchObject({
    order: { orderId: order.order_id },
  });
});

test('the payment page of a disabled test merchant has no buttons that simulate a payment', async () => {
  const { order } = await disabledMerchant('test');
  expect(await (await fetch(order.payment_link)).text()).not.toContain('<form');
  expect((await pressPay(order.payment_link)).status).toBe(404);
});
