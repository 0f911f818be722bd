import postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { useGateway } from './running-gateway.ts';
import { callJson, createOrder } from './send-order.ts';

// What the fixtures of ListEvents do not show.

const gateway = useGateway();

async function cancelNew(orderId: string) {
  await createOrder(gateway, orderId);
  await callJson(gateway, 'POST', `/order/${orderId}/cancel`);
}

/** The feed waits for every transaction that runs on the server, those of other tests included. */
const getEvents = (query: Record<string, string> = {}) =>
  callJson(gateway, 'GET', `/events?${new URLSearchParams(query)}`);

const idsOf = (body: { events: { data: { order_id: string } }[] }) => body.events.map(({ data }) => data.order_id);

test('has a cursor from which to go on, also where it has nothing yet', async () => {
  const { body: none } = await getEvents();
  expect(none).toStrictEqual({ events: [], next_cursor: expect.any(String) });
  for (const orderId of ['first', 'second']) await cancelNew(orderId);
  const seen = async () => (await getEvents({ cursor: none.next_cursor })).body;
  await expect.poll(async () => idsOf(await seen())).toEqual(['first', 'second']);
  const { next_cursor } = await seen();
  expect((await getEvents({ cursor: next_cursor })).body).toStrictEqual({ events: [], next_cursor });
  await cancelNew('third');
  const later = async () => idsOf((await getEvents({ cursor: next_cursor })).body);
  await expect.poll(later).toEqual(['third']);
});

test('rejects a cursor with a number beyond those of transactions', async () => {
  const { status, body } = await getEvents({ cursor: Buffer.from('18446744073709551616.').toString('base64url') });
  expect([status, body.code, body.errors[0].field]).toEqual([400, 'invalid_request', 'cursor']);
});

test('a client that polls misses no event, although transactions end in another order than they began', async () => {
  await createOrder(gateway, 'slow');
  await expect.poll(async () => (await getEvents({ limit: '100' })).body.events.length).toBe(3);
  const { body: before } = await getEvents({ limit: '100' });
  const slow = postgres(gateway.databaseUrl, { max: 1 });
  onTestFinished(() => slow.end());
  await slow.unsafe(`begin; insert into events
    select min(id), pg_current_xact_id(), 'evt_' || repeat('a', 32), 'order.paid', now(), 'slow' from merchants`);
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
  await slow.unsafe('commit');
  await expect.poll(poll).toEqual(['slow', 'fast']);
});
