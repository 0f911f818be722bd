import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AccountId } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { endpointsMax, formatSigningSecret } from '@order-gateway/domain/webhooks';
import { openAccountAdmin } from '@order-gateway/postgres/accounts';
import { useTestDatabase } from '@order-gateway/postgres/testing/test-database';
import { createMerchantsWithOrder, storeEvents } from '@order-gateway/postgres/testing/webhook-events';
import { StartError } from '@order-gateway/runtime/process';
import { CommanderError } from 'commander';
import { Webhook } from 'standardwebhooks';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { addBrandCommand } from '../../src/cli/merchant/brand-command.ts';
import { merchantCommands } from '../../src/cli/merchant/merchant-commands.ts';
import { addWebhookCommands } from '../../src/cli/merchant/webhook-commands.ts';
import { program } from '../../src/cli/merchant.ts';
import { type OpenOperator, openOperator } from '../../src/cli/operator.ts';
import { createSigningSecrets } from '../../src/runtime/secrets/signing-secrets.ts';
import { pngOf } from '../helpers/images.ts';
import { runCommand } from '../helpers/run-command.ts';
import { type ReceivedWebhook, runWebhookReceiver } from '../helpers/webhook-receiver.ts';

const database = useTestDatabase();
let merchantId: AccountId;
let clientId: string;
beforeAll(async () => {
  [merchantId] = (await createMerchantsWithOrder(database.url, database.sql, 1)) as [AccountId];
  const [row] = await database.sql`select client_id from accounts where id = ${merchantId}`;
  clientId = row?.client_id;
});

const key = {
  signingSecrets: createSigningSecrets([new Uint8Array(32).fill(1)]),
  webhookAddresses: 'public',
  baseUrl: () => 'https://pay.example' as BaseUrl,
} as const;
const anyAddress = { ...key, webhookAddresses: 'any' } as const;
const secretFormat = /whsec_[0-9A-Za-z+/]{43}=/;

/** Runs `merchant` in this process. `error` is the message it reports. */
async function merchant(args: readonly string[], settings: Parameters<typeof openOperator>[1] = key) {
  const lines: string[] = [];
  let error = '';
  const print = (line: string) => lines.push(line);
  const program = merchantCommands(async () => {}, print)
    .exitOverride()
    .configureOutput({
      writeErr(text) {
        error += text;
      },
    });
  const withOperator: OpenOperator = async (work, actor) => {
    await using operator = openOperator(database.url, settings, actor);
    await work(operator);
  };
  addBrandCommand(program, withOperator, print);
  addWebhookCommands(program, withOperator, print);
  try {
    await program.parseAsync(args, { from: 'user' });
  } catch (thrown) {
    if (thrown instanceof StartError) error = thrown.message;
    else if (!(thrown instanceof CommanderError)) throw thrown;
  }
  return { output: lines.join('\n'), error };
}

const webhook = (args: readonly string[], settings?: Parameters<typeof openOperator>[1]) =>
  merchant(['webhook', ...args], settings);

/** Runs `rotate`, or `set` after removing an earlier endpoint. Returns the new secret. */
async function secretOf(...args: readonly string[]): Promise<string> {
  if (args[0] === 'set') await webhook(['remove', clientId]);
  const { output } = await webhook([...args, '--json'], anyAddress);
  return JSON.parse(output).signing_secret;
}

test('rotate and set for a new endpoint print the secret, but set for an existing one, test, show and remove do not', async () => {
  const receiver = await runWebhookReceiver();
  const set = await webhook(['set', clientId, receiver.url], anyAddress);
  expect(set.error).toBe('');
  expect(set.output).toContain(`Webhooks of ${clientId} go to ${receiver.url}\n  signing secret: whsec_`);
  expect(set.output).not.toContain('previous');
  const [first = ''] = secretFormat.exec(set.output) ?? [];

  const tested = await webhook(['test', clientId], anyAddress);
  expect(tested).toEqual({ output: `The message was delivered to ${receiver.url}: HTTP 204.`, error: '' });
  const verified = (secret: string, { headers, body }: ReceivedWebhook) =>
    new Webhook(secret).verify(body, headers as Record<string, string>);
  expect(verified(first, receiver.received[0] as ReceivedWebhook)).toMatchObject({ type: 'webhook.test', data: {} });

  const second = await secretOf('rotate', clientId);
  await webhook(['test', clientId], anyAddress);
  for (const secret of [second, first]) verified(secret, receiver.received[1] as ReceivedWebhook);
  await database.sql`update webhook_endpoints set previous_ends_at = now() where merchant_id = ${merchantId}`;
  await webhook(['test', clientId], anyAddress);
  expect(receiver.received[2]?.headers['webhook-signature']).toMatch(/^v1,\S+$/);
  const moved = await webhook(['set', clientId, `${receiver.url}/moved`], anyAddress);
  expect(moved.output).not.toContain('whsec_');
  const unchanged = JSON.parse((await webhook(['set', clientId, receiver.url, '--json'], anyAddress)).output);
  expect(unchanged).toMatchObject({ id: expect.stringMatching(/^we_/), url: receiver.url, status: 'enabled' });
  expect(unchanged).not.toHaveProperty('signing_secret');
  await webhook(['test', clientId], anyAddress);
  verified(second, receiver.received[3] as ReceivedWebhook);

  const shown = await webhook(['show', clientId]);
  expect(shown.output).toMatch(
    /^ID: {7}we_[0-9a-f]{32}\nURL: {6}http:\S+\nEVENTS: {3}\*\nCREATED: {2}\d{4}-.+ UTC\nSTATE: {4}works$/,
  );
  const { output } = await webhook(['show', clientId, '--json']);
  expect(JSON.parse(output)).toEqual({ endpoints: [unchanged] });
  expect(shown.output + output).not.toContain('whsec_');

  const removed = await webhook(['remove', clientId]);
  expect(removed.output).toBe(`Webhooks of ${clientId} no longer go to ${receiver.url}`);
  for (const args of [['show'], ['rotate'], ['remove'], ['test'], ['redeliver', 'evt_1']]) {
    const [command = '', ...rest] = args;
    const { error } = await webhook([command, clientId, ...rest]);
    expect([command, error]).toEqual([command, `${clientId} has no webhook endpoint.`]);
  }
});

