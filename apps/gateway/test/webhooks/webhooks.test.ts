import { setTimeout as sleep } from 'node:timers/promises';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { afterAll, expect, test } from 'vitest';
import { endProcesses, newDatabase, startOnNewDatabase, startProcess } from '../helpers/gateway-process.ts';
import { giveSigningSecret, testSecretsKey } from '../helpers/running-gateway.ts';
import { cancelNewOrder, createOrder } from '../helpers/send-order.ts';
import { type ReceivedWebhook, runWebhookReceiver } from '../helpers/webhook-receiver.ts';

afterAll(endProcesses);

const variables = { SECRETS_KEY: Buffer.from(testSecretsKey).toString('base64'), WEBHOOK_ALLOW_PRIVATE: '1' };

function orderIdOf({ body }: ReceivedWebhook): string {
  return JSON.parse(body).data.order_id;
}

test('a delivery survives kill -9 of the gateway at any step', async () => {
  const { databaseUrl, credentials } = await newDatabase();
  const receiver = await runWebhookReceiver({
    // Long enough for a kill while an attempt is in flight.
    respond: (_, response) => void setTimeout(() => response.writeHead(204).end(), 20),
  });
  await giveSigningSecret(databaseUrl, credentials.clientId, receiver.url);
  const start = () => startProcess({ DATABASE_URL: databaseUrl, ...variables });
  const orderIds = [0, 30].map((delayMs) => `killed-after-${delayMs}`);
  for (const orderId of orderIds) {
    const gateway = await start();
    await cancelNewOrder({ url: gateway.url, credentials }, orderId);
    await sleep(Number(orderId.split('-').at(-1)));
    gateway.child.kill('SIGKILL');
    await gateway.exited;
  }
  // The leases of the killed processes end.
  await runQuery(
    databaseUrl,
    `update webhook_deliveries set next_attempt_at = now() where next_attempt_at is not null`,
  );
  await start();
  const pending = () => runQuery(databaseUrl, 'select 1 from webhook_deliveries where delivered_at is null');
  await expect.poll(pending).toEqual([]);
  expect([...new Set(receiver.received.map(orderIdOf))].sort()).toEqual(orderIds.sort());
  const ids = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
  expect(ids.size).toBe(orderIds.length);
});

test('with DATABASE_URL and without SECRETS_KEY the gateway runs, and reports that no webhooks are sent', async () => {
  const gateway = await startOnNewDatabase();
  expect((await createOrder(gateway, 'no-key')).order_status).toBe('UN_PAID');
  expect(gateway.lines.join('\n')).toContain(
    '"msg":"SECRETS_KEY is not set: no webhooks are sent, and returns are not signed"',
  );
});
