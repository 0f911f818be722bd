import { type AccountId, hashSecret } from '@order-gateway/domain/accounts';
import { personalFieldNames, transitions } from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { openAccountAdmin } from '../../src/accounts/account-admin.ts';
import { openAccountDirectory } from '../../src/accounts/account-directory.ts';
import { openConsoleSessions } from '../../src/accounts/console-sessions.ts';
import { openMerchantManagement } from '../../src/merchant-management.ts';
import { migrateDatabase, requireSchema } from '../../src/migrate.ts';
import { openOrderStore } from '../../src/order-store.ts';
import { eraseOrders } from '../../src/orders/operators/erase-orders.ts';
import { listRefusedPayments } from '../../src/orders/operators/refused-payments.ts';
import { openWebhookDeliveries } from '../../src/webhooks/webhook-deliveries.ts';
import { openWebhookEndpoints } from '../../src/webhooks/webhook-endpoints.ts';
import { createManagedTarget, managementChanges } from '../../testing/management-changes.ts';
import { testPatience } from '../../testing/patience.ts';
import { type ProductionDatabase, startProductionDatabase } from '../../testing/production-database.ts';
import { runQuery } from '../../testing/run-query.ts';

const enoughMs = 20_000;

let database: ProductionDatabase;
let merchantId: AccountId;
beforeAll(async () => {
  database = await startProductionDatabase();
  const url = database.urlAs('order_gateway_owner');
  const accounts = openAccountAdmin({ url });
  const endpoints = openWebhookEndpoints({ url });
  const { clientId } = await accounts.create('Shop');
  merchantId = (await endpoints.find(clientId))?.merchantId ?? (0 as AccountId);
  await endpoints.create(merchantId, { url: 'https://shop.example.com', signingSecret: Uint8Array.of(1) });
  await Promise.all([accounts.close(), endpoints.close()]);
});
afterAll(() => database?.stop());

const as = (role: Parameters<ProductionDatabase['urlAs']>[0], text: string) => runQuery(database.urlAs(role), text);

test('a migration that has nothing to do changes no table and no schema, and one that finds a privilege missing grants it', async () => {
  const owner = database.urlAs('order_gateway_owner');
  const versions = () =>
    runQuery(
      owner,
      'select oid, xmin::text from pg_class union all select oid, xmin::text from pg_namespace order by 1',
    );
  const before = await versions();
  await migrateDatabase(owner);
  expect(await versions()).toEqual(before);
  await runQuery(owner, 'revoke select on brands from order_gateway');
  await migrateDatabase(owner);
  await as('order_gateway', 'select from brands');
});

test('the role of the gateway can do what the gateway does', async () => {
  const url = database.urlAs('order_gateway');
  await requireSchema(url);
  const store = openOrderStore({ url, patience: testPatience });
  const directory = openAccountDirectory({ url, patience: testPatience });
  const deliveries = openWebhookDeliveries({ url, patience: testPatience });
  onTestFinished(async () => void (await Promise.all([store.close(), directory.close(), deliveries.close()])));
  const [cancelled, expired] = [
    sampleOrder(merchantId, {}, { a: 'b' }),
    sampleOrder(merchantId, { order_id: 'expired' }),
  ];
  expect(await store.create(cancelled, enoughMs)).toMatchObject({ kind: 'created' });
  expect(await store.create(cancelled, enoughMs)).toMatchObject({ kind: 'exists' });
  await store.create({ ...expired, expiresAtMs: Date.now() - 1_000 }, enoughMs);
  const order = { ...cancelled, cancelledAtMs: Date.now() };
  expect(await store.change({ transition: transitions.cancel, order }, enoughMs)).toEqual({ kind: 'changed' });
  expect(await store.expire()).toEqual({ count: 1, isDone: true });
  expect(await store.findByToken(cancelled.orderToken, enoughMs)).toMatchObject({ kind: 'found' });
  expect(await store.list(merchantId, { limit: 5 }, enoughMs)).toMatchObject({ kind: 'found' });
  expect(await store.list(merchantId, { metadata: { a: 'b' }, limit: 5 }, enoughMs)).toMatchObject({ orders: [{}] });
  expect(await store.listEvents(merchantId, { limit: 5 }, enoughMs)).toMatchObject({ kind: 'found' });
  expect(await directory.findAccount('app_000000000000000000000000')).toEqual({ kind: 'unknown' });
  const filter = { failing: false, perEndpoint: 1, inFlight: new Map(), limit: 1 };
  const [delivery] = (await deliveries.claim(filter)).deliveries;
  if (delivery === undefined) throw new Error('nothing was claimed');
  await deliveries.record(delivery, { kind: 'endpoint_gone', text: '410' });
  expect(await as('order_gateway_owner', 'select disabled_at is null as enabled from webhook_endpoints')).toEqual([
    { enabled: false },
  ]);
  const key = new Uint8Array(32);
  expect(await eraseOrders({ url, key }, { by: 'age', before: new Date(Date.now() + 60_000) })).toBe(2);
  await as('order_gateway_owner', "update events set created_at = created_at - interval '31 days'");
  expect(await store.deleteOldEvents()).toEqual({ count: 2, isDone: true });
});

test('the role of the gateway can do what merchants do with their endpoints, secrets and brands', async () => {
  const management = openMerchantManagement({ url: database.urlAs('order_gateway'), patience: testPatience });
  onTestFinished(management.close);
  const url = database.urlAs('order_gateway_owner');
  const sql = postgres(url, { max: 1 });
  onTestFinished(() => sql.end({ timeout: 1 }));
  const target = await createManagedTarget(url, sql, false);
  for (const [name, change] of Object.entries(managementChanges)) {
    const outcome = await management.perform(target, (managed) => change(managed, target), enoughMs);
    expect([name, outcome.kind]).toEqual([name, 'done']);
  }
});

