import type { AccountId } from '@order-gateway/domain/accounts';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import type { DeliveryListFilter } from '@order-gateway/domain/webhooks';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openOrderStore } from '../../src/order-store.ts';
import { openWebhookEndpoints, type WebhookEndpoints } from '../../src/webhooks/webhook-endpoints.ts';
import { createOrder } from '../../testing/contract-store.ts';
import { useTestDatabase } from '../../testing/test-database.ts';
import { createMerchantsWithOrder, storeEvents } from '../../testing/webhook-events.ts';

const database = useTestDatabase();
let endpoints: WebhookEndpoints;

beforeAll(() => {
  endpoints = openWebhookEndpoints(database.options);
});

afterAll(() => endpoints?.close());

const endpoint = { url: 'https://shop.example/hook', signingSecret: Uint8Array.of(1) };

async function newMerchant(): Promise<{ merchantId: AccountId; clientId: string }> {
  const [merchantId] = (await createMerchantsWithOrder(database.url, database.sql, 1)) as [AccountId];
  const [row] = await database.sql`select client_id from accounts where id = ${merchantId}`;
  return { merchantId, clientId: row?.client_id };
}

async function newEndpoint(merchantId: AccountId, url = endpoint.url): Promise<string> {
  const endpointId = await endpoints.create(merchantId, { ...endpoint, url });
  if (endpointId === undefined) throw new Error('there are too many endpoints');
  return endpointId;
}

test('an endpoint is created, found and removed', async () => {
  const { merchantId, clientId } = await newMerchant();
  expect(await endpoints.find(clientId)).toEqual({ merchantId, endpoint: undefined, endpoints: [] });
  await endpoints.create(merchantId, endpoint);
  const found = await endpoints.find(clientId);
  expect(found?.endpoint).toMatchObject({ url: endpoint.url, previousSecret: null, disabledAt: null });
  expect(found?.endpoint?.signingSecret).toEqual(Buffer.of(1));
  const remove = () => endpoints.remove(merchantId, found?.endpoint?.endpointId ?? '');
  expect([await remove(), await remove()]).toEqual([true, false]);
  expect(await endpoints.find(clientId)).toEqual({ merchantId, endpoint: undefined, endpoints: [] });
});

test('an unknown client id and the client id of a checkout system are not found', async () => {
  await database.sql`insert into accounts (name, client_id, kind) values ('Checkout', 'chk_1', 'checkout')`;
  expect([await endpoints.find('app_x'), await endpoints.find('chk_1')]).toEqual([undefined, undefined]);
});

test('an endpoint that gets a new URL and is enabled again keeps its secrets', async () => {
  const { merchantId, clientId } = await newMerchant();
  const endpointId = await newEndpoint(merchantId);
  await database.sql`update webhook_endpoints set disabled_at = now(), failing_since = now() where merchant_id = ${merchantId}`;
  await endpoints.update(merchantId, endpointId, { url: 'https://shop.example/new', status: 'enabled' });
  const found = await endpoints.find(clientId);
  expect(found?.endpoint).toMatchObject({ url: 'https://shop.example/new', disabledAt: null, failingSince: null });
  expect([found?.endpoint?.signingSecret, found?.endpoint?.previousSecret]).toEqual([Buffer.of(1), null]);
});

test('a secret is rotated only if there is an endpoint', async () => {
  const { merchantId, clientId } = await newMerchant();
  expect(await endpoints.rotate(merchantId, 'we_unknown', Uint8Array.of(2))).toBe(false);
  const endpointId = await newEndpoint(merchantId);
  expect(await endpoints.rotate(merchantId, endpointId, Uint8Array.of(2))).toBe(true);
  const found = await endpoints.find(clientId);
  expect([found?.endpoint?.signingSecret, found?.endpoint?.previousSecret]).toEqual([Buffer.of(2), Buffer.of(1)]);
});

test('secrets are re-encrypted unless one of them has changed since they were read', async () => {
  const { merchantId } = await newMerchant();
  const removed = await newEndpoint(merchantId);
  const kept = await newEndpoint(merchantId);
  const reencrypted = async () =>
    (await endpoints.listSecrets())
      .filter(({ endpointId }) => endpointId === kept)
      .map(({ signingSecret, previousSecret, ...key }) => ({
        ...key,
        was: { signingSecret, previousSecret },
        signingSecret: Uint8Array.of(3),
        previousSecret: previousSecret && Uint8Array.of(4),
      }));
  const early = await reencrypted();
  // The secret of the removed endpoint still signs return links for a day.
  await endpoints.remove(merchantId, removed);
  expect(await endpoints.reencrypt(early)).toBe(0);
  expect(await endpoints.reencrypt(await reencrypted())).toBe(1);
  expect(await endpoints.list(merchantId)).toMatchObject([
    { signingSecret: Buffer.of(3), previousSecret: Buffer.of(4) },
  ]);
});

test('a redelivery queues an event as if it were new, whether or not it was queued before', async () => {
  const { merchantId } = await newMerchant();
  const [eventId] = (await storeEvents(database.sql, [merchantId], 1)) as [string];
  const stateOf = async () =>
    (
      await database.sql`select attempts, delivered_at, next_attempt_at <= now() as is_due from webhook_deliveries
      where event_id = ${eventId} and endpoint_id = ${endpointId}`
    )[0];
  const endpointId = await newEndpoint(merchantId);
  expect(await endpoints.redeliver(merchantId, endpointId, eventId)).toBe(true);
  expect(await stateOf()).toEqual({ attempts: 0, delivered_at: null, is_due: true });
  await database.sql`update webhook_deliveries set attempts = 10, next_attempt_at = null, delivered_at = now() where event_id = ${eventId}`;
  expect(await endpoints.redeliver(merchantId, endpointId, eventId)).toBe(true);
  expect(await stateOf()).toEqual({ attempts: 0, delivered_at: null, is_due: true });
  await endpoints.update(merchantId, endpointId, { status: 'disabled' });
  expect(await endpoints.redeliver(merchantId, endpointId, eventId)).toBe(false);
});

