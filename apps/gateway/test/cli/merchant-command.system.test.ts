import { createHash } from 'node:crypto';
import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Credentials } from '@order-gateway/domain/accounts';
import { checksumOf } from '@order-gateway/domain/signing';
import { validOrderFields, validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { type AccountAdmin, openAccountAdmin } from '@order-gateway/postgres/accounts';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { useTestDatabase } from '@order-gateway/postgres/testing/test-database';
import { describe } from '@order-gateway/runtime/process';
import type postgres from 'postgres';
import { expect, onTestFinished, test } from 'vitest';
import { program as checkoutProgram } from '../../src/cli/checkout.ts';
import { merchantCommands } from '../../src/cli/merchant/merchant-commands.ts';
import { readConfig } from '../../src/config.ts';
import type { OrderRecord } from '../../src/operations/orders.ts';
import { runProgram } from '../helpers/gateway-process.ts';
import { grpcClient, rpcClients, rpcErrorOf } from '../helpers/grpc/rpc-clients.ts';
import { runCommand } from '../helpers/run-command.ts';
import { runGateway, useGateway } from '../helpers/running-gateway.ts';
import { callJson, credentialHeaders, orderMessage, postOrder, readOrder } from '../helpers/send-order.ts';

const gateway = useGateway();

/** Runs `merchant` in this process on the running gateway's database. `error` is the message it reports. */
const merchant = (...args: string[]) => merchantOf(gateway.accounts, ...args);

async function merchantOf(accounts: AccountAdmin, ...args: string[]): Promise<{ output: string; error: string }> {
  return merchantWith({}, accounts, ...args);
}

async function merchantWith(
  variables: NodeJS.ProcessEnv,
  accounts: AccountAdmin,
  ...args: string[]
): Promise<{ output: string; error: string }> {
  let output = '';
  const program = merchantCommands(
    (work) => work(accounts, readConfig(variables)),
    (line) => {
      output += `${line}\n`;
    },
  );
  const error = await program.parseAsync(args, { from: 'user' }).then(
    () => '',
    (reason: unknown) => describe(reason),
  );
  return { output, error };
}

async function addSecret(clientId: string, endsAt: Date | null = null): Promise<{ id: number; clientSecret: string }> {
  const added = await gateway.accounts.addSecret(clientId, endsAt);
  if (added.kind !== 'added') throw new Error(added.kind);
  return added;
}

/** Runs a command with `--json`, and returns the object on each line of its output. */
async function jsonOf(...args: string[]): Promise<Record<string, unknown>[]> {
  const { output } = await merchant(...args, '--json');
  return output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

async function statusWith(clientId: string, clientSecret: string, order = validOrderInput()): Promise<number> {
  return (await postOrder({ url: gateway.url, credentials: { clientId, clientSecret } }, order)).status;
}

const recordOf = async (credentials: Credentials, orderId: string): Promise<OrderRecord> =>
  (await callJson({ url: gateway.url, credentials }, 'GET', `/order/${orderId}`)).body;

test('merchant console prints no link if the gateway does not serve the console', async () => {
  const { credentials } = await gateway.newMerchant();
  const consoleAt = (url: string) =>
    merchantWith({ BASE_URL: url }, gateway.accounts, 'console', credentials.clientId, '--name', 'Ada');
  expect(await consoleAt(gateway.url)).toEqual({
    output: '',
    error: 'The console is off. Start the gateway with CONSOLE=on.',
  });
  const gatewayWithConsole = await runGateway({ hasConsole: true });
  for (const url of [gatewayWithConsole.url, 'http://127.0.0.1:1'])
    expect((await consoleAt(url)).output).toContain(`${url}/console/`);
});

test('merchant secret: up to five secrets work at the same time, and calls with a revoked one get 401', async () => {
  const args = ['create', '--name', 'Shop', '--json'];
  const program = await runProgram('src/cli/merchant.ts', args, { DATABASE_URL: gateway.databaseUrl });
  const created = JSON.parse(program.stdout);
  const [clientId, first] = [String(created.client_id), String(created.client_secret)];
  expect(await statusWith(clientId, first)).toBe(201);
  const [second] = await jsonOf('secret', 'add', clientId);
  const addedSecrets = [await addSecret(clientId), await addSecret(clientId), await addSecret(clientId)];
  for (const secret of [second?.client_secret, ...addedSecrets.map(({ clientSecret }) => clientSecret)]) {
    expect(await statusWith(clientId, String(secret))).toBe(200);
  }
  const sixth = await merchant('secret', 'add', clientId);
  expect(sixth).toEqual({ output: '', error: expect.stringContaining('has 5 secrets') });

  expect((await merchant('secret', 'revoke', clientId, String(second?.id))).error).toBe('');
  await expect.poll(() => statusWith(clientId, String(second?.client_secret))).toBe(401);
  expect(await statusWith(clientId, first)).toBe(200);
  const [{ secrets } = {}] = await jsonOf('secret', 'list', clientId);
  expect((secrets as { ends_at?: string }[]).map(({ ends_at }) => ends_at !== undefined)).toEqual([
    false,
    true,
    false,
    false,
    false,
  ]);
  expect(JSON.stringify(secrets)).not.toContain('sk_');
});

/** The format of times in the output of commands. */
const time = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/.source;

test('commands that change a merchant report the change, and merchant list and log show it', async () => {
  const name = '😀'.repeat(255);
  const created = await merchant('create', '--name', name);
  const [clientId = ''] = /app_[0-9A-Za-z]{24}/.exec(created.output) ?? [];
  expect(created.output).toMatch(
    new RegExp(`^Created live merchant ${name}\\n[^]*client secret: sk_[0-9A-Za-z]{43}\\n`),
  );
  const lifetimes = { '1m': 60, '30m': 1_800, '366d': 31_622_400, '7d': 604_800, '24h': 86_400 };
  for (const [args, text] of [
    [['rename', clientId, '--name', 'Corner Shop'], `${clientId} is now Corner Shop.`],
    [['disable', clientId], `${clientId} is disabled.`],
    [['enable', clientId], `${clientId} is enabled.`],
    [['checksum', clientId, 'required'], expect.stringContaining('required')],
    [['limit', clientId, 'none'], `${clientId} now has no separate rate limit.`],
    [['limit', clientId, '250'], `${clientId} now may make 250 calls per second.`],
    [['lifetime', clientId, 'none'], `Orders of ${clientId} without order_expires_at now do not expire.`],
    ...Object.entries(lifetimes).map(([lifetime, seconds]): [string[], string] => [
      ['lifetime', clientId, lifetime],
      `Orders of ${clientId} without order_expires_at now expire after ${seconds} seconds.`,
    ]),
  ] as const) {
    const { output, error } = await merchant(...args);
    expect([output.trimEnd(), error]).toEqual([text, '']);
  }
  const [header = '', ...rows] = (await merchant('list')).output.trimEnd().split('\n');
  expect(header.split(/ {2,}/)).toEqual([
    'CLIENT ID',
    'LOG ID',
    'KIND',
    'STATE',
    'CHECKSUM',
    'LIVE SECRETS',
    'CREATED',
    'NAME',
  ]);
  const row = rows.find((line) => line.startsWith(clientId)) ?? '';
  expect(row).toMatch(new RegExp(`^${clientId} +\\d+ +live +enabled +required +1 +${time} +Corner Shop$`));
  expect(await jsonOf('list')).toContainEqual({
    id: expect.any(Number),
    client_id: clientId,
    name: 'Corner Shop',
    kind: 'live',
    checksum_mode: 'required',
    live_secrets: 1,
    default_lifetime_seconds: 86_400,
    rate_limit: 250,
    disabled_at: null,
    created_at: expect.any(String),
    late_days: 1,
    gets_customer_data: false,
    makes_refunds: false,
  });
  const entries = await jsonOf('log', clientId);
  const renamed = { time: expect.any(String), action: 'rename', client_id: clientId, who: expect.any(String) };
  expect(entries).toContainEqual({ ...renamed, details: { name: 'Corner Shop' } });
  const logged = (await merchant('log', clientId)).output.trimEnd().split('\n');
  expect(logged[0]?.split(/ {2,}/)).toEqual(['TIME', 'ACTION', 'CLIENT ID', 'WHO', 'DETAILS']);
  expect(logged).toHaveLength(entries.length + 1);
});

const emptyDatabase = useTestDatabase();

test.each(['list', 'log'])('merchant %s reports that there is nothing to list, and prints no JSON', async (command) => {
  const accounts = openAccountAdmin({ url: emptyDatabase.url });
  onTestFinished(() => accounts.close());
  expect((await merchantOf(accounts, command)).output).toMatch(/^(There are no|The .+ is empty)/);
  expect((await merchantOf(accounts, command, '--json')).output).toBe('');
});

test('merchant secret: --ends accepts any UTC offset, and the list shows the state of each secret', async () => {
  const { clientId } = await gateway.accounts.create('Rotating');
  const [added] = await jsonOf('secret', 'add', clientId, '--ends', '2096-02-29T23:30:00.5-08:00');
  const ended = await addSecret(clientId);
  expect(added).toMatchObject({ id: expect.any(String), client_secret: expect.stringMatching(/^sk_/) });
  expect((await merchant('secret', 'revoke', clientId, `${ended.id}`)).output).toBe(
    `Secret ${ended.id} of ${clientId} ends now.\n`,
  );
  const sooner = await merchant('secret', 'revoke', clientId, `${added?.id}`, '--ends', '2096-01-31T12:00:00Z');
  expect(sooner.output).toBe(`Secret ${added?.id} of ${clientId} ends at 2096-01-31 12:00:00 UTC.\n`);
  const [header, first, second, third] = (await merchant('secret', 'list', clientId)).output.trimEnd().split('\n');
  expect(header?.split(/ {2,}/)).toEqual(['NUMBER', 'CREATED', 'STATE']);
  expect(first).toMatch(new RegExp(`^\\d+ +${time} +works$`));
  expect(second).toMatch(new RegExp(`^${added?.id} +${time} +works until 2096-01-31 12:00:00 UTC$`));
  expect(third).toMatch(new RegExp(`^${ended.id} +${time} +ended ${time}$`));
});

test('merchant create --test creates a test merchant, whose orders have the mode "test"', async () => {
  const [created] = await jsonOf('create', '--name', 'Lab', '--test');
  const [clientId, clientSecret] = [String(created?.client_id), String(created?.client_secret)];
  expect(created).toMatchObject({ mode: 'test' });
  expect(clientId).toMatch(/^app_test_[0-9A-Za-z]{24}$/);
  const order = validOrderInput();
  expect(await statusWith(clientId, clientSecret, order)).toBe(201);
  expect(await recordOf({ clientId, clientSecret }, order.order_id)).toMatchObject({ mode: 'test' });
  expect(await jsonOf('list')).toContainEqual(expect.objectContaining({ client_id: clientId, kind: 'test' }));
});

test('merchant lifetime sets the expiry of orders that are sent without one, and "none" removes the lifetime', async () => {
  const credentials = await gateway.accounts.create('Patient', 'live');
  const { clientId, clientSecret } = credentials;
  const lifetimeOf = async (overrides: object) => {
    const order = validOrderInput({ order_id: `lifetime-${Math.random()}`, ...overrides });
    await postOrder({ url: gateway.url, credentials }, order);
    const { created_at, order_expires_at } = await recordOf({ clientId, clientSecret }, order.order_id);
    return order_expires_at === undefined ? undefined : Date.parse(order_expires_at) - Date.parse(created_at);
  };
  expect(await lifetimeOf({})).toBeUndefined();
  expect((await merchant('lifetime', clientId, '36h')).error).toBe('');
  await expect.poll(() => lifetimeOf({})).toBe(36 * 3_600_000);
  const sentLifetime = await lifetimeOf({ order_expires_at: new Date(Date.now() + 600_000).toISOString() });
  expect(sentLifetime).toBeLessThanOrEqual(600_000);
  expect((await merchant('lifetime', clientId, 'none')).error).toBe('');
  await expect.poll(() => lifetimeOf({})).toBeUndefined();
});

test('merchant limit: calls above the limit are rejected in every protocol, and "none" removes the limit', async () => {
  const credentials = await gateway.accounts.create('Busy', 'live');
  const headers = credentialHeaders(credentials);
  const protocols = [
    async () => Object(await (await postOrder({ url: gateway.url, credentials })).json()).code,
    ...rpcClients(OrderService, gateway).map(({ client }) => {
      return async () =>
        (await rpcErrorOf(client.getOrder({ order: { case: 'orderId', value: 'x' } }, { headers }))).reason;
    }),
  ];
  const isLimited = async (call: () => Promise<unknown>) =>
    (await Promise.all([call(), call(), call()])).includes('rate_limited');
  const limitedProtocols = () => Promise.all(protocols.map(isLimited));
  expect(await limitedProtocols()).toEqual(protocols.map(() => false));
  expect((await merchant('limit', credentials.clientId, '1')).error).toBe('');
  await expect.poll(limitedProtocols).toEqual(protocols.map(() => true));
  expect(await jsonOf('list')).toContainEqual(expect.objectContaining({ name: 'Busy', rate_limit: 1 }));
  expect((await merchant('limit', credentials.clientId, 'none')).error).toBe('');
  await expect.poll(limitedProtocols).toEqual(protocols.map(() => false));
});

test('checkout create: the account can use CheckoutService, but cannot create orders', async () => {
  const { code, stdout } = await runCommand(checkoutProgram, ['create', '--name', 'Pay desk', '--json'], {
    DATABASE_URL: gateway.databaseUrl,
  });
  expect(code).toBe(0);
  const { client_id: clientId, client_secret: clientSecret } = JSON.parse(stdout);
  expect(clientId).toMatch(/^chk_[0-9A-Za-z]{24}$/);
  const { order_token: orderToken } = await readOrder(await postOrder(gateway));
  const checkout = grpcClient(CheckoutService, gateway);
  const headers = credentialHeaders({ clientId, clientSecret });
  expect((await checkout.resolvePaymentLink({ orderToken }, { headers })).order?.merchantName).toBe('Test Shop');
  expect(await statusWith(clientId, clientSecret)).toBe(403);
  const [added] = await jsonOf('secret', 'add', clientId);
  const withAdded = credentialHeaders({ clientId, clientSecret: String(added?.client_secret) });
  await checkout.resolvePaymentLink({ orderToken }, { headers: withAdded });
});

test('merchant secret revoke does not extend an ended secret', async () => {
  const { clientId } = await gateway.accounts.create('Ended');
  const { id: number, clientSecret } = await addSecret(clientId);
  await gateway.accounts.endSecret(clientId, number, null);
  const revoked = await merchant('secret', 'revoke', clientId, `${number}`, '--ends', '2099-01-31T12:00:00Z');
  expect(revoked).toEqual({ output: '', error: `Secret ${number} of ${clientId} has already ended.` });
  await expect.poll(() => statusWith(clientId, clientSecret)).toBe(401);
});

test('a checksum is verified with the secret of the request, not with a different secret of the merchant', async () => {
  const { clientId, clientSecret: first } = await gateway.accounts.create('Two Secrets');
  const { clientSecret: second } = await addSecret(clientId);
  const order = (checksumSecret: string) =>
    validOrderInput({ order_checksum: checksumOf(validOrderFields(), checksumSecret) });
  const service = grpcClient(OrderService, gateway);
  const createOverGrpc = (clientSecret: string, { order_id, order_checksum }: ReturnType<typeof order>) =>
    service.createOrder(orderMessage(order_id, { order_checksum }), {
      headers: credentialHeaders({ clientId, clientSecret }),
    });
  for (const [sentSecret, otherSecret] of [[second, first] as const, [first, second] as const]) {
    expect(await statusWith(clientId, sentSecret, order(otherSecret))).toBe(400);
    expect(await rpcErrorOf(createOverGrpc(sentSecret, order(otherSecret)))).toMatchObject({
      reason: 'checksum_mismatch',
    });
    expect(await statusWith(clientId, sentSecret, order(sentSecret))).toBe(sentSecret === second ? 201 : 200);
    await createOverGrpc(sentSecret, order(sentSecret));
  }
});

test('the database stores only the SHA-256 of a client secret, and no signing secret in plain text', async () => {
  const credentials = await gateway.accounts.create('Stored');
  const { clientId, clientSecret: first } = credentials;
  const { clientSecret: second } = await addSecret(clientId);
  expect(await statusWith(clientId, second)).toBe(201);
  const endpoint = { url: 'https://shop.invalid/hook' };
  const { body } = await callJson({ url: gateway.url, credentials }, 'POST', '/webhook_endpoints', endpoint);
  const signingKey = Buffer.from(body.signing_secret.replace('whsec_', ''), 'base64');
  const tableNames = "select table_name as name from information_schema.tables where table_schema = 'public'";
  const tables = await runQuery(gateway.databaseUrl, tableNames);
  const dump = ({ name }: postgres.Row) => runQuery(gateway.databaseUrl, `select entry::text from "${name}" entry`);
  const stored = JSON.stringify(await Promise.all(tables.map(dump)));
  for (const secret of [first, second]) {
    expect(stored).not.toContain(secret);
    expect(stored).toContain(createHash('sha256').update(secret).digest('hex'));
  }
  for (const secret of [Buffer.from(first), Buffer.from(second), signingKey]) {
    expect(stored).not.toContain(secret.toString('hex'));
    expect(stored).not.toContain(secret.toString('base64'));
  }
});

test('commands report that an account does not exist or is not of the right kind', async () => {
  const unknown = 'app_000000000000000000000000';
  for (const args of [
    ['log', unknown],
    ['secret', 'list', unknown],
    ['enable', unknown],
    ['limit', unknown, '1'],
    ['lifetime', unknown, '24h'],
    ['secret', 'revoke', unknown, '1'],
    ['checksum', gateway.checkout.credentials.clientId, 'required'],
  ]) {
    const error = `There is no account ${args.find((arg) => /^(app|chk)_/.test(arg))}.`;
    expect(await merchant(...args)).toEqual({ output: '', error });
  }
  const { clientId } = await gateway.accounts.create('Without this secret');
  expect((await merchant('secret', 'revoke', clientId, '999999')).error).toBe(`${clientId} has no secret 999999.`);
});

test('if the database is unavailable, merchant exits with code 1 and a message, without a stack trace', async () => {
  const env = { DATABASE_URL: 'postgres://user:hidden@127.0.0.1:1/orders' };
  const { code, stdout, stderr } = await runProgram('src/cli/merchant.ts', ['list'], env);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(/^The database 127\.0\.0\.1:1\/orders /);
  expect(stderr).not.toMatch(/hidden|\n\s+at /);
});
