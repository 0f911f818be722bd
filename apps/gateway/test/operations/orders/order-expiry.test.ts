import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { useGateway } from '../../helpers/running-gateway.ts';
import { callJson, postOrder } from '../../helpers/send-order.ts';

// Behaviour of orders with an expiry that no fixture shows.

const lateDays = 7;
const gateway = useGateway({ lateDays });

const ahead = (ms: number) => new Date(Date.now() + ms).toISOString();
const hourMs = 3_600_000;

async function create(overrides: Record<string, unknown>) {
  const response = await postOrder(gateway, validOrderInput(overrides));
  return { status: response.status, body: Object(await response.json()) };
}

const find = async (orderId: string) => (await callJson(gateway, 'GET', `/order/${orderId}`)).body;

const expireIn = (seconds: number, orderId: string) =>
  runQuery(
    gateway.databaseUrl,
    `update orders set order_expires_at = now() + interval '${seconds} s' where order_id = '${orderId}'`,
  );

test('an order is replayed even after its expiry, but conflicts with a different expiry', async () => {
  await create({ order_id: 'again', order_expires_at: ahead(hourMs) });
  await expireIn(-10, 'again');
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

test('an order past its expiry is shown as expired immediately, and is soon stored as expired, with one event', async () => {
  const { body } = await create({ order_id: 'ended', order_expires_at: ahead(hourMs) });
  await expireIn(0, 'ended');
  expect((await callJson(gateway, 'GET', `/payment/${body.order_token}`)).body.order_status).toBe('EXPIRED');
  const events = () => runQuery(gateway.databaseUrl, "select type from events where order_id = 'ended'");
  await expect.poll(events).toEqual([{ type: 'order.expired' }]);
  const stored = await runQuery(gateway.databaseUrl, "select order_status from orders where order_id = 'ended'");
  expect(stored).toEqual([{ order_status: 'EXPIRED' }]);
});

test('the record and the event of an expired order say until when a payment can be reported', async () => {
  await create({ order_id: 'kept', order_expires_at: ahead(hourMs) });
  expect(await find('kept')).not.toHaveProperty('payable_until');
  await expireIn(0, 'kept');
  // The gateway reads the setting of the checkout system after its start.
  await expect
    .poll(async () => {
      const { payable_until, order_expires_at } = await find('kept');
      return Date.parse(payable_until) - Date.parse(order_expires_at);
    })
    .toBe(lateDays * 24 * hourMs);
  const { body: feed } = await callJson(gateway, 'GET', '/events');
  const { payable_until } = await find('kept');
  expect(feed.events).toContainEqual(
    expect.objectContaining({
      type: 'order.expired',
      data: expect.objectContaining({ order_id: 'kept', payable_until }),
    }),
  );
});
