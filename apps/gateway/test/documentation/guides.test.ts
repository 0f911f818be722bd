import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { missing, mustSkip } from '../../../../tools/skip-if-missing.ts';
import { waitLimitMs } from '../../../../tools/test-limits.ts';
import { useGateway } from '../helpers/running-gateway.ts';
import { callJson, createOrder } from '../helpers/send-order.ts';

const repository = join(import.meta.dirname, '../../../..');

const gateway = useGateway();

/**
 * Returns the first shell command of a guide for each of these beginnings. Replaces the gateway's address, and the
 * placeholders that are keys of `values`.
 */
async function commandsOf(
  guide: string,
  beginnings: readonly string[],
  values: Readonly<Record<string, string>>,
): Promise<string> {
  const page = await readFile(join(repository, 'docs', guide), 'utf8');
  const lines = [...page.matchAll(/^ *```sh\n(.*?)^ *```$/gms)].flatMap(([, code = '']) =>
    code
      .replaceAll('\\\n', '')
      .split('\n')
      .map((line) => line.trim()),
  );
  const commands = beginnings.map((beginning) => {
    const command = lines.find((line) => line.startsWith(beginning));
    if (command === undefined) throw new Error(`${guide} has no command that begins with ${beginning}`);
    return command;
  });
  return Object.entries({ 'http://localhost:8080': gateway.url, $BASE_URL: gateway.url, ...values }).reduce(
    (text, [placeholder, value]) => text.replaceAll(placeholder, value),
    commands.join('\n'),
  );
}

async function shell(script: string): Promise<string> {
  return (await promisify(execFile)('sh', ['-c', script], { cwd: repository, timeout: waitLimitMs })).stdout;
}

/** Returns the merchant's credentials, by the placeholders of the guides. */
const merchant = () => ({
  '<APP_ID>': gateway.credentials.clientId,
  '<SECRET_KEY>': gateway.credentials.clientSecret,
});

describe.skipIf(mustSkip('the commands of the guides', missing('curl')))('the commands of', () => {
  test('docs/checkout.md pay an order and show its event', async () => {
    const { order_token } = await createOrder(gateway, 'guide');
    const { clientId, clientSecret } = gateway.checkout.credentials;
    const values = { '<CLIENT_ID>': clientId, '<CLIENT_SECRET>': clientSecret, '<ORDER_TOKEN>': order_token };
    const [pay, events] = await Promise.all([
      commandsOf('checkout.md', ['BASE_URL='], values),
      commandsOf('checkout.md', ['curl http://localhost:8080/events'], merchant()),
    ]);
    expect(await shell(pay)).toMatch(/^Paid\. The customer returns to /);
    expect(await shell(events)).toContain('order.paid');
  });

  test('docs/go-live.md replace the first secret, and create and ping an endpoint', async () => {
    const { clientId, clientSecret } = (await gateway.newMerchant()).credentials;
    const call = async (beginning: string, id = '') => {
      const values = { $CLIENT_ID: clientId, $CLIENT_SECRET: clientSecret, '{id}': id };
      return JSON.parse(await shell(await commandsOf('go-live.md', ['call()', beginning], values)));
    };
    const { client_secret } = await call('call -X POST $BASE_URL/client_secrets');
    const { secrets } = await call('call $BASE_URL/client_secrets');
    expect(secrets).toHaveLength(2);
    const endpoint = await call('call -X POST $BASE_URL/webhook_endpoints -H');
    expect(endpoint).toMatchObject({ signing_secret: expect.stringMatching(/^whsec_/), status: 'enabled' });
    expect(await call('call -X POST $BASE_URL/webhook_endpoints/{id}/ping', endpoint.id)).toHaveProperty('delivered');
    expect(await call('call -X POST $BASE_URL/client_secrets/{id}/revoke', secrets[0].id)).toHaveProperty('ends_at');
    const replaced = { url: gateway.url, credentials: { clientId, clientSecret: client_secret } };
    expect((await callJson(replaced, 'GET', '/client_secrets')).status).toBe(200);
  });
});
