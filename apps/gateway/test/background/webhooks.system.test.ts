import { setTimeout as sleep } from 'node:timers/promises';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { afterAll, expect, test } from 'vitest';
import { endProcesses, newDatabase, startOnNewDatabase, startProcess } from '../helpers/gateway-process.ts';
import { giveSigningSecret, testSecretsKeyText } from '../helpers/running-gateway.ts';
import { cancelNewOrder, createOrder } from '../helpers/send-order.ts';
import { type ReceivedWebhook, runWebhookReceiver } from '../helpers/webhook-receiver.ts';

afterAll(endProcesses);

const orderIdOf = ({ body }: ReceivedWebhook): string => JSON.parse(body).data.order_id;

test('no delivery is lost if the gateway is killed with kill -9', async () => {
  const { databaseUrl, credentials } = await newDatabase();
  const receiver = await runWebhookReceiver({
    // The pause is long enough to kill the gateway while an attempt is in flight.
    respond: (_, response) => void setTimeout(() => response.writeHead(204).end(), 20),
  });
  await giveSigningSecret(databaseUrl, credentials.clientId, receiver.url);
  const variables = { SECRETS_KEY: testSecretsKeyText, WEBHOOK_ALLOW_PRIVATE: '1' };
  const start = () => startProcess({ DATABASE_URL: databaseUrl, ...variables });
  const orderIds = [0, 30].map((delayMs) => `killed-after-${delayMs}`);
  for (const orderId of orderIds) {
    const gateway = await start();
    await cancelNewOrder({ url: gateway.url, credentials }, orderId);
    await sleep(Number(orderId.split('-').at(-1)));
    gateway.child.kill('SIGKILL');
    await gateway.exited;
  }
  // Ends the leases of the killed processes.
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

test('with DATABASE_URL but without SECRETS_KEY, the gateway runs and logs that it sends no webhooks', async () => {
  const gateway = await startOnNewDatabase();
  expect((await createOrder(gateway, 'no-key')).order_status).toBe('UN_PAID');
  expect(gateway.lines.join('\n')).toContain(
    '"msg":"SECRETS_KEY is not set: no webhooks are sent, and returns are not signed"',
  );
});
