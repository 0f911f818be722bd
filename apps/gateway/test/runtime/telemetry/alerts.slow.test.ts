import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '@order-gateway/dev-postgres';
import { startTestServer } from '@order-gateway/dev-postgres/testing';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { createMerchant } from '@order-gateway/postgres/accounts';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import postgres from 'postgres';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { runProxy } from '../../../../../tools/proxies.ts';
import { missing, mustSkip } from '../../../../../tools/skip-if-missing.ts';
import { readText, temporaryFolder } from '../../../../../tools/test-resources.ts';
import { endLater, endProcesses, startProcess } from '../../helpers/gateway-process.ts';
import { giveSigningSecret } from '../../helpers/running-gateway.ts';
import { credentialHeaders, postOrder } from '../../helpers/send-order.ts';

const monitoring = join(import.meta.dirname, '../../../../../deploy/monitoring');

const cannotRun = mustSkip('alerts of a real Prometheus', missing('prometheus') ?? missing('haproxy'));

afterEach(endProcesses);

/**
 * Runs Prometheus with the files of deploy/, but scrapes every second, and fires alerts after two seconds. Returns a
 * function that gets the names of the firing alerts.
 */
async function startPrometheus(target: string): Promise<() => Promise<string[]>> {
  const folder = await temporaryFolder();
  const [port] = await freePorts(1);
  const [config, alerts] = await Promise.all(
    ['prometheus.yml', 'alerts.yml'].map((name) => readFile(join(monitoring, name), 'utf8')),
  );
  const seconds = 'scrape_interval: 1s\n  evaluation_interval: 1s';
  await writeFile(
    join(folder, 'prometheus.yml'),
    (config ?? '').replace('scrape_interval: 15s', seconds).replace('127.0.0.1:9464', target),
  );
  // alerts.test.yml tests how long a cause must last before its alert fires.
  await writeFile(join(folder, 'alerts.yml'), (alerts ?? '').replaceAll(/for: \d+m/g, 'for: 2s'));
  const args = ['--config.file', 'prometheus.yml', '--storage.tsdb.path', 'data'];
  const child = spawn('prometheus', [...args, '--web.listen-address', `127.0.0.1:${port}`], { cwd: folder });
  child.stdout.resume();
  const output = readText(child.stderr);
  endLater(child);
  onTestFinished(async () => {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  });
  return async () => {
    if (child.exitCode !== null) throw new Error(`prometheus ended: ${output()}`);
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`).catch(() => undefined);
    if (!response?.ok) return ['Prometheus is not ready'];
    const { data } = (await response.json()) as {
      data: { alerts: { state: string; labels: { alertname: string } }[] };
    };
    return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
  };
}

test.skipIf(cannotRun)(
  'behind HAProxy, the alerts fire for a bug, for late webhooks and for a stopped database',
  async () => {
    const server = await startTestServer();
    let isDown = false;
    onTestFinished(async () => void (isDown || (await server.stop())));
    const { url: databaseUrl } = await server.createDatabase(migrateDatabase);
    const credentials = await createMerchant(databaseUrl, 'Shop');
    await giveSigningSecret(databaseUrl, credentials.clientId, 'https://shop.example.com');
    // Without SECRETS_KEY, the gateway delivers no webhooks.
    const gateway = await startProcess({ DATABASE_URL: databaseUrl });
    const [http = 0, grpc = 0] = await freePorts(2);
    const ports = { http: gateway.httpPort, grpc: gateway.grpcPort };
    await runProxy('haproxy', { http, grpc, gateways: [ports, ports] });
    const url = `http://127.0.0.1:${http}`;
    const create = (orderId: string) => postOrder({ url, credentials }, validOrderInput({ order_id: orderId }));
    await expect.poll(async () => (await create('first').catch(() => undefined))?.status).toBeLessThan(300);
    const firing = await startPrometheus(new URL(gateway.metricsUrl).host);
    await expect.poll(firing).toEqual([]);

    const sql = postgres(databaseUrl, { max: 1, onnotice() {} });
    await sql.unsafe(`
    create function fail() returns trigger language plpgsql as $$ begin raise exception 'a bug'; end $$;
    create trigger fail before insert on orders for each row when (new.order_id = 'bug') execute function fail()`);
    expect((await create('bug')).status).toBe(500);
    await expect.poll(firing, { timeout: 60_000 }).toContain('GatewayBug');

    await fetch(`${url}/order/first/cancel`, { method: 'POST', headers: credentialHeaders(credentials) });
    await sql`update webhook_deliveries set next_attempt_at = now() - interval '2 minutes'`;
    await expect.poll(firing, { timeout: 60_000 }).toContain('GatewayWebhooksLate');
    await sql.end();

    isDown = true;
    await server.stop();
    await expect.poll(async () => (await create('late')).status).toBe(503);
    await expect.poll(firing, { timeout: 60_000 }).toContain('GatewayNotReady');
    process.stderr.write(`firing with the database down behind HAProxy: ${await firing()}\n`);
  },
);
