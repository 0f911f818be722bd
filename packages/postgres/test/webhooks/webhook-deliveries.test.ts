import type { AccountId } from '@order-gateway/domain/accounts';
import { afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  type ClaimedDelivery,
  type ClaimFilter,
  type EndpointKey,
  endpointKeyOf,
  openWebhookDeliveries,
  type WebhookDeliveries,
  type WebhookHealth,
} from '../../src/webhooks/webhook-deliveries.ts';
import { openWebhookEndpoints } from '../../src/webhooks/webhook-endpoints.ts';
import { useTestDatabase } from '../../testing/test-database.ts';
import { createMerchantsWithOrder, storeEvents } from '../../testing/webhook-events.ts';

const database = useTestDatabase();
let deliveries: WebhookDeliveries;

const tables = ['webhook_deliveries', 'events', 'orders'];

// The tables get no statistics. If PostgreSQL knew that there are so few orders, it would read all of them for a claim.
beforeAll(async () => {
  for (const table of tables) await database.sql.unsafe(`alter table ${table} set (autovacuum_enabled = false)`);
});

beforeEach(() => {
  deliveries = openWebhookDeliveries(database.options);
});

afterEach(async () => {
  await deliveries.close();
  // A delivery that is pending after one test must not be claimed in the next.
  await database.sql`update webhook_deliveries set next_attempt_at = null`;
});

const [firstSecret, secondSecret] = [Uint8Array.of(1), Uint8Array.of(2)] as const;
const url = 'https://shop.example/hook';

const endpoints = () => {
  const opened = openWebhookEndpoints(database.options);
  onTestFinished(() => opened.close());
  return opened;
};

/** Creates merchants, each with an endpoint and events that are due. */
async function merchantsWithEvents(count: number, eventsPerMerchant: number): Promise<AccountId[]> {
  const merchantIds = await createMerchantsWithOrder(database.url, database.sql, count);
  const admin = endpoints();
  for (const merchantId of merchantIds) await admin.create(merchantId, { url, signingSecret: firstSecret });
  await storeEvents(database.sql, merchantIds, eventsPerMerchant);
  return merchantIds;
}

/** Sets the URL of a merchant's oldest endpoint, and enables it. */
async function setUrl(merchantId: AccountId, newUrl: string): Promise<void> {
  const admin = endpoints();
  const [oldest] = await admin.list(merchantId);
  await admin.update(merchantId, oldest?.endpointId ?? '', { url: newUrl, status: 'enabled' });
}

function claimRound(filter: Partial<ClaimFilter> = {}, queue = deliveries) {
  return queue.claim({
    failing: false,
    perEndpoint: 4,
    inFlight: new Map(),
    limit: 100,
    ...filter,
  });
}

async function claim(filter: Partial<ClaimFilter> = {}, queue = deliveries) {
  return (await claimRound(filter, queue)).deliveries;
}

/** Returns the oldest endpoint of a merchant. */
async function endpointOf(merchantId: AccountId): Promise<EndpointKey> {
  const [endpoint] = await endpoints().list(merchantId);
  if (endpoint === undefined) throw new Error('there is no endpoint');
  return { merchantId, endpointId: endpoint.endpointId };
}

/** Returns the number of deliveries of each merchant. */
function countsOf(claimed: readonly ClaimedDelivery[]): Record<number, number> {
  const groups = Map.groupBy(claimed, ({ merchantId }) => merchantId);
  return Object.fromEntries([...groups].map(([merchantId, group]) => [merchantId, group.length]));
}

async function rowOf({ merchantId, event }: ClaimedDelivery) {
  const [row] = await database.sql`
    select attempts, last_result, delivered_at is not null as is_delivered,
      extract(epoch from next_attempt_at - now())::float as due_in
    from webhook_deliveries where merchant_id = ${merchantId} and event_id = ${event.eventId}`;
  return row;
}

/**
 * Returns a function for the pause of a delivery in seconds, from a time before it began: never less than the pause.
 */
