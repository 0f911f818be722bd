import { helpTextsOf } from '@order-gateway/command';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { program as checkout } from '../../src/cli/checkout.ts';
import { program as merchant } from '../../src/cli/merchant.ts';
import { program as migrate } from '../../src/cli/migrate.ts';
import { program as orders } from '../../src/cli/orders.ts';
import { runCommand } from '../helpers/run-command.ts';
import { giveSigningSecret, testSecretsKeyText, useGateway } from '../helpers/running-gateway.ts';
import { createOrder, postPayment } from '../helpers/send-order.ts';
import { startWebhookReceiver } from '../helpers/webhook-receiver.ts';
import { brokenFacts } from './facts.ts';

const gateway = useGateway();

/** Returns the paths of all members of a JSON value, such as `endpoints[].url`. */
function keysOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => keysOf(item, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const fullKey = path === '' ? key : `${path}.${key}`;
    return [fullKey, ...keysOf(member, fullKey)];
  });
}

const variables = () => ({
  DATABASE_URL: gateway.databaseUrl,
  SECRETS_KEY: testSecretsKeyText,
  WEBHOOK_ALLOW_PRIVATE: '1',
});

test('commands with --json still print every key of the last release', async () => {
  const receiver = await startWebhookReceiver({
    respond: ({ body }, response) => void response.writeHead(body.includes('ORDER-2') ? 500 : 204).end(),
  });
  const { clientId } = gateway.credentials;
  await giveSigningSecret(gateway.databaseUrl, clientId, receiver.url);
  const paid = await createOrder(gateway, 'ORDER-1');
  for (const payment_id of ['first', 'second']) await postPayment(gateway.checkout, paid.order_token, { payment_id });
  const failing = await createOrder(gateway, 'ORDER-2');
  await postPayment(gateway.checkout, failing.order_token, { payment_id: 'third' });
  const deliveries = ['webhook', 'deliveries', clientId, '--json'];
  const attempts = async () => (await runCommand(merchant, deliveries, variables())).stdout;
  await expect.poll(attempts).toMatch(/"delivered_at".*"next_attempt_at"|"next_attempt_at".*"delivered_at"/);
  const commands: readonly (readonly [Command, ...string[]])[] = [
    [merchant, 'create', '--name', 'Shop', '--test'],
    [merchant, 'list'],
    [merchant, 'secret', 'add', clientId],
    [merchant, 'secret', 'list', clientId],
    [merchant, 'brand', clientId, '--color', '#0b5fff'],
    [merchant, 'webhook', 'deliveries', clientId],
    [merchant, 'webhook', 'remove', clientId],
    [merchant, 'webhook', 'set', clientId, receiver.url],
    [merchant, 'webhook', 'show', clientId],
    [merchant, 'webhook', 'rotate', clientId],
    [merchant, 'webhook', 'test', clientId],
    [merchant, 'log'],
    [checkout, 'create', '--name', 'Checkout'],
    [orders, 'show', 'ORDER-1'],
    [orders, 'refused'],
    [orders, 'erase', clientId, 'ORDER-1'],
  ];
  const facts: string[] = [];
  for (const [program, ...args] of commands) {
    const { code, stdout, stderr } = await runCommand(program, [...args, '--json'], variables());
    expect([args, code, stderr.replace(/^Database: .*\n/, '')]).toEqual([args, 0, '']);
    const name = [program.name(), ...args.filter((argument) => /^[a-z]+$/.test(argument))].slice(0, 3).join(' ');
    for (const line of stdout.trim().split('\n')) {
      if (line !== '') facts.push(...keysOf(JSON.parse(line)).map((key) => `${name}: ${key}`));
    }
  }
  await receiver.close();
  expect(await brokenFacts('commands', facts)).toEqual([]);
});

test('programs still have every command and option of the last release', async () => {
  const facts = [merchant, checkout, orders, migrate]
    .flatMap((program) => helpTextsOf(program))
    .flatMap(([name, text]) => [
      name,
      ...[...text.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)].map(([, option]) => `${name} ${option}`),
    ]);
  expect(facts.length).toBeGreaterThan(40);
  expect(await brokenFacts('options', facts)).toEqual([]);
});
