import { OrderService, OrderStatus } from '@gateway/contract/gateway/v1/order_service_pb';
import { checksumOf } from '@gateway/domain/order-checksum';
import { validOrderFields, validOrderInput } from '@gateway/domain/testing/sample-orders';
import { openMerchantAccounts } from '@gateway/postgres/merchant-admin';
import { runQuery } from '@gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { rpcClients, rpcErrorOf } from './rpc-clients.ts';
import { useGateway } from './running-gateway.ts';
import { credentialHeaders, orderMessage, postOrder } from './send-order.ts';

const gateway = useGateway();

const own = () => credentialHeaders(gateway.credentials);
const ahead = (ms: number) => new Date(Date.now() + ms).toISOString();
const hourMs = 3_600_000;

async function create(overrides: Record<string, unknown>) {
  const response = await postOrder(gateway, validOrderInput(overrides));
  return { status: response.status, body: Object(await response.json()) };
}

async function find(orderId: string) {
  return Object(await (await fetch(`${gateway.url}/order/${orderId}`, { headers: own() })).json());
}

const moveEnd = (orderId: string, seconds: number) =>
  runQuery(
    gateway.databaseUrl,
    `update orders set order_expires_at = now() + interval '${seconds} s' where order_id = '${orderId}'`,
  );

test('an order has the end that was sent, over every protocol; the creation still answers six fields', async () => {
  const end = ahead(hourMs);
  const { status, body } = await create({ order_id: 'json', order_expires_at: end });
  expect([status, Object.keys(body)]).toEqual([
    201,
    ['service_order_id', 'created_at', 'order_id', 'order_status', 'order_token', 'payment_link'],
  ]);
  expect((await find('json')).order_expires_at).toBe(end.replace('Z', '+00:00'));
  for (const [index, { name, client }] of rpcClients(OrderService, gateway).entries()) {
    const message = { ...orderMessage(`rpc-${index}`), orderExpiresAt: end };
    await client.createOrder(message, { headers: own() });
    expect((await find(`rpc-${index}`)).order_expires_at, name).toBe(end.replace('Z', '+00:00'));
    const rejected = client.createOrder({ ...message, orderId: 'x', orderExpiresAt: 'soon' }, { headers: own() });
    expect(await rpcErrorOf(rejected), name).toMatchObject({ violations: ['order_expires_at bad_format'] });
  }
});

test.each([
  ['soon', 'bad_format'],
  ['2026-11-20T21:01:42', 'bad_format'],
  [1_795_208_502, 'wrong_type'],
  [ahead(50_000), 'out_of_range'],
  [ahead(367 * 24 * hourMs), 'out_of_range'],
  ['2020-01-01T00:00:00Z', 'out_of_range'],
])('rejects the end %j as %s', async (order_expires_at, code) => {
  const { status, body } = await create({ order_id: 'rejected', order_expires_at });
  expect([status, body.errors]).toMatchObject([400, [{ field: 'order_expires_at', code }]]);
});

test('a wrong end is listed after the other invalid fields', async () => {
  const { body } = await create({ order_id: '', order_expires_at: 7 });
  expect(body.errors.map(({ field }: { field: string }) => field)).toEqual(['order_id', 'order_expires_at']);
});

test('an order that is sent again is replayed after its end too; another end is a conflict', async () => {
  const end = ahead(hourMs);
  await create({ order_id: 'again', order_expires_at: end });
  expect((await create({ order_id: 'again', order_expires_at: end.replace('Z', '+00:00') })).status).toBe(200);
  expect((await create({ order_id: 'again' })).status).toBe(200);
  expect(await create({ order_id: 'again', order_expires_at: ahead(2 * hourMs) })).toMatchObject({
    status: 409,
    body: { code: 'order_id_conflict', fields: ['order_expires_at'] },
  });
  await moveEnd('again', -10);
  const { order_expires_at } = await find('again');
  expect(await create({ order_id: 'again', order_expires_at })).toMatchObject({
    status: 200,
    body: { order_status: 'EXPIRED' },
  });
  expect(await create({ order_id: 'again', order_expires_at: '2020-01-01T00:00:00Z' })).toMatchObject({ status: 409 });
  expect(await create({ order_id: 'again', order_note: 'Other', order_expires_at })).toMatchObject({
    status: 409,
    body: { fields: ['order_note'] },
  });
});

test('the end is no part of the checksum', async () => {
  const fields = validOrderFields({ order_id: 'checked' });
  const order_checksum = checksumOf(fields, gateway.credentials.clientSecret);
  expect((await create({ order_id: 'checked', order_checksum, order_expires_at: ahead(hourMs) })).status).toBe(201);
});

test("without an end the merchant's lifetime applies to new orders", async () => {
  const accounts = openMerchantAccounts({ url: gateway.databaseUrl });
  const { clientId } = gateway.credentials;
  try {
    expect(await accounts.setDefaultLifetime(clientId, 3_600)).toBe('done');
    await expect
      .poll(async () => {
        const orderId = `lived-${performance.now()}`;
        const { body } = await create({ order_id: orderId });
        const { order_expires_at = 0 } = await find(orderId);
        return Date.parse(order_expires_at) - Date.parse(body.created_at);
      })
      .toBe(hourMs);
    expect(await accounts.setDefaultLifetime(clientId, null)).toBe('done');
  } finally {
    await accounts.close();
  }
});

test('an order is expired everywhere at once, and soon also in the table, with one event', async () => {
  const { body } = await create({ order_id: 'ended', order_expires_at: ahead(hourMs) });
  await moveEnd('ended', 0);
  expect((await find('ended')).order_status).toBe('EXPIRED');
  const page = await fetch(`${gateway.url}/payment/${body.order_token}`, { headers: { accept: 'application/json' } });
  expect(Object(await page.json()).order_status).toBe('EXPIRED');
  const list = await fetch(`${gateway.url}/orders?status=EXPIRED`, { headers: own() });
  expect(Object(await list.json()).orders.map(({ order_id }: { order_id: string }) => order_id)).toContain('ended');
  for (const { name, client } of rpcClients(OrderService, gateway)) {
    const order = { case: 'orderId', value: 'ended' } as const;
    expect(await client.getOrder({ order }, { headers: own() }), name).toMatchObject({
      orderStatus: OrderStatus.EXPIRED,
    });
  }
  const events = () => runQuery(gateway.databaseUrl, "select type from events where order_id = 'ended'");
  await expect.poll(events, { timeout: 30_000 }).toEqual([{ type: 'order.expired' }]);
  const stored = await runQuery(gateway.databaseUrl, "select order_status from orders where order_id = 'ended'");
  expect(stored).toEqual([{ order_status: 'EXPIRED' }]);
  const endedEvents = async () => {
    const feed = await fetch(`${gateway.url}/events?limit=100`, { headers: own() });
    const listed: { data: { order_id: string } }[] = Object(await feed.json()).events;
    return listed.filter(({ data }) => data.order_id === 'ended');
  };
  const expired = [{ type: 'order.expired', data: { order_status: 'EXPIRED' } }];
  await expect.poll(endedEvents, { timeout: 30_000 }).toMatchObject(expired);
});
