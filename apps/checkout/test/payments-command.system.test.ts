import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { startPgBouncer } from '@order-gateway/postgres/testing/pgbouncer';
import { createEncryption } from '@order-gateway/runtime/encryption';
import { expect, test } from 'vitest';
import { missing, mustSkip } from '../../../tools/skip-if-missing.ts';
import { paymentsCommands } from '../src/cli/commands.ts';
import { accountReader } from '../src/providers/accounts.ts';
import { createProviders } from '../src/providers/all.ts';
import type { Fetch } from '../src/providers/provider.ts';
import { checkoutMigrations } from '../src/store/migrate.ts';
import { connections } from '../src/store/schema.ts';
import { openStore, type Store } from '../src/store/store.ts';
import { createMollieStandIn } from '../testing/mollie-stand-in.ts';
import { createStripeStandIn } from '../testing/stripe-stand-in.ts';
import { testSecretsKey, useWorld } from './helpers/world.ts';

const key = 'rk_live_standIn';
const stripe = createStripeStandIn({ key });
const mollie = createMollieStandIn();
const send: Fetch = (url, init) => (url.includes('mollie') ? mollie : stripe).send(url, init);
const world = useWorld('live', send);

/** Runs a command with lines as its secrets. Returns what it prints. */
async function run(
  args: readonly string[],
  secrets: readonly string[] = [],
  store: Store = world.store,
): Promise<string> {
  const lines: string[] = [];
  const providers = createProviders(store, { baseUrl: () => world.baseUrl, send });
  const encryption = createEncryption<string>([testSecretsKey]);
  const program = paymentsCommands((work) => work({ store, providers, encryption }), {
    print: (line) => void lines.push(line),
    readSecrets: async () => secrets,
    actor: 'tester',
  });
  await program.parseAsync([...args], { from: 'user' });
  return lines.join('\n');
}

test('payments connect, list, test and disconnect manage an account without showing its key', async () => {
  const { clientId } = world.merchant;
  expect(await run(['list'])).toBe('No account is connected.');
  await expect(run(['test', clientId, 'stripe'])).rejects.toThrow('is not connected with stripe');
  await expect(run(['connect', clientId, 'paypal'])).rejects.toThrow(
    'PROVIDER must be one of: stripe, mollie, transfer.',
  );
  await expect(run(['connect', clientId, 'stripe'], ['rk_live_wrong'])).rejects.toThrow('could not be verified');
  await expect(run(['connect', clientId, 'stripe'], ['4242'])).rejects.toThrow('not_a_stripe_key');
  expect(await run(['connect', clientId, 'stripe'], [key, 'whsec_x'])).toMatch(
    /account acct_stand_in \(live\)\n {2}webhook path: \/hooks\/con_/,
  );
  const replaced = 'Replaced the stored details of stripe account acct_stand_in.';
  expect(await run(['connect', clientId, 'stripe'], [key])).toBe(replaced);
  expect(await run(['test', clientId, 'stripe'])).toBe('The key of stripe account acct_stand_in works.');
  const [listed] = await world.store.listConnections(clientId);
  expect(JSON.parse(await run(['list', clientId, '--json']))).toMatchObject({ client_id: clientId, mode: 'live' });
  expect(Buffer.from(listed?.secrets ?? []).toString('latin1')).not.toContain(key);
  expect(await run(['list'])).not.toContain(key);
  expect(await run(['disconnect', clientId, 'stripe'])).toContain('Disconnected');
  expect(await run(['list'])).toContain('disconnected 20');
  const log = (await run(['log', '--json'])).split('\n').map((line) => JSON.parse(line));
  expect(log.map(({ actor, action }) => [actor, action])).toEqual([
    ['tester', 'connect'],
    ['tester', 'replace_key'],
    ['tester', 'disconnect'],
  ]);
  expect(log[0]).toMatchObject({ merchant_id: clientId, details: { provider: 'stripe' } });
  expect(await run(['log'])).toMatch(/ connect +app_\S+ .*provider stripe/);
});