async function startTiming() {
  const [{ now } = {}] = await database.sql`select clock_timestamp()::text as now`;
  return async ({ merchantId, event }: ClaimedDelivery): Promise<number> => {
    const [row] = await database.sql`
      select extract(epoch from next_attempt_at - ${now}::timestamptz)::float as seconds
      from webhook_deliveries where merchant_id = ${merchantId} and event_id = ${event.eventId}`;
    return row?.seconds;
  };
}

async function onlyDelivery(claimed: Promise<readonly ClaimedDelivery[]>): Promise<ClaimedDelivery> {
  const [delivery, ...others] = await claimed;
  if (delivery === undefined || others.length > 0) throw new Error('not exactly one delivery');
  return delivery;
}

/** Makes all pending deliveries due. The time is earlier than now(), because now() may be rounded up. */
const passTime = () =>
  database.sql`update webhook_deliveries set next_attempt_at = now() - interval '1 s' where next_attempt_at is not null`;

test('a claimed delivery has its event, its order and its endpoint, and belongs to its process until the lease ends', async () => {
  const [merchantId] = await merchantsWithEvents(1, 1);
  const pauseOf = await startTiming();
  const delivery = await onlyDelivery(claim());
  expect(delivery).toMatchObject({
    merchantId,
    mode: 'live',
    attempt: 1,
    event: { type: 'order.cancelled', order: { merchantId, orderStatus: 'CANCELLED' } },
    endpoint: { url, signingSecrets: [Buffer.from(firstSecret)] },
  });
  expect(delivery.event.eventId).toMatch(/^evt_[0-9a-f]{32}$/);
  expect(Math.abs(delivery.event.createdAtMs - Date.now())).toBeLessThan(60_000);
  expect(await claim()).toEqual([]);
  // The lease is longer than the 15 s of an attempt. If a process is killed, its delivery is repeated in less than a
  // minute.
  expect(await pauseOf(delivery)).toBeGreaterThan(16);
  expect((await rowOf(delivery))?.due_in).toBeLessThan(30);
});

test('the deliveries of one event to two endpoints are claimed and recorded separately', async () => {
  const [merchantId] = (await createMerchantsWithOrder(database.url, database.sql, 1)) as [AccountId];
  const admin = endpoints();
  const [goneId, otherId] = [
    await admin.create(merchantId, { url, signingSecret: firstSecret }),
    await admin.create(merchantId, { url, signingSecret: secondSecret }),
  ];
  await storeEvents(database.sql, [merchantId], 1);
  const claimed = await claim();
  expect(claimed.map(({ endpointId }) => endpointId).toSorted()).toEqual([goneId, otherId].toSorted());
  const failed = claimed.find(({ endpointId }) => endpointId === goneId);
  if (failed === undefined) throw new Error('the delivery was not claimed');
  await deliveries.record(failed, { kind: 'endpoint_gone', text: 'HTTP 410' });
  const states = await database.sql`select endpoint_id, last_result, disabled_at is not null as is_disabled
    from webhook_deliveries join webhook_endpoints using (merchant_id, endpoint_id) where merchant_id = ${merchantId}`;
  expect(Object.fromEntries(states.map((row) => [row.endpoint_id, [row.last_result, row.is_disabled]]))).toEqual({
    [`${goneId}`]: ['HTTP 410', true],
    [`${otherId}`]: [null, false],
  });
});

test('a delivery that is not due is not claimed', async () => {
  const [merchantId] = await merchantsWithEvents(1, 2);
  const [later] = await database.sql`update webhook_deliveries set next_attempt_at = now() + interval '1 hour'
    where event_id = (select min(event_id) from webhook_deliveries where merchant_id = ${merchantId ?? 0}) returning event_id`;
  expect((await onlyDelivery(claim())).event.eventId).not.toBe(later?.event_id);
});

test('an endpoint has no more deliveries in flight than allowed, including those of earlier claims', async () => {
  const [busy, idle] = (await merchantsWithEvents(2, 10)) as [AccountId, AccountId];
  expect(countsOf(await claim({ inFlight: new Map([[endpointKeyOf(await endpointOf(busy)), 3]]) }))).toEqual({
    [busy]: 1,
    [idle]: 4,
  });
  expect(countsOf(await claim({ inFlight: new Map([[endpointKeyOf(await endpointOf(busy)), 5]]) }))).toEqual({
    [idle]: 4,
  });
});

