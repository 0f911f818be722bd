import { endpointsMax } from '@order-gateway/domain/webhooks';
import { expect, test } from 'vitest';
import { auditLogOf, signIn, useVisitors } from '../../helpers/console-visitor.ts';
import { giveSigningSecret, runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, cancelNewOrder } from '../../helpers/send-order.ts';
import { runWebhookReceiver } from '../../helpers/webhook-receiver.ts';

const gateway = useGateway({ hasConsole: true });
const { visitor, clerk, otherVisitor } = useVisitors(gateway);

const endpoints = async () => (await callJson(gateway, 'GET', '/webhook_endpoints')).body.endpoints;

async function newEndpoint(url: string): Promise<{ id: string; secret: string }> {
  const created = await visitor.post('/webhooks', { url });
  const [, secret = ''] = /value="(whsec_[^"]+)"/.exec(created.text) ?? [];
  const { id } = (await endpoints()).find((endpoint: { url: string }) => endpoint.url === url);
  return { id, secret };
}

test('an endpoint is added, tested, disabled and deleted; each new secret is shown once', async () => {
  const receiver = await runWebhookReceiver();
  const { id, secret } = await newEndpoint(receiver.url);
  expect(secret).toMatch(/^whsec_/);
  const path = `/webhooks/${id}`;
  expect((await visitor.get(path)).text).not.toContain('whsec_');
  const pinged = await visitor.post(`${path}/ping`);
  expect([pinged.status, pinged.text]).toEqual([200, expect.stringContaining('The test message was delivered')]);
  const rotated = await visitor.post(`${path}/rotate`);
  expect(rotated.text).toContain('value="whsec_');
  expect(rotated.text).not.toContain(secret);
  await visitor.post(`${path}/status`, { status: 'disabled' });
  expect((await clerk.get('/webhooks')).text).toContain('<span class="status badge">Disabled</span>');
  await visitor.post(`${path}/status`, { status: 'enabled' });
  expect((await clerk.get('/webhooks')).text).toContain('<span class="status badge paid">Active</span>');
  expect((await visitor.get(`${path}/delete`)).text).toContain(receiver.url);
  expect(await endpoints()).toHaveLength(1);
  expect((await visitor.post(`${path}/delete`)).status).toBe(303);
  expect(await endpoints()).toEqual([]);
  expect(await auditLogOf(gateway, 'webhook.ping')).toEqual([
    { actor: 'console:Ada', details: { endpoint: id, role: 'manage' } },
  ]);
  for (const { actor, details } of await auditLogOf(gateway, 'webhook.create')) {
    expect([actor, details]).toEqual(['console:Ada', expect.objectContaining({ role: 'manage' })]);
  }
});

test('a delivery is listed with its attempts, and can be repeated', async () => {
  const receiver = await runWebhookReceiver();
  const { id } = await newEndpoint(receiver.url);
  await cancelNewOrder(gateway, `webhook-${Math.random()}`);
  const path = `/webhooks/${id}`;
  await expect.poll(async () => (await clerk.get(`${path}?status=delivered`)).text).toContain('Attempts: <bdi>1</bdi>');
  const { text } = await visitor.get(path);
  const [, event_id = ''] = /name="event_id" value="([^"]+)"/.exec(text) ?? [];
  const deliveries = async () =>
    (await callJson(gateway, 'GET', `/webhook_endpoints/${id}/deliveries`)).body.deliveries[0];
  const before = await deliveries();
  expect((await visitor.post(`${path}/redeliver`, { event_id })).status).toBe(303);
  await expect.poll(async () => (await deliveries()).delivered_at).not.toBe(before.delivered_at);
  expect((await visitor.post(`${path}/redeliver`, { event_id: 'evt_0' })).status).toBe(404);
  // A disabled endpoint gets no deliveries.
  await visitor.post(`${path}/status`, { status: 'disabled' });
  expect((await visitor.get(path)).text).not.toContain('name="event_id"');
  await visitor.post(`${path}/delete`);
});

test('an invalid URL is reported beside its field, which keeps the value that was typed', async () => {
  const { status, text } = await visitor.post('/webhooks', { url: 'shop' });
  expect([status, text]).toEqual([400, expect.stringMatching(/value="shop" name="url"[^>]+aria-invalid="true"/)]);
  expect(await endpoints()).toEqual([]);
});

test('a new client secret is shown once and works until it is revoked', async () => {
  const created = await visitor.post('/secrets');
  const [, clientSecret = ''] = /value="(sk_[^"]+)"/.exec(created.text) ?? [];
  const { clientId } = gateway.credentials;
  const isAccepted = async () =>
    (await callJson({ url: gateway.url, credentials: { clientId, clientSecret } }, 'GET', '/orders')).status === 200;
  expect(await isAccepted()).toBe(true);
  const { text } = await visitor.get('/secrets');
  expect(text).not.toContain('sk_');
  const [id] = [...text.matchAll(/\/secrets\/(\d+)\/revoke"/g)].map(([, number]) => number).slice(-1);
  expect((await visitor.get(`/secrets/${id}/revoke`)).text).toContain('This can’t be undone');
  expect(await isAccepted()).toBe(true);
  expect((await visitor.post(`/secrets/${id}/revoke`)).status).toBe(303);
  await expect.poll(isAccepted).toBe(false);
  expect(await auditLogOf(gateway, 'secret.revoke')).toMatchObject([
    { actor: 'console:Ada', details: { role: 'manage' } },
  ]);
});