test("an unknown event and another merchant's event are not queued", async () => {
  const { merchantId } = await newMerchant();
  const otherMerchant = await newMerchant();
  const endpointId = await newEndpoint(merchantId);
  const [eventId] = (await storeEvents(database.sql, [otherMerchant.merchantId], 1)) as [string];
  expect([
    await endpoints.redeliver(merchantId, endpointId, eventId),
    await endpoints.redeliver(merchantId, endpointId, `evt_${'0'.repeat(32)}`),
  ]).toEqual([false, false]);
});

test('a merchant has at most 5 endpoints, even if several processes add them at the same time', async () => {
  const { merchantId } = await newMerchant();
  const processes = Array.from({ length: 4 }, () => openWebhookEndpoints(database.options));
  onTestFinished(async () => void (await Promise.all(processes.map((process) => process.close()))));
  const created = await Promise.all(
    Array.from({ length: 20 }, (_, index) => processes[index % 4]?.create(merchantId, endpoint)),
  );
  expect(created.filter((id) => id !== undefined)).toHaveLength(5);
  expect(await endpoints.list(merchantId)).toHaveLength(5);
});

test("an endpoint's deliveries are filtered by status, and listed newest first across pages", async () => {
  const { merchantId } = await newMerchant();
  const [endpointId] = [await newEndpoint(merchantId), await newEndpoint(merchantId)];
  const stored: string[] = [];
  for (let count = 0; count < 3; count += 1) stored.push(...(await storeEvents(database.sql, [merchantId], 1)));
  const [oldest, middle, newest] = stored as [string, string, string];
  await database.sql`update webhook_deliveries set next_attempt_at = null where event_id in (${oldest}, ${newest})`;
  await database.sql`update webhook_deliveries set delivered_at = now() where event_id = ${oldest}`;
  const idsOf = async (filter: Partial<DeliveryListFilter>, limit = 10) =>
    (await endpoints.pageOfDeliveries(merchantId, endpointId, { ...filter, limit })).map(({ eventId }) => eventId);
  expect(await idsOf({})).toEqual([newest, middle, oldest]);
  expect(await idsOf({ status: 'delivered' })).toEqual([oldest]);
  expect(await idsOf({ status: 'pending' })).toEqual([middle]);
  expect(await idsOf({ status: 'failed' })).toEqual([newest]);
  const [first] = await endpoints.pageOfDeliveries(merchantId, endpointId, { limit: 1 });
  expect(await idsOf({ after: first?.eventId }, 1)).toEqual([middle]);
});

test("the deliveries of an order's events are listed", async () => {
  const { merchantId } = await newMerchant();
  const endpointId = await newEndpoint(merchantId);
  const store = openOrderStore(database.options);
  for (const order_id of ['a', 'b', 'c']) {
    const order = await createOrder(store, { ...sampleOrder(merchantId, { order_id }), createdAtMs: Date.now() });
    expect(await store.expireNow(order, 20_000)).toEqual({ kind: 'changed' });
  }
  await store.close();
  const pageOf = (orderId: string, filter: Partial<DeliveryListFilter> = {}) =>
    endpoints.pageOfDeliveries(merchantId, endpointId, { orderId, limit: 10, ...filter });
  const all = await endpoints.pageOfDeliveries(merchantId, endpointId, { limit: 10 });
  expect(all).toHaveLength(3);
  expect(await pageOf('b')).toEqual([all[1]]);
  expect(await pageOf('b', { status: 'delivered' })).toEqual([]);
  expect(await pageOf('b', { after: all[1]?.eventId })).toEqual([]);
  expect(await pageOf('unknown')).toEqual([]);
});

test('deliveries that failed since the given time are queued again, but none that are delivered or in flight', async () => {
  const { merchantId } = await newMerchant();
  const endpointId = await newEndpoint(merchantId);
  const [givenUp, waiting, delivered, inFlight, earlier, untried] = (await storeEvents(
    database.sql,
    [merchantId],
    6,
  )) as [string, string, string, string, string, string];
  const attempted = (ids: readonly string[], assignments: string) =>
    database.sql.unsafe(
      `update webhook_deliveries set attempts = 3, last_attempt_at = now(), ${assignments} where event_id = any($1)`,
      [[...ids]],
    );
  await attempted([givenUp, earlier], 'next_attempt_at = null');
  await database.sql`update webhook_deliveries set last_attempt_at = now() - interval '2 hours' where event_id = ${earlier}`;
  await attempted([waiting], "next_attempt_at = now() + interval '5 hours'");
  await attempted([inFlight], "next_attempt_at = now() + interval '20 seconds'");
  await attempted([delivered], 'next_attempt_at = null, delivered_at = now()');
  const since = new Date(Date.now() - 3_600_000);
  expect(await endpoints.redeliverFailed(merchantId, endpointId, since)).toBe(2);
  const queued = await database.sql`select event_id from webhook_deliveries
    where merchant_id = ${merchantId} and attempts = 0 and next_attempt_at <= now()`;
  expect(queued.map(({ event_id }) => event_id).toSorted()).toEqual([givenUp, waiting, untried].toSorted());
  expect(await endpoints.redeliverFailed(merchantId, endpointId, since)).toBe(0);
  await attempted([givenUp], 'next_attempt_at = null');
  await endpoints.update(merchantId, endpointId, { status: 'disabled' });
  expect(await endpoints.redeliverFailed(merchantId, endpointId, since)).toBe(0);
});