test('a claim starts after the last endpoint of the previous one, if that reached its limit, and is done once it started at the first endpoint', async () => {
  const [a, b, c] = (await merchantsWithEvents(3, 4)) as [AccountId, AccountId, AccountId];
  const next = async () => {
    const { deliveries, isDone } = await claimRound({ limit: 5 });
    return [countsOf(deliveries), isDone];
  };
  expect(await next()).toEqual([{ [a]: 4, [b]: 1 }, false]);
  expect(await next()).toEqual([{ [c]: 4 }, false]);
  expect(await next()).toEqual([{ [b]: 3 }, true]);
});

test('processes that claim at the same time share the deliveries, and no delivery is claimed twice', async () => {
  await merchantsWithEvents(20, 20);
  const processes = Array.from({ length: 4 }, () => openWebhookDeliveries(database.options));
  onTestFinished(async () => {
    await Promise.all(processes.map((process) => process.close()));
  });
  const claimed: ClaimedDelivery[] = [];
  for (let round = 0; round < 30; round += 1) {
    const all = await Promise.all(processes.map((process) => claim({ limit: 7 }, process)));
    claimed.push(...all.flat());
  }
  while (claimed.length < 400) claimed.push(...(await claim({ perEndpoint: 20, limit: 400 })));
  expect(new Set(claimed.map(({ event }) => event.eventId)).size).toBe(400);
  expect(claimed).toHaveLength(400);
  expect(await claim()).toEqual([]);
});

test('a claim does not wait for a delivery that another session has locked', async () => {
  await merchantsWithEvents(1, 2);
  await database.sql.begin(async (session) => {
    const [locked] = await session`select event_id from webhook_deliveries
      where next_attempt_at is not null order by next_attempt_at limit 1 for update`;
    expect((await onlyDelivery(claim())).event.eventId).not.toBe(locked?.event_id);
  });
});

test('a successful delivery is stored with its result, and no further attempt follows', async () => {
  await merchantsWithEvents(1, 1);
  const delivery = await onlyDelivery(claim());
  await deliveries.record(delivery, { kind: 'delivered', text: 'HTTP 204' });
  expect(await rowOf(delivery)).toEqual({ attempts: 1, last_result: 'HTTP 204', is_delivered: true, due_in: null });
});

test('a failed attempt is repeated after its pause, and its endpoint counts as failing until an attempt succeeds', async () => {
  const [merchantId] = await merchantsWithEvents(1, 1);
  const isFailing = async () =>
    (await database.sql`select failing_since from webhook_endpoints where merchant_id = ${merchantId ?? 0}`)[0]
      ?.failing_since !== null;
  const failed = await onlyDelivery(claim());
  const pauseOf = await startTiming();
  await deliveries.record(failed, { kind: 'retry', afterSeconds: 300, text: 'HTTP 500' });
  const row = await rowOf(failed);
  expect(row).toMatchObject({ attempts: 1, last_result: 'HTTP 500', is_delivered: false });
  expect(await pauseOf(failed)).toBeGreaterThan(299);
  expect(row?.due_in).toBeLessThanOrEqual(300);
  expect(await isFailing()).toBe(true);
  await passTime();
  expect(await claim()).toEqual([]);
  const secondAttempt = await onlyDelivery(claim({ failing: true }));
  expect(secondAttempt.attempt).toBe(2);
  await deliveries.record(secondAttempt, { kind: 'delivered', text: 'HTTP 200' });
  expect(await isFailing()).toBe(false);
});

test('results that are recorded at the same time are all stored', async () => {
  const merchantIds = await merchantsWithEvents(3, 10);
  const claimed = await claim({ perEndpoint: 10 });
  await Promise.all(
    claimed.map((delivery) =>
      delivery.merchantId === merchantIds[1]
        ? deliveries.record(delivery, { kind: 'retry', afterSeconds: 60, text: 'HTTP 500 "\\' })
        : deliveries.record(delivery, { kind: 'delivered', text: 'HTTP 200' }),
    ),
  );
  const [counts] = await database.sql`select count(delivered_at)::int as delivered,
    count(*) filter (where last_result = 'HTTP 500 "\\')::int as failed from webhook_deliveries
    where merchant_id = any(${merchantIds as number[]})`;
  expect(counts).toEqual({ delivered: 20, failed: 10 });
});

