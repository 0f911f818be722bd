import type { MerchantId } from '@gateway/domain/merchant';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWebhookEndpoints, type WebhookEndpoints } from '../src/webhook-endpoints.ts';
import { useTestDatabase } from '../testing/test-database.ts';
import { createMerchantsWithOrder, storeEvents } from '../testing/webhook-events.ts';

const database = useTestDatabase();
let endpoints: WebhookEndpoints;

beforeAll(() => {
  endpoints = openWebhookEndpoints({ url: database.url });
});

afterAll(() => endpoints?.close());

const endpoint = { url: 'https://shop.example/hook', signingSecret: Uint8Array.of(1) };

async function newMerchant(): Promise<{ merchantId: MerchantId; clientId: string }> {
  const [merchantId] = (await createMerchantsWithOrder(database.url, database.sql, 1)) as [MerchantId];
  const [row] = await database.sql`select client_id from merchants where id = ${merchantId}`;
  return { merchantId, clientId: row?.client_id };
}

test('an endpoint is set, found and removed', async () => {
  const { merchantId, clientId } = await newMerchant();
  expect(await endpoints.find(clientId)).toEqual({ merchantId, endpoint: undefined });
  await endpoints.set(merchantId, endpoint);
  const found = await endpoints.find(clientId);
  expect(found?.endpoint).toMatchObject({ url: endpoint.url, previousSecret: null, disabledAt: null });
  expect(found?.endpoint?.signingSecret).toEqual(Buffer.of(1));
  expect([await endpoints.remove(merchantId), await endpoints.remove(merchantId)]).toEqual([true, false]);
  expect(await endpoints.find(clientId)).toEqual({ merchantId, endpoint: undefined });
});

test('a client id without a merchant, and that of a checkout system, are not found', async () => {
  await database.sql`insert into merchants (name, client_id, kind) values ('Checkout', 'chk_1', 'checkout')`;
  expect([await endpoints.find('app_x'), await endpoints.find('chk_1')]).toEqual([undefined, undefined]);
});

test('an endpoint that is set again is enabled, and keeps its secrets', async () => {
  const { merchantId, clientId } = await newMerchant();
  await endpoints.set(merchantId, endpoint);
  await database.sql`update webhook_endpoints set disabled_at = now(), failing_since = now() where merchant_id = ${merchantId}`;
  await endpoints.set(merchantId, { url: 'https://shop.example/new', signingSecret: Uint8Array.of(2) });
  const found = await endpoints.find(clientId);
  expect(found?.endpoint).toMatchObject({ url: 'https://shop.example/new', disabledAt: null, failingSince: null });
  expect([found?.endpoint?.signingSecret, found?.endpoint?.previousSecret]).toEqual([Buffer.of(1), null]);
});

test('a secret is rotated only where there is an endpoint, and the previous one is valid for a day', async () => {
  const { merchantId, clientId } = await newMerchant();
  expect(await endpoints.rotate(merchantId, Uint8Array.of(2))).toBe(false);
  await endpoints.set(merchantId, endpoint);
  expect(await endpoints.rotate(merchantId, Uint8Array.of(2))).toBe(true);
  const found = await endpoints.find(clientId);
  expect([found?.endpoint?.signingSecret, found?.endpoint?.previousSecret]).toEqual([Buffer.of(2), Buffer.of(1)]);
  const overlapMs = Number(found?.endpoint?.previousEndsAt) - Date.now();
  expect(overlapMs).toBeGreaterThan(23.9 * 3_600_000);
  expect(overlapMs).toBeLessThan(24.1 * 3_600_000);
});

test('deliveries are listed with those that were not delivered first, then the newest', async () => {
  const { merchantId } = await newMerchant();
  const other = await newMerchant();
  const stored: string[] = [];
  for (let count = 0; count < 3; count += 1) stored.push(...(await storeEvents(database.sql, [merchantId], 1)));
  await storeEvents(database.sql, [other.merchantId], 1);
  const [oldest, middle, newest] = stored as [string, string, string];
  await database.sql`update webhook_deliveries set delivered_at = now(), next_attempt_at = null
    where event_id in (${newest}, ${middle})`;
  const listed = await endpoints.listDeliveries(merchantId, 10);
  expect(listed.map(({ eventId }) => eventId)).toEqual([oldest, newest, middle]);
  expect(listed[0]).toMatchObject({ type: 'order.cancelled', attempts: 0, deliveredAt: null, lastResult: null });
  expect(await endpoints.listDeliveries(merchantId, 1)).toHaveLength(1);
});

test('an event is queued again as if it were new, also one that was never queued', async () => {
  const { merchantId } = await newMerchant();
  const [eventId] = (await storeEvents(database.sql, [merchantId], 1)) as [string];
  const stateOf = async () =>
    (
      await database.sql`select attempts, delivered_at, next_attempt_at <= now() as is_due from webhook_deliveries
      where event_id = ${eventId}`
    )[0];
  expect(await endpoints.redeliver(merchantId, eventId)).toBe(false);
  await endpoints.set(merchantId, endpoint);
  await database.sql`update webhook_deliveries set attempts = 10, next_attempt_at = null, delivered_at = now() where event_id = ${eventId}`;
  expect(await endpoints.redeliver(merchantId, eventId)).toBe(true);
  expect(await stateOf()).toEqual({ attempts: 0, delivered_at: null, is_due: true });
  await database.sql`delete from webhook_deliveries where event_id = ${eventId}`;
  expect(await endpoints.redeliver(merchantId, eventId)).toBe(true);
  expect(await stateOf()).toEqual({ attempts: 0, delivered_at: null, is_due: true });
});

test("an unknown event, and another merchant's, are not queued", async () => {
  const { merchantId } = await newMerchant();
  const other = await newMerchant();
  await endpoints.set(merchantId, endpoint);
  const [eventId] = (await storeEvents(database.sql, [other.merchantId], 1)) as [string];
  expect([
    await endpoints.redeliver(merchantId, eventId),
    await endpoints.redeliver(merchantId, `evt_${'0'.repeat(32)}`),
  ]).toEqual([false, false]);
});
