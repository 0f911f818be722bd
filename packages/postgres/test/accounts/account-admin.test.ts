import { type AccountId, liveSecretsMax } from '@order-gateway/domain/accounts';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { type AccountAdmin, openAccountAdmin } from '../../src/accounts/account-admin.ts';
import { openOrderStore } from '../../src/order-store.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const database = useTestDatabase();
let accounts: AccountAdmin;

beforeAll(() => {
  accounts = openAccountAdmin(database.options);
});

afterAll(() => accounts?.close());

const [soon, later] = [new Date('2098-01-31T12:00:00.000Z'), new Date('2099-01-31T12:00:00.000Z')];

/** Creates a merchant with one secret that never expires. */
async function newAccount(): Promise<{ clientId: string; firstSecretId: number }> {
  const { clientId } = await accounts.create('Shop');
  return { clientId, firstSecretId: (await accounts.listSecrets(clientId))?.[0]?.id ?? 0 };
}

function addSecret(clientId: string) {
  return accounts.addSecret(clientId, null);
}

test('the end of a secret can be brought forward, but never postponed', async () => {
  const { clientId, firstSecretId } = await newAccount();
  expect(await accounts.endSecret(clientId, firstSecretId, later)).toEqual({ kind: 'ends', endsAt: later });
  expect(await accounts.endSecret(clientId, firstSecretId, soon)).toEqual({ kind: 'ends', endsAt: soon });
  expect(await accounts.endSecret(clientId, firstSecretId, later)).toEqual({ kind: 'ends', endsAt: soon });
  expect(await accounts.listSecrets(clientId)).toMatchObject([{ endsAt: soon }]);
});

test('a secret that has ended stays ended, and does not let an account exceed its limit of live secrets', async () => {
  const { clientId, firstSecretId } = await newAccount();
  expect(await accounts.endSecret(clientId, firstSecretId, null)).toMatchObject({ kind: 'ends' });
  const ended = await accounts.listSecrets(clientId);
  for (let count = 0; count < liveSecretsMax; count += 1) {
    expect(await addSecret(clientId)).toMatchObject({ kind: 'added' });
  }
  expect(await accounts.endSecret(clientId, firstSecretId, later)).toEqual({ kind: 'ended_already' });
  expect(await accounts.endSecret(clientId, firstSecretId, null)).toEqual({ kind: 'ended_already' });
  expect((await accounts.listSecrets(clientId))?.[0]).toEqual(ended?.[0]);
  expect(await addSecret(clientId)).toEqual({ kind: 'too_many' });
});

test('operators who add secrets at the same time never exceed the limit of live secrets', async () => {
  const { clientId } = await newAccount();
  for (let live = 1; live < liveSecretsMax - 1; live += 1) await addSecret(clientId);
  const otherAdmin = openAccountAdmin(database.options);
  onTestFinished(() => otherAdmin.close());
  const adding: ReturnType<AccountAdmin['addSecret']>[] = [];
  await database.sql.begin(async (session) => {
    // The secrets are locked, so that both operators wait at the same point before either has added a secret.
    await session`lock table client_secrets in exclusive mode`;
    adding.push(addSecret(clientId), otherAdmin.addSecret(clientId, null));
    await expect
      .poll(
        () =>
          database.sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
      )
      .toHaveLength(2);
  });
  expect((await Promise.all(adding)).map(({ kind }) => kind).sort()).toEqual(['added', 'too_many']);
});

test("another merchant's secret is unknown", async () => {
  const [{ clientId }, otherAccount] = [await newAccount(), await newAccount()];
  expect(await accounts.endSecret(clientId, otherAccount.firstSecretId, null)).toEqual({ kind: 'unknown_secret' });
  expect(await accounts.listSecrets(otherAccount.clientId)).toMatchObject([{ endsAt: null }]);
});

test('orders are created while a secret is being added to their merchant', async () => {
  const { clientId } = await newAccount();
  const store = openOrderStore(database.options);
  onTestFinished(() => store.close());
  const [merchant] = await database.sql`select id::int from accounts where client_id = ${clientId}`;
  const order = sampleOrder(merchant?.id as AccountId, { order_id: 'after' });
  const adding = Promise.withResolvers<unknown>();
  await database.sql.begin(async (session) => {
    await session`lock table client_secrets in exclusive mode`;
    adding.resolve(addSecret(clientId));
    const waiting = () =>
      database.sql`select 1 from pg_locks where not granted and relation = 'client_secrets'::regclass`;
    await expect.poll(waiting).toHaveLength(1);
    expect(await store.create(order, 20_000)).toMatchObject({ kind: 'created' });
  });
  expect(await adding.promise).toMatchObject({ kind: 'added' });
});
