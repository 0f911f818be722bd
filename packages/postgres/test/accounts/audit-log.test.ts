import { hostname, userInfo } from 'node:os';
import type { AccountId, Credentials } from '@order-gateway/domain/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AccountAdmin, openAccountAdmin } from '../../src/accounts/account-admin.ts';
import { openWebhookEndpoints, type WebhookEndpoints } from '../../src/webhooks/webhook-endpoints.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const database = useTestDatabase();
let accounts: AccountAdmin;
let endpoints: WebhookEndpoints;

beforeAll(() => {
  accounts = openAccountAdmin({ ...database.options, actor: 'alice' });
  endpoints = openWebhookEndpoints({ ...database.options, actor: 'bob' });
});
afterAll(() => Promise.all([accounts?.close(), endpoints?.close()]));

async function logOf({ clientId }: Credentials) {
  const entries = await accounts.log({ clientId, after: 0, limit: 100 });
  return entries.map(({ actor, action, details }) => [actor, action, details]);
}

test('every change of an account is recorded once, with its actor and details but without a secret', async () => {
  const credentials = await accounts.create('Shop', 'test');
  const { clientId } = credentials;
  await accounts.setChecksumMode(clientId, 'required');
  await accounts.setDefaultLifetime(clientId, 60);
  await accounts.setDefaultLifetime(clientId, null);
  const added = await accounts.addSecret(clientId, new Date('2099-01-31T12:00:00.000Z'));
  if (added.kind !== 'added') throw new Error(added.kind);
  const ended = await accounts.endSecret(clientId, added.id, new Date('2098-01-31T12:00:00.000Z'));
  await accounts.rename(clientId, 'Corner Shop');
  await accounts.disable(clientId);
  await accounts.enable(clientId);
  const { merchantId = 0 as AccountId } = (await endpoints.find(clientId)) ?? {};
  await endpoints.create(merchantId, { url: 'https://shop.example.com/hidden', signingSecret: Uint8Array.of(1) });
  const { endpoint: { endpointId = '' } = {} } = (await endpoints.find(clientId)) ?? {};
  await endpoints.update(merchantId, endpointId, { url: 'https://other.example.com/hidden', status: 'disabled' });
  await endpoints.rotate(merchantId, endpointId, Uint8Array.of(2));
  await endpoints.remove(merchantId, endpointId);
  const entries = await logOf(credentials);
  expect(entries).toEqual([
    ['alice', 'create', { name: 'Shop', kind: 'test' }],
    ['alice', 'checksum', { mode: 'required' }],
    ['alice', 'lifetime', { seconds: 60 }],
    ['alice', 'lifetime', { seconds: null }],
    ['alice', 'secret.add', { number: added.id, ends_at: '2099-01-31T12:00:00.000Z' }],
    ['alice', 'secret.revoke', { number: added.id, ends_at: '2098-01-31T12:00:00+00:00' }],
    ['alice', 'rename', { name: 'Corner Shop' }],
    ['alice', 'disable', {}],
    ['alice', 'enable', {}],
    ['bob', 'webhook.create', { endpoint: endpointId, host: 'shop.example.com', event_types: null }],
    ['bob', 'webhook.update', { endpoint: endpointId, host: 'other.example.com', status: 'disabled' }],
    ['bob', 'webhook.rotate', { endpoint: endpointId }],
    ['bob', 'webhook.remove', { endpoint: endpointId }],
  ]);
  expect(ended).toEqual({ kind: 'ends', endsAt: new Date('2098-01-31T12:00:00.000Z') });
  expect(JSON.stringify(entries)).not.toMatch(/sk_|hidden/);
});

test('a command that changes nothing is not recorded', async () => {
  const unknown = { clientId: 'app_000000000000000000000000', clientSecret: '' };
  expect(await accounts.disable(unknown.clientId)).toBe('unknown_account');
  expect(await accounts.setChecksumMode(unknown.clientId, 'required')).toBe('unknown_account');
  expect(await accounts.addSecret(unknown.clientId, null)).toEqual({ kind: 'unknown_account' });
  expect(await logOf(unknown)).toEqual([]);
});

test('the log is read in pages, and names the system user by default', async () => {
  const system = openAccountAdmin(database.options);
  const { clientId } = await system.create('Paged');
  await system.disable(clientId);
  await system.close();
  const [first] = await accounts.log({ clientId, after: 0, limit: 1 });
  expect(first).toMatchObject({ action: 'create', actor: `${userInfo().username}@${hostname()}` });
  expect(await accounts.log({ clientId, after: first?.id ?? 0, limit: 5 })).toMatchObject([{ action: 'disable' }]);
  expect((await accounts.log({ after: 0, limit: 100 })).length).toBeGreaterThan(2);
});

test.each(["update audit_log set actor = 'x'", 'delete from audit_log', 'truncate audit_log'])(
  'the log rejects: %s',
  async (text) => {
    const credentials = await accounts.create('Logged');
    await expect(database.sql.unsafe(text)).rejects.toThrow('entries of audit_log are never changed');
    expect(await logOf(credentials)).toHaveLength(1);
  },
);

test('an account that is disabled again keeps the time at which it was first disabled', async () => {
  const { clientId } = await accounts.create('Shop');
  const disabledAt = async () => {
    await accounts.disable(clientId);
    return (await accounts.list({ limit: 500 })).find((account) => account.clientId === clientId)?.disabledAt;
  };
  expect(await disabledAt()).toEqual(expect.any(Date));
  expect(await disabledAt()).toEqual(await disabledAt());
});