test('the key of an account that is connected again also serves the payments of its earlier connections', async () => {
  const { clientId } = world.merchant;
  await run(['connect', clientId, 'stripe'], [key, 'whsec_1']);
  await run(['disconnect', clientId, 'stripe']);
  expect(await run(['connect', clientId, 'stripe'], [key, 'whsec_2'])).toContain('webhook path');
  const accountOf = accountReader(world.store, createEncryption<string>([testSecretsKey]));
  const known = (await world.store.listConnections(clientId)).filter(({ provider }) => provider === 'stripe');
  const accounts = await Promise.all(known.map(({ connectionId }) => accountOf(connectionId)));
  expect(known.length).toBeGreaterThan(1);
  expect(accounts.filter(({ secrets }) => secrets.key !== key)).toEqual([]);
  // Each connection has its own webhook, and so its own secret.
  expect(accounts.slice(-2).map(({ secrets }) => secrets.webhookSecret)).toEqual(['whsec_1', 'whsec_2']);
  await run(['connect', clientId, 'stripe'], [key]);
  const current = await accountOf(known.at(-1)?.connectionId ?? '');
  expect(current.secrets).toEqual({ key, webhookSecret: 'whsec_2' });
  await run(['disconnect', clientId, 'stripe']);
  // The checkout erases the keys of disconnected accounts. Connecting one again restores them.
  await world.store.run((db) => db.update(connections).set({ disconnectedAt: new Date(0) }));
  expect(await world.store.eraseKeys([])).toBe(known.length);
  expect(await run(['list', clientId])).toMatch(/ disconnected 1970-\S+ .*, key erased$/m);
  expect(await run(['list', clientId, '--json'])).toContain('"has_key":false');
  await run(['connect', clientId, 'stripe'], [key]);
  for (const { connectionId } of known) expect((await accountOf(connectionId)).secrets.key).toBe(key);
  await run(['disconnect', clientId, 'stripe']);
});

test('a bank account has no webhooks and no key, and only a live merchant has one', async () => {
  const account = ['DE89370400440532013000', 'Corner Shop'];
  const connected = await run(['connect', world.merchant.clientId, 'transfer'], account);
  expect(connected).toContain('with transfer account DE89');
  expect(connected).not.toContain('webhook');
  const tested = await run(['test', world.merchant.clientId, 'transfer']);
  expect(tested).toContain('are valid. No connection to it could be tested.');
  const testMerchant = `app_test_${'a'.repeat(24)}`;
  await expect(run(['connect', testMerchant, 'transfer'], account)).rejects.toThrow('This account is for live orders');
});

test('payments runs as a user that the user database does not contain, as is common in containers', async () => {
  const preload = `
    import { syncBuiltinESMExports } from 'node:module';
    import os from 'node:os';
    os.userInfo = () => { throw new Error('ENOENT'); };
    syncBuiltinESMExports();`;
  const program = join(import.meta.dirname, '../src/cli/payments.ts');
  const args = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, program, '--help'];
  expect((await promisify(execFile)(process.execPath, args)).stdout).toMatch(/^Usage: payments /);
});

test('payments erase needs no gateway, accepts a payment link, and rejects what is neither a link nor a token', async () => {
  const token = 'a'.repeat(32);
  expect(await run(['erase', token])).toBe('Erased the digests of 0 payers.');
  expect((await run(['log'])).split('\n').at(-1)).toMatch(/ tester +erase +payers 0$/);
  expect(await run(['erase', `https://pay.example/payment/${token}?lang=de`])).toBe('Erased the digests of 0 payers.');
  await expect(run(['erase', `${token}0`])).rejects.toThrow('ORDER_TOKEN must be');
});

test('an account is not connected with a checkout system, which has no orders', async () => {
  const connected = run(['connect', `chk_${'a'.repeat(24)}`, 'stripe'], [key]);
  await expect(connected).rejects.toThrow('shown by `merchant list`');
});

test('a live key is never connected with a test merchant', async () => {
  const testMerchant = `app_test_${'a'.repeat(24)}`;
  await expect(run(['connect', testMerchant, 'stripe'], [key])).rejects.toThrow('This account is for live orders');
});

test.skipIf(mustSkip('the checkout behind PgBouncer', missing('pgbouncer')))(
  'the checkout migrates its schema and manages accounts through PgBouncer',
  async () => {
    const ignored = 'ignore_startup_parameters = statement_timeout, plan_cache_mode';
    await using pooler = await startPgBouncer(world.ownerUrl, `pool_mode = session\n${ignored}`);
    const url = pooler.through(world.ownerUrl);
    await migrateDatabase(url, undefined, checkoutMigrations);
    const store = openStore({ url });
    const { clientId } = world.merchant;
    expect(await run(['connect', clientId, 'stripe'], [key], store)).toContain('Connected');
    expect(await run(['test', clientId, 'stripe'], [], store)).toContain('works');
    expect(await run(['list'], [], store)).toContain('connected');
    expect(await run(['log'], [], store)).toContain('connect');
    expect(await run(['disconnect', clientId, 'stripe'], [], store)).toContain('Disconnected');
    await store.close();
  },
);

test('a provider that gets the address of its webhook with each payment needs no path', async () => {
  const { clientId } = world.merchant;
  const connected = await run(['connect', clientId, 'mollie'], [mollie.secrets.key]);
  expect(connected).toBe(`Connected ${clientId} with mollie account pfl_standIn (live)`);
  await run(['disconnect', clientId, 'mollie']);
});
