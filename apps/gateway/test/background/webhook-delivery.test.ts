import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createNoopMeter, type Meter } from '@opentelemetry/api';
import type { AccountId } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { formatSigningSecret } from '@order-gateway/domain/webhooks';
import { useTestDatabase } from '@order-gateway/postgres/testing/test-database';
import { createMerchantsWithOrder, storeEvents } from '@order-gateway/postgres/testing/webhook-events';
import { openWebhookDeliveries, openWebhookEndpoints, type WebhookEndpoints } from '@order-gateway/postgres/webhooks';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { retryPauseSeconds, startWebhookDelivery } from '../../src/background/deliver.ts';
import { createSender } from '../../src/background/send.ts';
import { webhookLimits } from '../../src/limits.ts';
import { createSigningSecrets } from '../../src/runtime/secrets/signing-secrets.ts';
import { createMemoryLogger } from '../helpers/memory-logger.ts';
import { type ReceivedWebhook, runWebhookReceiver, type WebhookReceiver } from '../helpers/webhook-receiver.ts';

const database = useTestDatabase();
let endpoints: WebhookEndpoints;
beforeAll(() => {
  endpoints = openWebhookEndpoints(database.options);
});
afterAll(() => endpoints?.close());

const [firstKey, secondKey] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)] as const;
const secrets = createSigningSecrets([new Uint8Array(32).fill(9)]);

/** Starts a delivery that runs until the test has finished. */
function startDelivery(
  retryPause: typeof retryPauseSeconds = () => 0,
  timeoutMs = webhookLimits.attemptTimeoutMs,
  deliveries = openWebhookDeliveries(database.options),
  meter = createNoopMeter(),
) {
  const { logger, errors } = createMemoryLogger();
  const delivery = startWebhookDelivery({
    deliveries,
    sender: createSender({ allowedAddresses: 'any', timeoutMs }),
    meter,
    secrets,
    logger,
    retryPause,
    now: Date.now,
    baseUrl: () => 'https://pay.example.com' as BaseUrl,
    lateDays: () => 1,
  });
  const close = async () => {
    await delivery.close();
    // The next test must not make a delivery that is still pending.
    await database.sql`update webhook_deliveries set next_attempt_at = null`;
    expect(errors).toEqual([]);
  };
  onTestFinished(close);
  return { ...delivery, close, errors };
}

type Respond = (request: ReceivedWebhook, response: ServerResponse) => void;

const respondWith =
  (...statuses: readonly number[]): Respond =>
  (_, response) => {
    const [status = 204] = statuses.length > 1 ? (statuses as number[]).splice(0, 1) : statuses;
    response.writeHead(status).end();
  };

/** Creates a merchant with an endpoint at its own receiver. */
async function newMerchant(
  respond?: Respond,
): Promise<{ merchantId: AccountId; endpointId: string; receiver: WebhookReceiver }> {
  const receiver = await runWebhookReceiver(respond && { respond });
  const [merchantId] = (await createMerchantsWithOrder(database.url, database.sql, 1)) as [AccountId];
  await endpoints.create(merchantId, { url: receiver.url, signingSecret: secrets.encrypt(merchantId, firstKey) });
  const [{ endpointId = '' } = {}] = await endpoints.list(merchantId);
  return { merchantId, endpointId, receiver };
}

async function storeEvent(merchantId: AccountId): Promise<string> {
  const [eventId] = (await storeEvents(database.sql, [merchantId], 1)) as [string];
  return eventId;
}

/** Returns the deliveries to a merchant's only endpoint, newest first. */
async function deliveriesOf(merchantId: AccountId) {
  const [{ endpointId = '' } = {}] = await endpoints.list(merchantId);
  return endpoints.pageOfDeliveries(merchantId, endpointId, { limit: 9 });
}

/** Returns the state of a merchant's only delivery. */
async function stateOf(merchantId: AccountId) {
  const [delivery] = await deliveriesOf(merchantId);
  const { attempts, lastResult, deliveredAt, nextAttemptAt } = delivery ?? {};
  return { attempts, lastResult, isDelivered: deliveredAt !== null, isPending: nextAttemptAt !== null };
}

/** Verifies a webhook as merchants do, and returns its message. */
function verified({ headers, body }: ReceivedWebhook, secret = firstKey): unknown {
  return new Webhook(formatSigningSecret(secret)).verify(body, headers as Record<string, string>);
}

test('the pauses after failed attempts are 5 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h', () => {
  const seconds = Array.from({ length: 10 }, (_, index) => retryPauseSeconds(index + 1));
  expect(seconds).toEqual([5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400, undefined]);
});

