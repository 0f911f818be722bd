import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { describe, expect, test } from 'vitest';
import { eventWatchLimits } from '../../../src/limits.ts';
import { runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { callJson, cancelNewOrder, createOrder } from '../../helpers/send-order.ts';

// Behaviour of ListEvents that no fixture shows.

const gateway = useGateway();

const getEvents = (query: Record<string, string> = {}) =>
  callJson(gateway, 'GET', `/events?${new URLSearchParams(query)}`);

const idsOf = (body: { events: { data: { order_id: string } }[] }) => body.events.map(({ data }) => data.order_id);

test('a page has a cursor to continue from, even before the first event', async () => {
  const { body: none } = await getEvents();
  expect(none).toStrictEqual({ events: [], next_cursor: expect.any(String) });
  for (const orderId of ['first', 'second']) await cancelNewOrder(gateway, orderId);
  const { body: seen } = await getEvents({ cursor: none.next_cursor });
  expect(idsOf(seen)).toEqual(['first', 'second']);
  const { next_cursor } = seen;
  expect((await getEvents({ cursor: next_cursor })).body).toStrictEqual({ events: [], next_cursor });
  await cancelNewOrder(gateway, 'third');
  expect(idsOf((await getEvents({ cursor: next_cursor })).body)).toEqual(['third']);
});

describe('Prefer: wait', () => {
  const waitFor = (seconds: number, query: Record<string, string>) =>
    callJson(gateway, 'GET', `/events?${new URLSearchParams(query)}`, undefined, { prefer: `wait=${seconds}` });
  const endOfFeed = async () => {
    let cursor = '';
    for (;;) {
      const { body } = await getEvents({ limit: '100', ...(cursor && { cursor }) });
      if (body.events.length === 0) return body.next_cursor;
      cursor = body.next_cursor;
    }
  };

  test('waits for an event of this process, but not for one that a filter excludes', async () => {
    await createOrder(gateway, 'waited-for');
    const unfiltered = waitFor(20, { cursor: await endOfFeed() });
    const filtered = waitFor(20, { order_id: 'waited-for' });
    await cancelNewOrder(gateway, 'not-waited-for');
    expect(idsOf((await unfiltered).body)).toEqual(['not-waited-for']);
    await callJson(gateway, 'POST', '/order/waited-for/cancel');
    const { body, headers } = await filtered;
    expect(idsOf(body)).toEqual(['waited-for']);
    expect(headers.get('preference-applied')).toBe('wait=20');
  });

  test('waits for an event of another process', async () => {
    const waiting = waitFor(60, { cursor: await endOfFeed() });
    await runQuery(
      gateway.databaseUrl,
      `insert into events select merchant_id, 'evt_' || repeat('b', 32), null, 'order.paid', now(), order_id
        from orders where order_id = 'first'`,
    );
    const { body, headers } = await waiting;
    expect(idsOf(body)).toEqual(['first']);
    expect(headers.get('preference-applied')).toBe('wait=20');
  });

  test('returns an empty page after the wait, or immediately if the merchant has too many waiting calls', async () => {
    const cursor = await endOfFeed();
    const { status, body, headers } = await waitFor(1, { cursor });
    const empty = { events: [], next_cursor: cursor };
    expect([status, body, headers.get('preference-applied')]).toEqual([200, empty, 'wait=1']);

    const pages: Awaited<ReturnType<typeof waitFor>>[] = [];
    const tooMany = 20;
    const calls = Array.from({ length: eventWatchLimits.waitersPerMerchant + tooMany }, async () =>
      pages.push(await waitFor(20, { cursor })),
    );
    await expect.poll(() => pages.length).toBe(tooMany);
    for (const page of pages) expect([page.body, page.headers.get('preference-applied')]).toEqual([empty, null]);
    await cancelNewOrder(gateway, 'ends-the-wait');
    await Promise.all(calls);
    for (const page of pages.slice(tooMany)) expect(idsOf(page.body)).toEqual(['ends-the-wait']);
  });

  test('returns no events if the secret of the call was revoked during the wait', async () => {
    const merchant = await gateway.newMerchant();
    const { accounts, credentials, url } = merchant;
    await createOrder(merchant, 'paid-later');
    const added = await accounts.addSecret(credentials.clientId, null);
    const clientSecret = 'clientSecret' in added ? added.clientSecret : '';
    const list = (headers?: Record<string, string>) => callJson(merchant, 'GET', '/events', undefined, headers);
    const waiting = list({ prefer: 'wait=20' });
    const [secret] = (await accounts.listSecrets(credentials.clientId)) ?? [];
    await accounts.endSecret(credentials.clientId, secret?.id ?? 0, null);
    await expect.poll(async () => (await list()).status).toBe(401);
    await callJson({ url, credentials: { ...credentials, clientSecret } }, 'POST', '/order/paid-later/cancel');
    expect((await waiting).body.code).toBe('unauthenticated');
  });

  test('returns a page when the gateway stops', async () => {
    const { credentials, url, close } = await runGateway();
    const waiting = callJson({ url, credentials }, 'GET', '/events', undefined, { prefer: 'wait=20' });
    await callJson({ url, credentials }, 'GET', '/events');
    await close();
    expect((await waiting).body.events).toEqual([]);
  });
});