test('with several endpoints, a command must name one', async () => {
  await secretOf('set', clientId, 'https://shop.example/first');
  const added = await webhook(['set', clientId, 'https://shop.example/second', '--new']);
  expect(added.output).toContain('  signing secret: whsec_');
  const { error } = await webhook(['rotate', clientId]);
  expect(error).toBe(`${clientId} has 2 webhook endpoints. Choose one with --endpoint.`);
  const shown = JSON.parse((await webhook(['show', clientId, '--json'])).output).endpoints;
  expect(shown.map(({ url }: { url: string }) => url)).toEqual([
    'https://shop.example/first',
    'https://shop.example/second',
  ]);
  const [, second] = shown;
  const moved = await webhook(['set', clientId, 'https://shop.example/moved', '--endpoint', second.id]);
  expect(moved.output).not.toContain('whsec_');
  expect((await webhook(['remove', clientId, '--endpoint', second.id])).output).toContain('/moved');
  const unknown = await webhook(['remove', clientId, '--endpoint', second.id]);
  expect(unknown.error).toBe(`${clientId} has no webhook endpoint with this ID.`);
  for (let count = 1; count < endpointsMax; count += 1)
    await webhook(['set', clientId, 'https://shop.example/more', '--new']);
  const { error: tooMany } = await webhook(['set', clientId, 'https://shop.example/more', '--new']);
  expect(tooMany).toContain('You already have 5 webhook endpoints, which is the limit.');
  await database.sql`delete from webhook_endpoints where merchant_id = ${merchantId}`;
});

test('deliveries lists the status of each event, and redeliver queues one again', async () => {
  await secretOf('set', clientId, 'https://shop.example/hook');
  const [done, givenUp] = (await storeEvents(database.sql, [merchantId], 2)) as [string, string];
  await database.sql`update webhook_deliveries set next_attempt_at = null, attempts = 10, last_result = 'HTTP 500'`;
  await database.sql`update webhook_deliveries set delivered_at = now(), attempts = 1, last_result = 'HTTP 204'
    where event_id = ${done}`;
  const rowsOf = async (...args: string[]) =>
    (await webhook(['deliveries', clientId, ...args])).output.split('\n').map((line) => line.split(/ {2,}/));
  const header = ['EVENT ID', 'TYPE', 'CREATED', 'STATUS', 'ATTEMPTS', 'LAST RESULT'];
  const failed = [givenUp, 'order.cancelled', expect.stringMatching(/ UTC$/), 'failed', '10', 'HTTP 500'];
  const delivered = [done, 'order.cancelled', expect.stringMatching(/ UTC$/), 'delivered', '1', 'HTTP 204'];
  const [firstRow, ...rows] = await rowsOf();
  expect(firstRow).toEqual(header);
  expect(rows).toHaveLength(2);
  expect(rows).toEqual(expect.arrayContaining([failed, delivered]));
  expect(await rowsOf('--status', 'delivered')).toEqual([header, delivered]);
  expect((await webhook(['redeliver', clientId, givenUp])).output).toBe(`Event ${givenUp} is delivered again.`);
  const { deliveries } = JSON.parse((await webhook(['deliveries', clientId, '--json'])).output);
  expect(deliveries).toContainEqual(expect.objectContaining({ event_id: givenUp, status: 'pending', attempts: 0 }));
  const unknown = await webhook(['redeliver', clientId, `evt_${'0'.repeat(32)}`]);
  expect(unknown.error).toContain('You have no event with this id from the last 30 days.');
});

