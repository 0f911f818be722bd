import { validOrderInput } from '@gateway/domain/testing/sample-orders';
import { createMerchant } from '@gateway/postgres/merchant-admin';
import { runQuery } from '@gateway/postgres/testing/run-query';
import postgres from 'postgres';
import { expect, test } from 'vitest';
import { useGateway } from './running-gateway.ts';
import { credentialHeaders, postOrder } from './send-order.ts';

const gateway = useGateway();

const own = () => credentialHeaders(gateway.credentials);

async function cancelNew(orderId: string) {
  await (await postOrder(gateway, validOrderInput({ order_id: orderId }))).text();
  const response = await fetch(`${gateway.url}/order/${orderId}/cancel`, { method: 'POST', headers: own() });
  return Object(await response.json());
}

/** The feed waits for every transaction that runs on the server, those of other tests included. */
const feedTimeout = { timeout: 30_000 };

async function getEvents(query: Record<string, string> = {}, headers = own()) {
  const response = await fetch(`${gateway.url}/events?${new URLSearchParams(query)}`, { headers });
  return { status: response.status, body: Object(await response.json()) };
}

const idsOf = (body: { events: { data: { order_id: string } }[] }) => body.events.map(({ data }) => data.order_id);

test('lists events oldest first, with the order record, and a cursor from which to go on', async () => {
  const { body: none } = await getEvents();
  expect(none).toStrictEqual({ events: [], next_cursor: expect.any(String) });
  const records = [];
  for (const orderId of ['first', 'second', 'third']) records.push(await cancelNew(orderId));

  const countEvents = async () => (await getEvents({ cursor: none.next_cursor })).body.events.length;
  await expect.poll(countEvents, feedTimeout).toBe(3);
  const { body } = await getEvents({ cursor: none.next_cursor });
  expect(body.events).toStrictEqual(
    records.map((data) => ({
      id: expect.stringMatching(/^evt_[0-9a-f]{32}$/),
      type: 'order.cancelled',
      timestamp: expect.stringMatching(/^\d{4}-.*\+00:00$/),
      data,
    })),
  );
  const { body: one } = await getEvents({ limit: '1' });
  const { body: rest } = await getEvents({ cursor: one.next_cursor });
  expect([...idsOf(one), ...idsOf(rest)]).toEqual(['first', 'second', 'third']);
  expect((await getEvents({ cursor: rest.next_cursor })).body).toStrictEqual({
    events: [],
    next_cursor: rest.next_cursor,
  });
  await cancelNew('fourth');
  const later = async () => idsOf((await getEvents({ cursor: rest.next_cursor })).body);
  await expect.poll(later, feedTimeout).toEqual(['fourth']);
});

test('shows a merchant only its own events', async () => {
  const other = credentialHeaders(await createMerchant(gateway.databaseUrl, 'Other Shop'));
  expect((await getEvents({}, other)).body.events).toEqual([]);
});

test.each<[Record<string, string>, string]>([
  [{ limit: '0' }, 'limit'],
  [{ cursor: 'garbage' }, 'cursor'],
  [{ cursor: Buffer.from('18446744073709551616.').toString('base64url') }, 'cursor'],
])('rejects %j', async (query, field) => {
  const { status, body } = await getEvents(query);
  expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_request', field]);
});

test('a client that polls misses no event, although transactions end in another order than they began', async () => {
  await (await postOrder(gateway, validOrderInput({ order_id: 'slow' }))).text();
  await expect.poll(async () => (await getEvents({ limit: '100' })).body.events.length, feedTimeout).toBe(4);
  const { body: before } = await getEvents({ limit: '100' });
  const slow = postgres(gateway.databaseUrl, { max: 1 });
  const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
  const [{ id: merchantId } = { id: 0 }] = await runQuery(
    gateway.databaseUrl,
    'select min(id)::int as id from merchants',
  );
  const { promise: isWritten, resolve: written } = Promise.withResolvers<void>();
  const transaction = slow.begin(async (sql) => {
    await sql`insert into events select ${merchantId}, pg_current_xact_id(), 'evt_' || repeat('a', 32), 'order.paid', now(), 'slow'`;
    written();
    await mayCommit;
  });
  await isWritten;
  await cancelNew('fast');
  const seen: string[] = [];
  let { next_cursor: cursor } = before;
  const poll = async () => {
    const { body } = await getEvents({ cursor });
    seen.push(...idsOf(body));
    cursor = body.next_cursor;
    return seen;
  };
  await poll();
  // The later event waits for the transaction that began before it.
  expect(seen).toEqual([]);
  commit();
  await transaction;
  await slow.end();
  await expect.poll(poll, feedTimeout).toEqual(['slow', 'fast']);
});
