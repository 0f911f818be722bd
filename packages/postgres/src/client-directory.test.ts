import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startThrowawayPostgres, type ThrowawayPostgres } from '../testing/throwaway-postgres.ts';
import { openClientDirectory, type PostgresClientDirectory } from './client-directory.ts';
import { type MerchantAccounts, openMerchantAccounts } from './merchant-accounts.ts';
import { migrateDatabase } from './migrate.ts';

let server: ThrowawayPostgres;
let accounts: MerchantAccounts;
let directory: PostgresClientDirectory;
beforeAll(async () => {
  server = await startThrowawayPostgres();
  await migrateDatabase(server.url);
  accounts = openMerchantAccounts(server.url);
  directory = openClientDirectory(server.url);
});
afterAll(async () => {
  await Promise.all([accounts?.close(), directory?.close()]);
  await server?.stop();
});

const clientIdOf = (number: number) => `app_${String(number).padStart(24, '0')}`;
const later = new Date(Date.now() + 3_600_000);

test('look-ups made together each find their own client, with all secrets of it that work and no other', async () => {
  const hashes = Array.from({ length: 4 }, () => randomBytes(32));
  const [one, kept, ending, ended] = hashes as [Buffer, Buffer, Buffer, Buffer];
  await accounts.create({ name: 'One Secret', clientId: clientIdOf(1), secretHash: one });
  await accounts.create({ name: 'Three Secrets', clientId: clientIdOf(2), secretHash: ended });
  await accounts.addSecret(clientIdOf(2), { hash: kept, endsAt: null });
  await accounts.addSecret(clientIdOf(2), { hash: ending, endsAt: later });
  const [first] = (await accounts.listSecrets(clientIdOf(2))) ?? [];
  await accounts.endSecret(clientIdOf(2), first?.id ?? 0, null);
  await accounts.create({ name: 'No Secret', clientId: clientIdOf(3), secretHash: ended });
  const [last] = (await accounts.listSecrets(clientIdOf(3))) ?? [];
  await accounts.endSecret(clientIdOf(3), last?.id ?? 0, null);

  const strangers = Array.from({ length: 3_000 }, (_, place) => clientIdOf(1_000 + place));
  const wanted = [...strangers, clientIdOf(2), clientIdOf(1), clientIdOf(3), clientIdOf(1)];
  const found = await Promise.all(wanted.map((clientId) => directory.findClient(clientId)));
  expect(new Set(found.slice(0, strangers.length).map(({ kind }) => kind))).toEqual(new Set(['unknown']));
  const told = found.slice(strangers.length).map((lookup) => {
    if (lookup.kind !== 'found') return lookup.kind;
    const { merchant, secrets } = lookup.client;
    return [merchant.name, new Map(secrets.map(({ hash, endsAtMs }) => [Buffer.from(hash).toString('hex'), endsAtMs]))];
  });
  const oneSecret = ['One Secret', new Map([[one.toString('hex'), null]])];
  const twoSecrets = new Map([
    [kept.toString('hex'), null],
    [ending.toString('hex'), later.getTime()],
  ]);
  expect(told).toEqual([['Three Secrets', twoSecrets], oneSecret, ['No Secret', new Map()], oneSecret]);
});