test('reencrypt encrypts every secret with the first key, and reports that some cannot be decrypted', async () => {
  const [older, newer] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(3)];
  const first = await secretOf('set', clientId, 'https://shop.example/hook');
  const second = await secretOf('rotate', clientId);
  const rotatedKeys = { ...key, signingSecrets: createSigningSecrets([newer, older]) };
  expect(await webhook(['reencrypt'], rotatedKeys)).toEqual({
    output: 'Re-encrypted with the first key: 1 of 1 endpoints.',
    error: '',
  });
  const [row] = await database.sql`select * from webhook_endpoints where merchant_id = ${merchantId}`;
  const secrets = createSigningSecrets([newer]);
  const stored = [row?.signing_secret, row?.previous_secret].map((secret) => secrets.decrypt(merchantId, secret));
  expect(stored.map((secret) => secret && formatSigningSecret(secret))).toEqual([second, first]);
  expect(await webhook(['reencrypt'])).toEqual({
    output: 'Re-encrypted with the first key: 0 of 1 endpoints.',
    error: 'The remaining ones were stored with a key that is not in SECRETS_KEY, or changed during this command.',
  });
  const [logged] = await database.sql`select details from audit_log where action = 'webhook.reencrypt'`;
  expect(logged?.details).toEqual({ endpoints: 1 });
});

test('test reports why the message was not delivered', async () => {
  const receiver = await runWebhookReceiver({ respond: (_, response) => void response.writeHead(500).end() });
  await secretOf('set', clientId, receiver.url);
  const failed = await webhook(['test', clientId], anyAddress);
  expect(failed).toEqual({ output: '', error: `The message was not delivered to ${receiver.url}: HTTP 500.` });
  expect((await webhook(['test', clientId])).error).toContain(': address not allowed.');
  expect(receiver.connections()).toBe(1);
  const otherKey = { ...key, signingSecrets: createSigningSecrets([new Uint8Array(32).fill(2)]) };
  const { error } = await webhook(['test', clientId], otherKey);
  expect(error).toBe('Set SECRETS_KEY to 32 random bytes in base64, or to the key that encrypted the secrets.');
});

test('without SECRETS_KEY, commands that need it report that on one line, and show works', async () => {
  await secretOf('set', clientId, 'https://shop.example/hook');
  const noKey = { ...key, signingSecrets: undefined };
  const error = 'Set SECRETS_KEY to 32 random bytes in base64, or to the key that encrypted the secrets.';
  for (const args of [
    ['set', clientId, 'https://shop.example/', '--new'],
    ['rotate', clientId],
    ['test', clientId],
  ]) {
    expect(await webhook(args, noKey)).toEqual({ output: '', error });
  }
  expect((await webhook(['show', clientId], noKey)).error).toBe('');
  const variables = { DATABASE_URL: database.url };
  expect(await runCommand(program, ['webhook', 'rotate', clientId], variables)).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(`^Database: .+\n${error}\n$`),
  });
});

test('messages about invalid arguments do not repeat a secret that was typed by mistake', async () => {
  const secret = `whsec_${'A'.repeat(43)}=`;
  const noClient = await webhook(['show', 'app_000000000000000000000000']);
  expect(noClient.error).toBe('There is no account app_000000000000000000000000.');
  for (const args of [['show', secret], ['set', clientId, secret], [secret], ['rotate', clientId, secret]]) {
    const { output, error } = await webhook(args);
    expect([args, output, error === '']).toEqual([args, '', false]);
    expect(error).not.toContain(secret);
  }
  const { error } = await webhook(['set', clientId, 'http://localhost:3000/hook']);
  expect(error).toMatch(
    /^The URL must begin with https:\/\/\..* With WEBHOOK_ALLOW_PRIVATE=1, any address is allowed\.$/,
  );
  const accounts = openAccountAdmin(database.options);
  onTestFinished(() => accounts.close());
  const checkout = await accounts.create('Checkout', 'checkout');
  expect((await webhook(['show', checkout.clientId])).error).toBe(`There is no account ${checkout.clientId}.`);
});

test('brand prints the brand as the API returns it, and the audit log names the operator', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'brand-'));
  const logo = join(folder.path, 'logo.png');
  await writeFile(logo, pngOf(8, 4));
  const changed = await merchant(['brand', clientId, '--color', '#0b5fff', '--logo', logo, '--as', 'Ann']);
  expect(changed.output).toMatch(/^LOGO URL {14}https:\/\/pay\.example\/logos\/[\w-]{43}\.png\nCOLOR {17}#0b5fff\n/);
  expect(changed.output).toContain('\nSUPPORT EMAIL         none\n');
  const removed = await merchant(['brand', clientId, '--logo', 'none', '--json']);
  expect(JSON.parse(removed.output)).toEqual({ color: '#0b5fff' });
  expect(await merchant(['brand', clientId, '--json'])).toEqual(removed);
  const [logged] =
    await database.sql`select actor, client_id from audit_log where action = 'brand' order by id limit 1`;
  expect(logged).toEqual({ actor: 'Ann', client_id: clientId });
});

test('brand reports each invalid value with the name of its field', async () => {
  const { output, error } = await merchant(['brand', clientId, '--color', 'blue', '--terms-url', 'x']);
  expect([output, error]).toEqual(['', expect.stringMatching(/^color .+; terms_url .+\.$/)]);
  expect((await merchant(['brand', clientId, '--logo', '/dev/null/none'])).error).toContain('--logo could not be read');
});