test('an event is delivered once, with its order, signed according to Standard Webhooks', async () => {
  const { merchantId, receiver } = await newMerchant();
  const eventId = await storeEvent(merchantId);
  startDelivery();
  const delivered = { attempts: 1, lastResult: 'HTTP 204', isDelivered: true, isPending: false };
  await expect.poll(() => stateOf(merchantId)).toEqual(delivered);
  const [request, ...others] = receiver.received as [ReceivedWebhook];
  expect(others).toEqual([]);
  expect(request).toMatchObject({
    method: 'POST',
    path: '/hook',
    headers: { 'content-type': 'application/json', 'webhook-id': eventId, 'user-agent': 'order-gateway-webhooks' },
  });
  expect(verified(request)).toEqual({
    id: eventId,
    type: 'order.cancelled',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/),
    data: expect.objectContaining({ order_id: 'WEB-2026-000417', order_status: 'CANCELLED', order_amount: 1_249.5 }),
  });
  expect(request.body).not.toContain('noor.vanderlinden');
  expect(() => verified(request, secondKey)).toThrow();
});

test('a failed attempt is repeated after its scheduled pause, with the same id and a valid signature', async () => {
  const { merchantId, receiver } = await newMerchant(respondWith(500, 302, 404));
  await storeEvent(merchantId);
  const failedAttempts: number[] = [];
  startDelivery((attempt) => {
    failedAttempts.push(attempt);
    return attempt < 3 ? 0 : 3_600;
  });
  const secondsToNext = async () => {
    const [row] = await database.sql`select extract(epoch from next_attempt_at - now())::float as seconds
      from webhook_deliveries where merchant_id = ${merchantId}`;
    return row?.seconds;
  };
  await expect.poll(secondsToNext).toBeGreaterThan(3_000);
  expect([failedAttempts, receiver.received.length]).toEqual([[1, 2, 3], 3]);
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  for (const request of receiver.received) verified(request);
});

test('a delivery succeeds with a later attempt if earlier ones fail', async () => {
  const { merchantId } = await newMerchant(respondWith(500, 302, 204));
  await storeEvent(merchantId);
  startDelivery();
  await expect.poll(() => stateOf(merchantId)).toMatchObject({ attempts: 3, isDelivered: true, isPending: false });
});

test('claims that fail are logged once, and webhooks are sent as soon as claims succeed again', async () => {
  const { merchantId, receiver } = await newMerchant();
  const eventId = await storeEvent(merchantId);
  const deliveries = openWebhookDeliveries(database.options);
  let claims = 0;
  const claim: typeof deliveries.claim = async (filter) => {
    claims += 1;
    if (claims <= 5 || claims === 7) throw new Error('the table is distributed');
    return deliveries.claim(filter);
  };
  const { errors } = startDelivery(undefined, undefined, { ...deliveries, claim });
  await expect.poll(() => receiver.received.map(({ headers }) => headers['webhook-id'])).toEqual([eventId]);
  expect(claims).toBeGreaterThanOrEqual(8);
  expect(errors.splice(0).map(({ msg }) => msg)).toEqual(['due webhooks could not be read']);
});

test('a delivery is given up after its last attempt', async () => {
  const { merchantId, receiver } = await newMerchant(respondWith(503));
  await storeEvent(merchantId);
  startDelivery((attempt) => (attempt < 2 ? 0 : undefined));
  const givenUp = { attempts: 2, lastResult: 'HTTP 503', isDelivered: false, isPending: false };
  await expect.poll(() => stateOf(merchantId)).toEqual(givenUp);
  expect(receiver.received).toHaveLength(2);
});

test('the delay of an event is measured unless its endpoint fails or the event is redelivered', async () => {
  const [working, failing] = [await newMerchant(), await newMerchant(respondWith(500))];
  const record = vi.fn();
  const meter: Meter = Object.create(createNoopMeter(), { createHistogram: { value: () => ({ record }) } });
  startDelivery(() => undefined, undefined, undefined, meter);
  for (const { merchantId, endpointId, receiver } of [working, failing]) {
    const eventId = await storeEvent(merchantId);
    await expect.poll(() => stateOf(merchantId)).toMatchObject({ isPending: false });
    await endpoints.redeliver(merchantId, endpointId, eventId);
    await expect.poll(() => receiver.received.length).toBe(2);
  }
  await storeEvent(failing.merchantId);
  await expect.poll(() => failing.receiver.received.length).toBe(3);
  // One for each event whose endpoint was working.
  expect(record).toHaveBeenCalledTimes(2);
});

