import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type AccountAdmin, openAccountAdmin } from '../../src/accounts/account-admin.ts';
import { openMerchantManagement } from '../../src/merchant-management.ts';
import { createManagedTarget, type ManagedTarget, managementChanges } from '../../testing/management-changes.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;
const database = useTestDatabase();
let management: ReturnType<typeof openMerchantManagement>;
let accounts: AccountAdmin;

beforeAll(() => {
  management = openMerchantManagement(database.options);
  accounts = openAccountAdmin(database.options);
});
afterAll(() => Promise.all([management?.close(), accounts?.close()]));

const createTarget = () => createManagedTarget(database.url, database.sql, false);

/** Returns everything that the merchant's calls can change. */
async function stateOf({ merchantId, clientId }: ManagedTarget): Promise<unknown> {
  const { sql } = database;
  return [
    [...(await sql`select * from webhook_endpoints where merchant_id = ${merchantId} order by endpoint_id`)],
    [...(await sql`select * from webhook_deliveries where merchant_id = ${merchantId} order by event_id`)],
    [...(await sql`select * from client_secrets where account_id = ${merchantId} order by id`)],
    [...(await sql`select * from brands where merchant_id = ${merchantId}`)],
    [...(await sql`select * from audit_log where client_id = ${clientId} order by id`)],
  ];
}

/** Selects the id of the secret in the credentials. */
const firstSecretOf = (merchantId: number) =>
  database.sql`(select min(id)::int as id from client_secrets where account_id = ${merchantId})`;

/** Functions that end the caller's right to act. */
const endings = {
  'revoked secret': ({ merchantId }: ManagedTarget) =>
    database.sql`update client_secrets set ends_at = now() where id = ${firstSecretOf(merchantId)}`,
  'disabled merchant': ({ merchantId }: ManagedTarget) =>
    database.sql`update accounts set disabled_at = now() where id = ${merchantId}`,
};

describe.each(Object.entries(managementChanges))('%s', (_name, change) => {
  test('makes its change under the name of the caller', async () => {
    const target = await createTarget();
    const before = await accounts.log({ clientId: target.clientId, after: 0, limit: 100 });
    const outcome = await management.perform(target, (managed) => change(managed, target), enoughMs);
    expect(outcome).toMatchObject({ kind: 'done' });
    const entries = await accounts.log({ clientId: target.clientId, after: 0, limit: 100 });
    expect(entries.slice(before.length).map(({ actor }) => actor)).toEqual([target.clientId]);
  });

  test.each(Object.entries(endings))(
    'changes nothing for a %s, even if the right to act ends after the first check',
    async (_ended, end) => {
      const target = await createTarget();
      let before: unknown;
      const outcome = await management.perform(
        target,
        async (managed) => {
          await end(target);
          before = await stateOf(target);
          return change(managed, target);
        },
        enoughMs,
      );
      expect(outcome).toEqual({ kind: 'unauthenticated' });
      expect(await stateOf(target)).toEqual(before);
    },
  );

  test('waits for a concurrent revocation of the secret, and is then rejected', async () => {
    const target = await createTarget();
    const { changing } = await database.sql.begin(async (session) => {
      await session`update client_secrets set ends_at = now() where id = ${firstSecretOf(target.merchantId)}`;
      const changing = management.perform(target, (managed) => change(managed, target), enoughMs);
      const waiting = () => session`select from pg_stat_activity where datname = current_database()
        and application_name = 'order-gateway management' and wait_event_type = 'Lock'`;
      await expect.poll(waiting).toHaveLength(1);
      return { changing };
    });
    expect(await changing).toEqual({ kind: 'unauthenticated' });
  });
});

test.each(Object.entries(endings))('a %s is rejected before any work', async (_name, end) => {
  const target = await createTarget();
  await end(target);
  const outcome = await management.perform(target, () => Promise.reject(new Error('the work was performed')), enoughMs);
  expect(outcome).toEqual({ kind: 'unauthenticated' });
});

test('a secret can revoke itself', async () => {
  const target = await createTarget();
  const [ownSecret] = await firstSecretOf(target.merchantId);
  const outcome = await management.perform(
    target,
    (managed) => managed.endSecret(target.clientId, ownSecret?.id, null, { keepsLast: true }),
    enoughMs,
  );
  expect(outcome).toMatchObject({ kind: 'done', value: { kind: 'ends' } });
});

test('a revocation waits for a change that has already checked the secret', async () => {
  const target = await createTarget();
  const [ownSecret] = await firstSecretOf(target.merchantId);
  const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
  const { promise: isHeld, resolve: hold } = Promise.withResolvers<void>();
  // The audit log entry of the change waits until the test releases the lock.
  const { sql } = database;
  await sql`create or replace function wait_here() returns trigger language plpgsql as
    'begin perform pg_advisory_xact_lock(42); return new; end'`;
  await sql`create trigger wait_here after insert on audit_log for each row when (new.action = 'secret.add') execute function wait_here()`;
  onTestFinished(() => sql`drop function wait_here cascade`.then(() => {}));
  const holding = sql.begin(async (session) => {
    await session`select pg_advisory_xact_lock(42)`;
    hold();
    await mayCommit;
  });
  await isHeld;
  const locked = () =>
    sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const added = management.perform(target, (managed) => managed.addSecret(target.clientId, null), enoughMs);
  await expect.poll(locked).toHaveLength(1);
  const revoked = accounts.endSecret(target.clientId, ownSecret?.id, null);
  await expect.poll(locked).toHaveLength(2);
  commit();
  await holding;
  expect([await added, await revoked]).toMatchObject([{ kind: 'done', value: { kind: 'added' } }, { kind: 'ends' }]);
});