test('a person with the role `read` sees the pages of endpoints, but no actions and no secrets, and gets 403 for them', async () => {
  await giveSigningSecret(gateway.databaseUrl, gateway.credentials.clientId);
  const [{ id }] = await endpoints();
  for (const page of ['/webhooks', `/webhooks/${id}`]) {
    const { status, text } = await clerk.get(page);
    expect(status).toBe(200);
    expect(text.match(/<form/g)).toHaveLength(1);
    expect(text).not.toContain('/secrets');
  }
  const statuses = await Promise.all([
    clerk.get('/secrets'),
    clerk.post('/secrets'),
    clerk.post('/secrets/1/revoke'),
    clerk.post('/webhooks', { url: 'https://shop.example.com' }),
    ...['ping', 'rotate', 'status', 'redeliver', 'delete'].map((action) => clerk.post(`/webhooks/${id}/${action}`)),
  ]);
  expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([403]));
});

test('a merchant cannot see or change the endpoints and secrets of another merchant', async () => {
  await giveSigningSecret(gateway.databaseUrl, gateway.credentials.clientId);
  const [{ id }] = await endpoints();
  const secrets = (await callJson(gateway, 'GET', '/client_secrets')).body.secrets;
  const responses = [
    await otherVisitor.get(`/webhooks/${id}`),
    await otherVisitor.get(`/webhooks/${id}/delete`),
    await otherVisitor.post(`/secrets/${secrets[0].id}/revoke`),
  ];
  for (const action of ['ping', 'rotate', 'status', 'redeliver', 'delete']) {
    const event_id = `evt_${'0'.repeat(32)}`;
    responses.push(await otherVisitor.post(`/webhooks/${id}/${action}`, { status: 'disabled', event_id }));
  }
  responses.push(await visitor.post('/webhooks/%00/ping'), await visitor.post('/secrets/%00/revoke'));
  expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 404));
  expect((await otherVisitor.get('/webhooks')).text).not.toContain(id);
  expect(await endpoints()).toMatchObject([{ id }]);
});

test('with SELF_SERVICE=off, the page of the webhooks gets 403 and refers to the operator', async () => {
  const reserved = await runGateway({ hasConsole: true, selfService: false });
  const { status, text } = await (await signIn(reserved)).get('/webhooks');
  expect([status, text]).toEqual([403, expect.stringContaining('Ask the operator')]);
});

test('the form for a new endpoint is shown until the merchant has the maximum; then it is rejected', async () => {
  const shop = await gateway.newMerchant('Many Endpoints');
  const person = await signIn(shop);
  const hasForm = async () => (await person.get('/webhooks')).text.includes('name="url"');
  const shown: boolean[] = [];
  for (let count = 0; count < endpointsMax; count += 1) {
    shown.push(await hasForm());
    await callJson(shop, 'POST', '/webhook_endpoints', { url: `https://shop.example.com/${count}` });
  }
  expect([...shown, await hasForm()]).toEqual([...Array(endpointsMax).fill(true), false]);
  for (const [url, status] of [
    ['https://shop.example.com/new', 409],
    ['shop', 400],
  ] as const) {
    const rejected = await person.post('/webhooks', { url });
    expect([rejected.status, rejected.text]).toEqual([status, expect.stringContaining('class="error" role="alert"')]);
  }
});

test("an order's timeline shows the deliveries of its events, with links to them", async () => {
  const shop = await gateway.newMerchant('Delivering Shop');
  const [working, failing] = [await runWebhookReceiver(), 'http://127.0.0.1:1/<b>'];
  const ids: string[] = [];
  for (const url of [working.url, failing])
    ids.push((await callJson(shop, 'POST', '/webhook_endpoints', { url })).body.id);
  await cancelNewOrder(shop, 'timeline & more');
  await cancelNewOrder(shop, 'another');
  const { service_order_id } = (await callJson(shop, 'GET', '/order/timeline%20%26%20more')).body;
  const deliveries = async (id = '') => {
    const { body } = await callJson(shop, 'GET', `/webhook_endpoints/${id}/deliveries?order_id=timeline+%26+more`);
    return body.deliveries.map(({ type, last_result }: Record<string, unknown>) => [type, last_result]);
  };
  await expect.poll(() => deliveries(ids[0])).toEqual([['order.cancelled', 'HTTP 204']]);
  await expect.poll(() => deliveries(ids[1])).toEqual([['order.cancelled', 'ECONNREFUSED']]);
  const person = await signIn(shop, { role: 'read' });
  const { text } = await person.get(`/orders/${service_order_id}`);
  const entries = text.matchAll(/<li>.*?<\/time>(.*?)<\/li>/gs).map(([, entry = '']) => entry);
  const texts = [...entries].map((entry) => entry.replaceAll(/<[^>]*>/g, ''));
  expect(texts.slice(0, 2)).toEqual(['Order created', 'Cancelled']);
  expect(texts.slice(2).toSorted()).toEqual([
    expect.stringMatching(/^Webhook order.cancelled to http:.*&lt;b&gt;: Pending, ECONNREFUSED. Attempts: [12]$/),
    `Webhook order.cancelled to ${working.url}: Delivered, HTTP 204. Attempts: 1`,
  ]);
  const [, address = ''] = new RegExp(`href="/console(/webhooks/${ids[0]}[^"]*)"`).exec(text) ?? [];
  const deliveriesPage = (await person.get(address.replaceAll('&amp;', '&'))).text;
  expect(deliveriesPage.match(/order\.cancelled<br>/g)).toHaveLength(1);
  expect(deliveriesPage).toContain('?order_id=timeline+%26+more&amp;status=failed"');
});