test('nothing is sent if the signing secret was stored with another key, which is an error of the gateway', async () => {
  const { merchantId, endpointId, receiver } = await newMerchant();
  const otherKey = createSigningSecrets([new Uint8Array(32).fill(8)]);
  await endpoints.remove(merchantId, endpointId);
  await endpoints.create(merchantId, { url: receiver.url, signingSecret: otherKey.encrypt(merchantId, firstKey) });
  await storeEvent(merchantId);
  const { errors } = startDelivery(() => undefined);
  const lastResult = 'the signing secret was stored with another SECRETS_KEY';
  await expect.poll(() => stateOf(merchantId)).toMatchObject({ attempts: 0, lastResult, isPending: true });
  expect(errors.splice(0)).toMatchObject([{ msg: 'webhook', merchant_id: merchantId, result: lastResult }]);
  expect(receiver.connections()).toBe(0);
  expect(await endpoints.list(merchantId)).toMatchObject([{ failingSince: null }]);
});

test('an orderly stop lets attempts in flight finish', async () => {
  const { promise: received, resolve: receive } = Promise.withResolvers<ServerResponse>();
  const { merchantId } = await newMerchant((_, response) => receive(response));
  await storeEvent(merchantId);
  const delivery = startDelivery();
  const response = await received;
  const closed = delivery.close();
  response.writeHead(200).end();
  await closed;
  expect(await stateOf(merchantId)).toMatchObject({ isDelivered: true });
});

test('a stop cuts off attempts that take too long, and records no result for them', async () => {
  const { promise: received, resolve: receive } = Promise.withResolvers<ServerResponse>();
  const { merchantId, receiver } = await newMerchant((_, response) => receive(response));
  await storeEvent(merchantId);
  const delivery = startDelivery();
  const connectionClosed = once(await received, 'close');
  await delivery.close();
  await connectionClosed;
  expect(await stateOf(merchantId)).toMatchObject({ attempts: 1, lastResult: null, isDelivered: false });
  expect(receiver.received).toHaveLength(1);
});

test('endpoints that hang or fail do not delay other endpoints, and hanging ones get few concurrent attempts', async () => {
  const hanging = await Promise.all(Array.from({ length: 8 }, () => newMerchant(() => {})));
  const failing = await Promise.all(Array.from({ length: 4 }, () => newMerchant(respondWith(500))));
  const healthy = await Promise.all(Array.from({ length: 8 }, () => newMerchant()));
  const all = [...hanging, ...failing, ...healthy].map(({ merchantId }) => merchantId);
  // More events than an endpoint may have attempts in flight.
  const eventsPerMerchant = webhookLimits.perEndpoint + 4;
  await storeEvents(database.sql, all, eventsPerMerchant);
  // No hanging attempt ends during the test. On a busy machine, an attempt can fail at a healthy endpoint too.
  startDelivery(() => 1, 600_000);
  const eventsOf = ({ received }: WebhookReceiver) =>
    new Set(received.map(({ headers }) => headers['webhook-id'])).size;
  await expect
    .poll(() => healthy.map(({ receiver }) => eventsOf(receiver)))
    .toEqual(healthy.map(() => eventsPerMerchant));
  for (const { receiver } of hanging) {
    expect(receiver.received.length).toBeLessThanOrEqual(webhookLimits.perEndpoint);
  }
});

test('failing endpoints get only a part of the attempts in flight, regardless of their number', async () => {
  const hanging = await runWebhookReceiver({ respond: () => {} });
  const failing = await createMerchantsWithOrder(database.url, database.sql, webhookLimits.failingAttemptsMax + 20);
  await database.sql`insert into webhook_endpoints (merchant_id, endpoint_id, url, signing_secret, failing_since)
    select id, 'we_' || id, ${hanging.url}, '', now() from unnest(${[...failing]}::bigint[]) id`;
  for (const merchantId of failing) {
    const signingSecret = secrets.encrypt(merchantId, firstKey);
    await database.sql`update webhook_endpoints set signing_secret = ${signingSecret} where merchant_id = ${merchantId}`;
  }
  await storeEvents(database.sql, failing, 2);
  const { merchantId, receiver } = await newMerchant();
  startDelivery(() => 3_600);
  await expect.poll(() => hanging.received.length).toBe(webhookLimits.failingAttemptsMax);
  await storeEvents(database.sql, [merchantId], 20);
  await expect.poll(() => receiver.received.length).toBe(20);
  expect(hanging.received.length).toBe(webhookLimits.failingAttemptsMax);
});

test('an endpoint with a slow attempt in flight gets no other attempt', async () => {
  const { merchantId, receiver } = await newMerchant(() => {});
  const other = await newMerchant();
  await storeEvent(merchantId);
  startDelivery(() => 3_600);
  await expect.poll(() => receiver.received.length).toBe(1);
  await sleep(webhookLimits.slowAfterMs * 1.2);
  // Both deliveries become due at the same time, so that one claim takes both.
  await storeEvents(database.sql, [merchantId, other.merchantId], 1);
  await expect.poll(() => other.receiver.received.length).toBe(1);
  expect(receiver.received.length).toBe(1);
});
