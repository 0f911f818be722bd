import { verifyReturn } from '@order-gateway/client';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { giveSigningSecret, runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { type Caller, callJson, cancelNewOrder, createOrder } from '../../helpers/send-order.ts';
import { type ReceivedWebhook, runWebhookReceiver } from '../../helpers/webhook-receiver.ts';

// Behaviour of webhook endpoints that neither the fixtures nor the tests of the client package show.

const gateway = useGateway();

/** Creates an endpoint and returns it with its signing secret. */
async function create(merchant: Caller, url: string, fields: object = {}) {
  const { status, body } = await callJson(merchant, 'POST', '/webhook_endpoints', { url, ...fields });
  expect([status, body]).toEqual([201, expect.objectContaining({ url })]);
  return body;
}

const verified = (secret: string, { headers, body }: ReceivedWebhook) =>
  new Webhook(secret).verify(body, headers as Record<string, string>);

async function deliveriesOf(merchant: Caller, id: string, query = ''): Promise<Record<string, unknown>[]> {
  const { status, body } = await callJson(merchant, 'GET', `/webhook_endpoints/${id}/deliveries${query}`);
  expect(status).toBe(200);
  return body.deliveries;
}

async function logOf({ credentials }: Caller) {
  const entries = await gateway.accounts.log({ clientId: credentials.clientId, after: 0, limit: 100 });
  return entries.flatMap(({ actor, action }) => (action === 'create' ? [] : [[actor, action]]));
}

test('a ping reports an error, and a merchant may have only two pings in flight', async () => {
  const merchant = await gateway.newMerchant();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const receiver = await runWebhookReceiver({
    respond: (_, response) => void released.then(() => response.writeHead(500).end()),
  });
  const { id } = await create(merchant, receiver.url);
  const ping = () => callJson(merchant, 'POST', `/webhook_endpoints/${id}/ping`);
  const waiting = [ping(), ping()];
  await expect.poll(() => receiver.received.length).toBe(2);
  expect((await ping()).body.code).toBe('rate_limited');
  release();
  expect((await Promise.all(waiting)).map(({ body }) => body)).toEqual(
    waiting.map(() => ({ delivered: false, result: 'HTTP 500' })),
  );
});

test('each endpoint gets the events of its types', async () => {
  const merchant = await gateway.newMerchant();
  const [cancelled, paid] = [await runWebhookReceiver(), await runWebhookReceiver()];
  const first = await create(merchant, cancelled.url, { event_types: ['order.cancelled'] });
  const second = await create(merchant, paid.url, { event_types: ['order.paid'] });
  expect(first.event_types).toEqual(['order.cancelled']);
  await cancelNewOrder(merchant, 'A-1');
  await expect.poll(() => cancelled.received.length).toBe(1);
  const message = verified(first.signing_secret, cancelled.received[0] as ReceivedWebhook);
  expect(message).toMatchObject({ type: 'order.cancelled', data: { order_id: 'A-1', order_status: 'CANCELLED' } });
  expect((await callJson(merchant, 'GET', '/events')).body.events).toEqual([message]);
  expect(await deliveriesOf(merchant, second.id)).toEqual([]);
  await expect
    .poll(() => deliveriesOf(merchant, first.id, '?status=delivered'))
    .toMatchObject([{ type: 'order.cancelled', status: 'delivered', attempts: 1, last_result: 'HTTP 204' }]);
  const path = `/webhook_endpoints/${second.id}`;
  expect((await callJson(merchant, 'PATCH', path, { event_types: ['*'] })).body.event_types).toEqual(['*']);
  await cancelNewOrder(merchant, 'A-2');
  await expect.poll(() => paid.received.length).toBe(1);
});

test('an endpoint keeps its secret when its URL changes, and signs with both secrets after a rotation', async () => {
  const merchant = await gateway.newMerchant();
  const receiver = await runWebhookReceiver();
  const { id, signing_secret: first } = await create(merchant, 'https://shop.invalid/hook');
  const path = `/webhook_endpoints/${id}`;
  const moved = await callJson(merchant, 'PATCH', path, { url: receiver.url });
  expect(moved.body).toMatchObject({ id, url: receiver.url });
  expect(moved.body).not.toHaveProperty('signing_secret');
  const { body: rotated } = await callJson(merchant, 'POST', `${path}/rotate_secret`);
  expect(rotated.signing_secret).not.toBe(first);
  await cancelNewOrder(merchant, 'R-1');
  await expect.poll(() => receiver.received.length).toBe(1);
  for (const secret of [rotated.signing_secret, first]) verified(secret, receiver.received[0] as ReceivedWebhook);
  const actor = merchant.credentials.clientId;
  expect(await logOf(merchant)).toEqual([
    [actor, 'webhook.create'],
    [actor, 'webhook.update'],
    [actor, 'webhook.rotate'],
  ]);
});

test('a disabled endpoint gets nothing, and the pending deliveries of a deleted endpoint are given up', async () => {
  const merchant = await gateway.newMerchant();
  const receiver = await runWebhookReceiver({ respond: (_, response) => void response.writeHead(500).end() });
  const [{ id: disabled }, { id: deleted }] = [
    await create(merchant, receiver.url),
    await create(merchant, receiver.url),
  ];
  const path = `/webhook_endpoints/${disabled}`;
  const { body } = await callJson(merchant, 'PATCH', path, { status: 'disabled' });
  expect(body).toMatchObject({ status: 'disabled', disabled_at: expect.any(String) });
  await cancelNewOrder(merchant, 'D-1');
  await expect
    .poll(() => deliveriesOf(merchant, deleted))
    .toMatchObject([{ status: 'pending', last_result: 'HTTP 500' }]);
  expect(await deliveriesOf(merchant, disabled)).toEqual([]);
  const remove = () => callJson(merchant, 'DELETE', `/webhook_endpoints/${deleted}`);
  expect([(await remove()).status, (await remove()).body.code]).toEqual([200, 'not_found']);
  await runQuery(
    gateway.databaseUrl,
    `update webhook_deliveries set next_attempt_at = now() where endpoint_id = '${deleted}'`,
  );
  const givenUp = () =>
    runQuery(
      gateway.databaseUrl,
      `select last_result from webhook_deliveries where endpoint_id = '${deleted}' and next_attempt_at is null`,
    );
  await expect.poll(givenUp).toEqual([{ last_result: 'no endpoint' }]);
  expect(receiver.received).toHaveLength(1);
});

test('loopback URLs are allowed if webhooks may be sent to this machine, as with the embedded database', async () => {
  const embedded = await runGateway({ webhookAddresses: 'loopback' });
  const receiver = await runWebhookReceiver();
  const { id } = await create(embedded, receiver.url);
  const { body: ping } = await callJson(embedded, 'POST', `/webhook_endpoints/${id}/ping`);
  expect(ping).toEqual({ delivered: true, result: 'HTTP 204' });
  const { body } = await callJson(embedded, 'POST', '/webhook_endpoints', { url: 'http://10.0.0.1/' });
  expect([body.code, body.detail]).toEqual(['webhook_url_not_allowed', 'The URL must begin with https://.']);
});

test.each([
  [[], 'first', undefined],
  [['rotate first'], 'first renewed', 'first'],
  [['delete first'], 'second', 'first'],
  [['delete first', 'wait a day'], 'second', undefined],
  [['disable first'], 'second', 'first'],
  [['disable first', 'wait a day'], 'second', undefined],
  [['disable first', 'delete first'], 'second', 'first'],
  [['disable first', 'rotate first'], 'second', 'first'],
  [['disable first', 'rotate first', 'delete first'], 'second', 'first'],
  [['get 410 first'], 'second', 'first'],
  [['rotate second', 'disable first'], 'second renewed', 'first'],
  [['disable second'], 'first', undefined],
  [['delete second'], 'first', undefined],
  [['disable first', 'disable second'], 'second', 'first'],
  [['disable second', 'disable first', 'delete first'], 'second', 'first'],
  [['disable first', 'wait a day', 'enable first'], 'first', 'second'],
  [['disable first', 'disable second', 'wait a day', 'enable second'], 'second', undefined],
  [['disable first', 'disable second', 'wait a day', 'create third'], 'third', 'second'],
  [['create third', 'disable third'], 'first', undefined],
])(
  'of two endpoints, after %j, the secret of %s signs return links, and for a day that of %s too',
  async (steps, signer, previous) => {
    const merchant = await gateway.newMerchant();
    const ids = new Map<string, string>();
    const secrets = new Map<string, string>();
    const ofMerchant = () => `endpoint_id in (${[...ids.values()].map((id) => `'${id}'`)})`;
    const run = (query: string) => runQuery(gateway.databaseUrl, query);
    const perform = async (step: string) => {
      const [, action = '', name = ''] = /^(.+) (\w+)$/.exec(step) ?? [];
      const path = `/webhook_endpoints/${ids.get(name)}`;
      if (step === 'wait a day') {
        await run(`update webhook_endpoints set disabled_at = disabled_at - interval '25 hours',
        previous_ends_at = previous_ends_at - interval '25 hours' where ${ofMerchant()}`);
      } else if (action === 'create') {
        const { id, signing_secret } = await create(merchant, `https://shop.invalid/${name}`);
        ids.set(name, id);
        secrets.set(name, signing_secret);
      } else if (action === 'rotate') {
        secrets.set(`${name} renewed`, (await callJson(merchant, 'POST', `${path}/rotate_secret`)).body.signing_secret);
      } else if (action === 'get 410') {
        await run(`update webhook_endpoints set disabled_at = now() where endpoint_id = '${ids.get(name)}'`);
      } else if (action === 'delete') {
        expect((await callJson(merchant, 'DELETE', path)).status).toBe(200);
      } else {
        expect((await callJson(merchant, 'PATCH', path, { status: `${action}d` })).status).toBe(200);
      }
    };
    for (const step of ['create first', 'create second', ...steps]) await perform(step);
    const { payment_link } = await createOrder(merchant, 'signed');
    const { body } = await callJson(merchant, 'GET', new URL(payment_link).pathname);
    const signedWith = async (name: string) => {
      const { searchParams } = new URL(body.return_url);
      const signature = searchParams.get(name);
      searchParams.delete('previous_signature');
      searchParams.set('signature', signature ?? '');
      for (const [name, secret] of secrets)
        if (await verifyReturn(searchParams, secret).catch(() => false)) return name;
      return undefined;
    };
    expect([await signedWith('signature'), await signedWith('previous_signature')]).toEqual([signer, previous]);
    const { body: listed } = await callJson(merchant, 'GET', '/webhook_endpoints');
    const signing = listed.endpoints.filter((endpoint: { signs_returns: boolean }) => endpoint.signs_returns);
    expect(signing).toMatchObject([{ id: ids.get(signer.replace(' renewed', '')) }]);
  },
);

test('with SELF_SERVICE=off, operations on endpoints, client secrets and brands are denied, and the error says why', async () => {
  const withoutSelfService = await runGateway({ selfService: false });
  for (const [method, path] of [
    ['GET', '/webhook_endpoints'],
    ['GET', '/client_secrets'],
    ['GET', '/brand'],
    ['PATCH', '/brand'],
  ] as const) {
    const change = method === 'PATCH' ? { color: '#0b5fff' } : undefined;
    const { body } = await callJson(withoutSelfService, method, path, change);
    expect(body).toMatchObject({
      status: 403,
      code: 'permission_denied',
      detail: 'The operator of this gateway manages webhook endpoints, client secrets and brands. Ask the operator.',
    });
  }
});

test('without SECRETS_KEY, operations that need a signing secret fail with the reason, and lists and deletions work', async () => {
  const noKey = await runGateway({ hasSecretsKey: false });
  await giveSigningSecret(noKey.databaseUrl, noKey.credentials.clientId);
  const { body: listed } = await callJson(noKey, 'GET', '/webhook_endpoints');
  const [{ id }] = listed.endpoints;
  for (const path of ['', `/${id}/ping`, `/${id}/rotate_secret`]) {
    const { body } = await callJson(noKey, 'POST', `/webhook_endpoints${path}`, { url: 'https://shop.invalid/' });
    expect(body, path).toMatchObject({ status: 409, code: 'webhooks_not_configured' });
  }
  expect((await callJson(noKey, 'DELETE', `/webhook_endpoints/${id}`)).status).toBe(200);
});

test("a ping whose signing secret was stored with another key fails with the operator's reason, and sends nothing", async () => {
  const receiver = await runWebhookReceiver();
  const merchant = await gateway.newMerchant();
  const { id } = await create(merchant, receiver.url);
  await runQuery(
    gateway.databaseUrl,
    `update webhook_endpoints set signing_secret = '\\x00' where endpoint_id = '${id}'`,
  );
  const { body } = await callJson(merchant, 'POST', `/webhook_endpoints/${id}/ping`);
  expect(body).toMatchObject({
    status: 409,
    code: 'webhooks_not_configured',
    detail: expect.stringContaining('operator'),
  });
  expect(receiver.received).toEqual([]);
});

test('no log line contains a secret', async () => {
  const merchant = await gateway.newMerchant();
  const { signing_secret, id } = await create(merchant, 'https://shop.invalid/path-of-the-receiver');
  const { body: rotated } = await callJson(merchant, 'POST', `/webhook_endpoints/${id}/rotate_secret`);
  const { body: secret } = await callJson(merchant, 'POST', '/client_secrets');
  const lines = JSON.stringify([gateway.calls, gateway.errors]);
  for (const text of [signing_secret, rotated.signing_secret, secret.client_secret, 'path-of-the-receiver']) {
    expect(text).toBeTypeOf('string');
    expect(lines).not.toContain(text);
  }
});
