import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AccountId } from '@order-gateway/domain/accounts';
import { useTestDatabase } from '@order-gateway/postgres/testing/test-database';
import { createMerchantsWithOrder, storeEvents } from '@order-gateway/postgres/testing/webhook-events';
import { openWebhookEndpoints } from '@order-gateway/postgres/webhooks';
import { afterAll, expect, test } from 'vitest';
import { createSigningSecrets } from '../../src/runtime/secrets/signing-secrets.ts';
import { endProcesses, sampleMemory, startProcess } from '../helpers/gateway-process.ts';
import { testSecretsKey, testSecretsKeyText } from '../helpers/running-gateway.ts';
import { runWebhookReceiver } from '../helpers/webhook-receiver.ts';

const database = useTestDatabase();
afterAll(endProcesses);

const events = 10_000;
const kinds = { hanging: 30, failing: 20, healthy: 50 };
/** The interval between statements, each of which stores an event of every merchant. */
const storeEveryMs = 250;

test('99 % of events reach 50 healthy endpoints within 2 s, while 30 endpoints hang and 20 return 500', async () => {
  const { sql } = database;
  const merchantIds = await createMerchantsWithOrder(database.url, sql, 100);
  const kindOf = new Map(
    merchantIds.map((merchantId, index): [AccountId, keyof typeof kinds] => [
      merchantId,
      index % 10 < 3 ? 'hanging' : index % 10 < 5 ? 'failing' : 'healthy',
    ]),
  );
  const responders: Record<keyof typeof kinds, (response: ServerResponse) => void> = {
    hanging: () => {},
    failing: (response) => void response.writeHead(500).end(),
    healthy: (response) => void response.writeHead(204).end(),
  };
  const receiver = await runWebhookReceiver({
    respond: ({ path }, response) => responders[path.slice(1).split('-')[0] as keyof typeof kinds](response),
  });
  const endpoints = openWebhookEndpoints(database.options);
  const secrets = createSigningSecrets([testSecretsKey]);
  for (const [merchantId, kind] of kindOf) {
    const url = new URL(`/${kind}-${merchantId}`, receiver.url).href;
    await endpoints.create(merchantId, { url, signingSecret: secrets.encrypt(merchantId, new Uint8Array(32)) });
  }
  await endpoints.close();
  const gateway = await startProcess({
    DATABASE_URL: database.url,
    SECRETS_KEY: testSecretsKeyText,
    WEBHOOK_ALLOW_PRIVATE: '1',
  });

  const memory = sampleMemory(gateway.child, 500);
  const storedAtMs = new Map<string, number>();
  for (let stored = 0; stored < events; stored += merchantIds.length) {
    const startedAtMs = performance.now();
    for (const eventId of await storeEvents(sql, merchantIds, 1)) storedAtMs.set(eventId, startedAtMs);
    await sleep(Math.max(0, storeEveryMs - (performance.now() - startedAtMs)));
  }
  const healthyEvents = (events * kinds.healthy) / 100;
  const pending = async () => {
    const [row] = await sql`
      select count(*)::int as count from webhook_deliveries d join webhook_endpoints e using (merchant_id)
        where e.url like '%/healthy-%' and d.delivered_at is null`;
    return row?.count;
  };
  await expect.poll(pending, { interval: 500 }).toBe(0);

  const healthy = receiver.received.filter(({ path }) => path.startsWith('/healthy-'));
  const waits = healthy
    .map(({ headers, receivedMs }) => receivedMs - (storedAtMs.get(String(headers['webhook-id'])) ?? 0))
    .sort((a, b) => a - b);
  const percentile = (share: number) => Math.round(waits[Math.ceil(waits.length * share) - 1] ?? 0);
  const attemptsAt = (kind: string) => receiver.received.filter(({ path }) => path.startsWith(`/${kind}-`)).length;
  const [early, late] = [memory.slice(0, memory.length / 2), memory.slice(memory.length / 2)].map((half) =>
    Math.max(...half),
  );
  process.stdout.write(
    `${healthy.length} healthy deliveries: p50 ${percentile(0.5)} ms, ` +
      `p99 ${percentile(0.99)} ms, max ${percentile(1)} ms; ` +
      `attempts at hanging endpoints ${attemptsAt('hanging')}, at failing ones ${attemptsAt('failing')}; ` +
      `memory at most ${early} MiB in the first half, ${late} MiB in the second\n`,
  );
  expect(new Set(healthy.map(({ headers }) => headers['webhook-id'])).size).toBe(healthyEvents);
  expect(percentile(0.99)).toBeLessThan(2_000);
  expect(late).toBeLessThan((early ?? 0) * 1.3);
});
