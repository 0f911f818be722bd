import { createClient, type GatewayError, type SignedWebhookEndpoint, verifyWebhook } from '@order-gateway/client';
import { expect, test } from 'vitest';
import { useGateway } from '../helpers/running-gateway.ts';
import { createOrder, postPayment } from '../helpers/send-order.ts';
import { type ReceivedWebhook, runWebhookReceiver } from '../helpers/webhook-receiver.ts';

const gateway = useGateway();

/** Creates a merchant, and a client with its credentials. */
async function newClient() {
  const merchant = await gateway.newMerchant();
  return { client: createClient({ baseUrl: gateway.url, ...merchant.credentials }), merchant };
}

test('a merchant creates, changes, pings and deletes an endpoint, and rotates its secret', async () => {
  const { client } = await newClient();
  const { url, received } = await runWebhookReceiver();
  const { signing_secret, ...endpoint } = await client.createWebhookEndpoint({ url, event_types: ['order.paid'] });
  expect(endpoint).toMatchObject({ url, event_types: ['order.paid'], status: 'enabled', signs_returns: true });
  expect(await client.getWebhookEndpoint(endpoint.id)).toEqual(endpoint);
  expect(await client.listWebhookEndpoints()).toEqual([endpoint]);
  expect(await client.pingWebhookEndpoint(endpoint.id)).toEqual({ delivered: true, result: 'HTTP 204' });
  const [{ headers, body }] = received as [ReceivedWebhook];
  expect(await verifyWebhook(body, headers, signing_secret)).toMatchObject({ type: 'webhook.test' });
  const rotated: SignedWebhookEndpoint = await client.rotateWebhookSecret(endpoint.id);
  expect(rotated.signing_secret).not.toBe(signing_secret);
  const changed = await client.updateWebhookEndpoint(endpoint.id, { event_types: ['*'], status: 'disabled' });
  expect(changed).toMatchObject({ url, event_types: ['*'], status: 'disabled', disabled_at: expect.any(String) });
  await client.deleteWebhookEndpoint(endpoint.id);
  const repeated = client.deleteWebhookEndpoint(endpoint.id);
  expect(await repeated.catch((error: GatewayError) => error.code)).toBe('not_found');
});

test('a merchant lists the deliveries to an endpoint, and repeats failed ones', async () => {
  const { client, merchant } = await newClient();
  let status = 410;
  const { url, received } = await runWebhookReceiver({
    respond: (_, response) => void response.writeHead(status).end(),
  });
  const { id } = await client.createWebhookEndpoint({ url });
  const { order_token } = await createOrder(merchant, 'delivered');
  const startTime = new Date();
  await postPayment(gateway.checkout, order_token);
  const deliveries = () => Array.fromAsync(client.listWebhookDeliveries(id, { limit: 1 }));
  await expect.poll(deliveries).toMatchObject([{ type: 'order.paid', status: 'failed', last_result: 'HTTP 410' }]);
  const [{ event_id } = { event_id: '' }] = await deliveries();
  status = 204;
  await client.updateWebhookEndpoint(id, { status: 'enabled' });
  expect(await client.redeliverFailedWebhooks(id, startTime)).toBe(1);
  await expect.poll(deliveries).toMatchObject([{ event_id, status: 'delivered' }]);
  await client.redeliverWebhook(id, event_id);
  await expect.poll(() => received.length).toBe(3);
  expect(await Array.fromAsync(client.listWebhookDeliveries(id, { status: 'failed' }))).toEqual([]);
});

test('a merchant replaces its client secret', async () => {
  const { client, merchant } = await newClient();
  const { client_secret, ...created } = await client.createClientSecret();
  const [first, second] = await client.listClientSecrets();
  expect(second).toEqual(created);
  const newSecretClient = createClient({ ...merchant.credentials, baseUrl: gateway.url, clientSecret: client_secret });
  expect(await newSecretClient.revokeClientSecret(first?.id ?? '')).toMatchObject({ ends_at: expect.any(String) });
  const last = newSecretClient.revokeClientSecret(created.id);
  expect(await last.catch((error: GatewayError) => error.code)).toBe('last_client_secret');
});