test('a delivery that is given up is not claimed again', async () => {
  await merchantsWithEvents(1, 1);
  const delivery = await onlyDelivery(claim());
  await deliveries.record(delivery, { kind: 'given_up', text: 'HTTP 500' });
  await passTime();
  expect(await claim({ failing: true })).toEqual([]);
  expect(await rowOf(delivery)).toEqual({ attempts: 1, last_result: 'HTTP 500', is_delivered: false, due_in: null });
});

test('an endpoint that is gone is disabled, and its pending deliveries are claimed without an endpoint, to be given up', async () => {
  const [merchantId] = await merchantsWithEvents(1, 6);
  const [gone] = await claim();
  if (gone === undefined) throw new Error('nothing was claimed');
  await deliveries.record(gone, { kind: 'endpoint_gone', text: 'HTTP 410' });
  await passTime();
  expect(await claim()).toEqual([]);
  // The limit per endpoint does not apply here, because nothing is sent.
  const rest = await claim({ failing: true, perEndpoint: 1 });
  expect(rest.map(({ endpoint }) => endpoint)).toEqual(Array.from({ length: 5 }));
  await setUrl(merchantId as AccountId, url);
  await passTime();
  expect((await claim())[0]?.endpoint?.url).toBe(url);
});

test('an endpoint that is gone stays disabled after any outcome of the attempts in flight', async () => {
  const [merchantId] = await merchantsWithEvents(1, 3);
  const [gone, delivered, failed] = await claim();
  if (gone === undefined || delivered === undefined || failed === undefined) throw new Error('too few were claimed');
  await deliveries.record(gone, { kind: 'endpoint_gone', text: 'HTTP 410' });
  await deliveries.record(delivered, { kind: 'delivered', text: 'HTTP 200' });
  await deliveries.record(failed, { kind: 'retry', afterSeconds: 5, text: 'HTTP 500' });
  expect(
    await database.sql`select disabled_at is not null as is_disabled from webhook_endpoints
      where merchant_id = ${merchantId ?? 0}`,
  ).toEqual([{ is_disabled: true }]);
  expect(await rowOf(delivered)).toMatchObject({ last_result: 'HTTP 200', is_delivered: true });
});

test('a result from the previous URL does not affect the new one', async () => {
  const [merchantId] = await merchantsWithEvents(1, 1);
  const delivery = await onlyDelivery(claim());
  await setUrl(merchantId as AccountId, `${url}/new`);
  await deliveries.record(delivery, { kind: 'endpoint_gone', text: 'HTTP 410' });
  expect(
    await database.sql`select disabled_at, failing_since from webhook_endpoints where merchant_id = ${merchantId ?? 0}`,
  ).toEqual([{ disabled_at: null, failing_since: null }]);
});

test('the result of a claim changes nothing once the delivery has been claimed again', async () => {
  await merchantsWithEvents(1, 1);
  const late = await onlyDelivery(claim());
  await passTime();
  const pauseOf = await startTiming();
  const current = await onlyDelivery(claim());
  await deliveries.record(late, { kind: 'given_up', text: 'late' });
  expect(await rowOf(current)).toMatchObject({ attempts: 2, last_result: null });
  expect(await pauseOf(current)).toBeGreaterThan(16);
});

test('for a day after a rotation, a delivery has both secrets', async () => {
  const [merchantId] = (await merchantsWithEvents(1, 1)) as [AccountId];
  const { endpointId } = await endpointOf(merchantId);
  expect(await endpoints().rotate(merchantId, endpointId, secondSecret)).toBe(true);
  const secrets = async () => {
    await passTime();
    return (await onlyDelivery(claim())).endpoint?.signingSecrets.map((secret) => [...secret]);
  };
  expect(await secrets()).toEqual([[2], [1]]);
  await database.sql`update webhook_endpoints set previous_ends_at = previous_ends_at - interval '23 hours 59 minutes'`;
  expect(await secrets()).toEqual([[2], [1]]);
  await database.sql`update webhook_endpoints set previous_ends_at = previous_ends_at - interval '2 minutes'`;
  expect(await secrets()).toEqual([[2]]);
});