test('the role of the gateway can do what people do in the console', async () => {
  const url = database.urlAs('order_gateway');
  const sessions = openConsoleSessions({ url, patience: testPatience });
  const management = openMerchantManagement({ url, patience: testPatience });
  const accounts = openAccountAdmin({ url: database.urlAs('order_gateway_owner') });
  onTestFinished(async () => void (await Promise.all([sessions.close(), management.close(), accounts.close()])));
  const { clientId } = await accounts.create('Shop');
  const link = hashSecret((await accounts.createConsoleLink(clientId, { name: 'Ada', role: 'manage' })) ?? '');
  const sessionDigest = new Uint8Array(32);
  const done = { kind: 'done', value: expect.anything() };
  expect(await sessions.signIn(link, sessionDigest, undefined, enoughMs)).toEqual(done);
  const person = { clientId, name: 'Cy', role: 'read' } as const;
  expect(await sessions.signIn(person, new Uint8Array(32).fill(1), undefined, enoughMs)).toEqual(done);
  await as('order_gateway_owner', "update console_sessions set last_seen_at = now() - interval '5 minutes'");
  expect(await sessions.find(sessionDigest, enoughMs)).toEqual(done);
  expect(await sessions.list(sessionDigest, enoughMs)).toEqual(done);
  expect(await sessions.listInstructionChanges(clientId, enoughMs)).toEqual({ kind: 'done', value: [] });
  expect(await sessions.createLink(sessionDigest, link, { name: 'Bob', role: 'read' }, enoughMs)).toEqual(done);
  expect(await sessions.record(sessionDigest, { name: 'order.cancel', details: {} }, enoughMs)).toEqual(done);
  const caller = { merchantId, clientId, clientSecret: '', sessionDigest };
  expect(await management.perform(caller, (managed) => managed.addSecret(clientId, null), enoughMs)).toEqual(done);
  expect(await sessions.end(sessionDigest, 'all', enoughMs)).toEqual(done);
});

test('the role of the gateway moves the sequence past the ids of restored orders', async () => {
  const store = openOrderStore({ url: database.urlAs('order_gateway'), patience: testPatience });
  onTestFinished(store.close);
  await as('order_gateway_owner', 'update orders set service_order_id = service_order_id + 1e14');
  expect(await store.create(sampleOrder(merchantId, { order_id: 'restored' }), enoughMs)).toMatchObject({
    kind: 'created',
  });
});

test.each([
  'update orders set order_amount = 1',
  'delete from orders',
  'select * from audit_log',
  "update accounts set checksum_mode = 'versioned'",
  "update client_secrets set secret_hash = ''",
  'delete from client_secrets',
  'update webhook_endpoints set merchant_id = 1',
  'truncate events',
  'create table more (id int)',
  "copy (select 1) to program 'true'",
  'delete from drizzle.__drizzle_migrations',
])('the role of the gateway is denied: %s', async (text) => {
  await expect(as('order_gateway', text)).rejects.toThrow(/permission denied|must be owner/);
});

test("the reader role can do what the operators' view does", async () => {
  const url = database.urlAs('order_gateway_reader');
  const [accounts, endpoints] = [openAccountAdmin({ url }), openWebhookEndpoints({ url })];
  onTestFinished(async () => void (await Promise.all([accounts.close(), endpoints.close()])));
  expect(await accounts.list({ limit: 1 })).toHaveLength(1);
  expect(await accounts.log({ before: Number.MAX_SAFE_INTEGER, limit: 1 })).toHaveLength(1);
  expect(await listRefusedPayments(url, 1)).toEqual([]);
  await as(
    'order_gateway_owner',
    `update webhook_endpoints set failing_since = now() where merchant_id = ${merchantId}`,
  );
  const [failing] = await endpoints.listFailing(1);
  expect(failing).toMatchObject({ merchantId });
  expect(await endpoints.readBacklog(merchantId, failing?.endpointId ?? '', 10)).toMatchObject({ waiting: 0 });
});

test('the reader role sees no secret, no customer data and no link, and can change nothing', async () => {
  await as(
    'order_gateway_reader',
    'select order_id, order_amount, order_status from orders join accounts on id = merchant_id',
  );
  const allowed = await as(
    'order_gateway_reader',
    `select table_name || '.' || column_name as name from information_schema.columns
     where table_schema = 'public' and has_column_privilege(table_name, column_name, 'select')`,
  );
  const names = allowed.map(({ name }) => String(name));
  const denied: string[] = [
    ...personalFieldNames,
    'metadata',
    'order_token',
    'secret_hash',
    'signing_secret',
    'previous_secret',
    'token_digest',
  ];
  expect(names.filter((name) => denied.includes(name.split('.')[1] ?? ''))).toEqual([]);
  await expect(as('order_gateway_reader', "update orders set order_status = 'PAID'")).rejects.toThrow(
    'permission denied',
  );
});

test('a role that may not migrate gets an error that says so, and an old or missing schema is reported', async () => {
  await expect(migrateDatabase(database.urlAs('order_gateway'))).rejects.toThrow('order_gateway_owner');
  await as('order_gateway_owner', 'update drizzle.__drizzle_migrations set created_at = created_at - 1');
  await expect(requireSchema(database.urlAs('order_gateway'))).rejects.toThrow(
    'its schema is from an earlier version: run `migrate` first',
  );
  await as('order_gateway_owner', 'update drizzle.__drizzle_migrations set created_at = created_at + 2');
  await requireSchema(database.urlAs('order_gateway'));
  const empty = new URL(database.urlAs('order_gateway'));
  empty.pathname = '/postgres';
  await expect(requireSchema(empty.href)).rejects.toThrow('it has no schema: run `migrate` first');
});
