import { once } from 'node:events';
import { connect } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { startWebhookReceiver } from '../src/webhooks/receiver.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const timestamp = '2026-11-20T21:01:42.172+00:00';

const event = { id: 'evt_1', type: 'order.paid', timestamp, data: { order_id: 'a' } };

/** Starts a receiver, and returns it with a function that sends a webhook and returns the status. */
async function startReceiver(addedMembers?: readonly string[]) {
  const receiver = await startWebhookReceiver(addedMembers);
  onTestFinished(() => receiver.close());
  receiver.trust(1, secret);
  const send = async (body: string, { id = 'evt_1', key = secret, merchant = 1 } = {}) => {
    const now = new Date();
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
      'webhook-signature': new Webhook(key).sign(id, now, body),
    };
    return (await fetch(receiver.url(merchant), { method: 'POST', headers, body })).status;
  };
  return { receiver, send };
}

test('only events with a valid signature are recorded, and copies of an event are counted', async () => {
  const { receiver, send } = await startReceiver();
  const body = JSON.stringify(event);
  expect(await send(body)).toBe(204);
  expect(await send(body)).toBe(204);
  const recorded = [['evt_1', { orderId: 'a', type: 'order.paid', body, copies: 2 }]];
  expect([...receiver.deliveries]).toEqual(recorded);

  expect(await send(body, { key: `whsec_${Buffer.alloc(32, 8).toString('base64')}` })).toBe(400);
  expect(await send(body, { merchant: 2 })).toBe(400);
  expect(await send(body, { id: 'evt_2' })).toBe(400);
  expect(await send(JSON.stringify({ ...event, type: 'order.lost' }))).toBe(400);
  expect(await send(JSON.stringify({ ...event, timestamp: 'now' }))).toBe(400);
  expect(await send(JSON.stringify({ ...event, data: { order_id: 'b' } }))).toBe(400);
  expect(receiver.rejected).toHaveLength(6);
  expect([...receiver.deliveries]).toEqual(recorded);
});

test('a webhook whose connection ends early is neither recorded nor rejected', async () => {
  const { receiver, send } = await startReceiver();
  const { hostname, port, pathname } = new URL(receiver.url(1));
  const socket = connect(Number(port), hostname);
  socket.write(`POST ${pathname} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: 9\r\nexpect: 100-continue\r\n\r\n{`);
  // The server answers with 100 when it has read the head.
  await once(socket, 'data');
  socket.resetAndDestroy();
  await once(socket, 'close');
  expect(await send(JSON.stringify(event))).toBe(204);
  expect([receiver.deliveries.size, receiver.rejected]).toEqual([1, []]);
});

test('a version that does not know a member may omit it from an event, but may change no value', async () => {
  const { receiver, send } = await startReceiver(['added']);
  const order = { order_id: 'a', paid_at: timestamp };
  const body = (data: object) => JSON.stringify({ ...event, data: { ...order, ...data } });
  expect(await send(body({ items: [{ id: 1, added: 2 }] }))).toBe(204);
  expect(await send(body({ items: [{ id: 1 }] }))).toBe(204);
  const changed = [
    { items: [{ id: 1, added: 3 }] },
    { items: [{ id: 2 }] },
    { items: [{ id: 1 }], paid_at: undefined },
    { items: [{ id: 1 }], more: 4 },
    { items: [{ id: 1 }, {}] },
  ];
  for (const data of changed) expect([data, await send(body(data))]).toEqual([data, 400]);
  expect(receiver.rejected[0]).toContain('different body');
  expect(receiver.deliveries.get('evt_1')?.copies).toBe(2);
});