test('the oldest due delivery to a working endpoint is overdue, and enabled endpoints are counted as working or failing', async () => {
  const before = (await deliveries.readHealth()) as WebhookHealth;
  expect(before.overdueSeconds).toBe(0);
  const [works, fails, disabled] = (await merchantsWithEvents(3, 1)) as [AccountId, AccountId, AccountId];
  // The clock of a virtual machine can differ by microseconds between its processors.
  await database.sql`update webhook_deliveries set next_attempt_at = now() - interval '91 seconds'
    where merchant_id = ${works}`;
  expect((await deliveries.readHealth())?.overdueSeconds).toBeGreaterThanOrEqual(90);
  await database.sql`update webhook_deliveries set next_attempt_at = now() - interval '9 days'
    where merchant_id <> ${works} and next_attempt_at is not null`;
  await database.sql`update webhook_deliveries set next_attempt_at = null where merchant_id = ${works}`;
  await database.sql`update webhook_endpoints set failing_since = now() where merchant_id in ${database.sql([fails, disabled])}`;
  await database.sql`update webhook_endpoints set disabled_at = now() where merchant_id = ${disabled}`;
  expect(await deliveries.readHealth()).toEqual({
    overdueSeconds: 0,
    working: before.working + 1,
    failing: before.failing + 1,
  });
});

test('an attempt that was not sent is not counted, and the endpoint keeps working', async () => {
  const [merchantId] = (await merchantsWithEvents(1, 1)) as [AccountId];
  const [delivery] = (await claim()) as [ClaimedDelivery];
  await deliveries.record(delivery, { kind: 'not_sent', afterSeconds: 0, text: 'not sent' });
  expect(await endpoints().list(merchantId)).toMatchObject([{ failingSince: null }]);
  expect(await claim()).toMatchObject([{ merchantId, attempt: 1 }]);
});

test('while the database is unreachable, nothing is claimed, and the overdue time is unknown', async () => {
  const unreachable = openWebhookDeliveries({ url: 'postgres://u:p@127.0.0.1:1/x' });
  onTestFinished(() => unreachable.close());
  expect(await claim({}, unreachable)).toEqual([]);
  expect(await unreachable.readHealth()).toBeUndefined();
});

test('a claim reads few rows, regardless of the number of deliveries, events and orders of its merchant', async () => {
  const [busy, other] = (await merchantsWithEvents(2, 1)) as [AccountId, AccountId];
  await database.sql`
    insert into orders select (o).* from (
      select jsonb_populate_record(orders, jsonb_build_object('order_id', n, 'service_order_id', n, 'order_token', n)) o
      from orders cross join generate_series(1, 5000) n where merchant_id = ${busy}) made`;
  await storeEvents(database.sql, [busy], 4);
  const readRows = async () => {
    // The counts of a session are complete once it has ended.
    await deliveries.close();
    deliveries = openWebhookDeliveries(database.options);
    await database.sql`select pg_stat_force_next_flush()`;
    const rows =
      await database.sql`select relname, (seq_tup_read + idx_tup_fetch)::int as count from pg_stat_user_tables
      where relname = any(${tables})`;
    return new Map(rows.map(({ relname, count }) => [relname, count]));
  };
  const sessions = () => database.sql`select from pg_stat_activity where application_name = 'order-gateway webhooks'
    and datname = current_database()`;
  await deliveries.close();
  await expect.poll(sessions).toEqual([]);
  const before = await readRows();
  const claimed = await claim();
  await deliveries.close();
  await expect.poll(sessions).toEqual([]);
  const after = await readRows();
  expect(countsOf(claimed)).toEqual({ [busy]: 4, [other]: 1 });
  for (const table of tables) expect((after.get(table) ?? 0) - (before.get(table) ?? 0), table).toBeLessThan(200);
});
