import { randomBytes } from 'node:crypto';
import { createClientId, hashSecret } from '@order-gateway/domain/accounts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AccountAdmin, openAccountAdmin } from '../../src/accounts/account-admin.ts';
import { openAccountDirectory } from '../../src/accounts/account-directory.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const database = useTestDatabase();
let accounts: AccountAdmin;
let directory: ReturnType<typeof openAccountDirectory>;
beforeAll(() => {
  accounts = openAccountAdmin(database.options);
  directory = openAccountDirectory(database.options);
});
afterAll(() => Promise.all([accounts?.close(), directory?.close()]));

const later = new Date(Date.now() + 3_600_000);

const hashOf = (clientSecret: string) => Buffer.from(hashSecret(clientSecret)).toString('hex');

async function addSecret(clientId: string, endsAt: Date | null): Promise<string> {
  const added = await accounts.addSecret(clientId, endsAt);
  if (added.kind !== 'added') throw new Error(`no secret was added: ${added.kind}`);
  return hashOf(added.clientSecret);
}

async function endFirstSecret(clientId: string): Promise<void> {
  const [first] = (await accounts.listSecrets(clientId)) ?? [];
  await accounts.endSecret(clientId, first?.id ?? 0, null);
}

test('concurrent lookups each find their own account with exactly its live secrets', async () => {
  const withOneSecret = await accounts.create('One Secret');
  const withTwoSecrets = await accounts.create('Two Secrets');
  const added = await addSecret(withTwoSecrets.clientId, null);
  const ending = await addSecret(withTwoSecrets.clientId, later);
  await endFirstSecret(withTwoSecrets.clientId);
  const withNoSecret = await accounts.create('No Secret');
  await endFirstSecret(withNoSecret.clientId);

  const unknownIds = Array.from({ length: 3_000 }, () => createClientId(randomBytes));
  const clientIds = [
    ...unknownIds,
    ...[withTwoSecrets, withOneSecret, withNoSecret, withOneSecret].map(({ clientId }) => clientId),
  ];
  const found = await Promise.all(clientIds.map((clientId) => directory.findAccount(clientId)));
  expect(new Set(found.slice(0, unknownIds.length).map(({ kind }) => kind))).toEqual(new Set(['unknown']));
  const summaries = found.slice(unknownIds.length).map((lookup) => {
    if (lookup.kind !== 'found') return lookup.kind;
    const { account, secrets } = lookup.stored;
    return [account.name, new Map(secrets.map(({ hash, endsAtMs }) => [Buffer.from(hash).toString('hex'), endsAtMs]))];
  });
  const oneSecret = ['One Secret', new Map([[hashOf(withOneSecret.clientSecret), null]])];
  const twoSecrets = new Map([
    [added, null],
    [ending, later.getTime()],
  ]);
  expect(summaries).toEqual([['Two Secrets', twoSecrets], oneSecret, ['No Secret', new Map()], oneSecret]);
});

test('the longest time for late reports is that of the enabled checkout systems', async () => {
  expect(await directory.longestLateDays()).toBe(1);
  await accounts.create('Card Checkout', 'checkout', { lateDays: 7 });
  const { clientId } = await accounts.create('Bank Checkout', 'checkout', { lateDays: 20 });
  expect(await directory.longestLateDays()).toBe(20);
  await accounts.disable(clientId);
  expect(await directory.longestLateDays()).toBe(7);
});

test('a disabled account is unknown until it is enabled again', async () => {
  const { clientId } = await accounts.create('Disabled');
  await accounts.disable(clientId);
  expect(await directory.findAccount(clientId)).toEqual({ kind: 'unknown' });
  await accounts.enable(clientId);
  expect(await directory.findAccount(clientId)).toMatchObject({ kind: 'found' });
});
