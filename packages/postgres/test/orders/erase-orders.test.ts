import { randomBytes } from 'node:crypto';
import type { AccountId } from '@order-gateway/domain/accounts';
import {
  decideRefund,
  erasedValues,
  erasureDigest,
  type Metadata,
  type Order,
  type OrderInput,
  personalFieldNames,
  transitions,
} from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { openAccountAdmin } from '../../src/accounts/account-admin.ts';
import type { PostgresOrderStore } from '../../src/order-store.ts';
import { openOrderChanges } from '../../src/orders/change/order-changes.ts';
import { type ErasureTarget, eraseOrders } from '../../src/orders/operators/erase-orders.ts';
import { createOrder } from '../../testing/contract-store.ts';
import { runIntoDeadlock } from '../../testing/deadlock.ts';
import { useOrderStores } from '../../testing/order-stores.ts';
import { useTestDatabase } from '../../testing/test-database.ts';

const enoughMs = 20_000;
const key = new Uint8Array(randomBytes(32));

const database = useTestDatabase();
const openStore = useOrderStores(database);
let store: PostgresOrderStore;
beforeAll(() => {
  store = openStore();
});

const erase = (target: ErasureTarget) => eraseOrders({ url: database.url, key, actor: 'alice' }, target);

async function newMerchant(): Promise<{ clientId: string; merchantId: AccountId }> {
  const clientId = `app_${randomBytes(12).toString('hex')}`;
  const [row] = await database.sql`insert into accounts (name, client_id) values ('Shop', ${clientId}) returning id`;
  return { clientId, merchantId: Number(row?.id) as AccountId };
}

const create = (
  merchantId: AccountId,
  overrides: OrderInput = {},
  createdAtMs = Date.now(),
  metadata: Metadata | null = null,
) => createOrder(store, { ...sampleOrder(merchantId, overrides, metadata), createdAtMs });

async function stored({ merchantId, fields }: Order): Promise<Order> {
  const found = await store.findByOrderId(merchantId, fields.order_id, enoughMs);
  if (found.kind !== 'found') throw new Error(found.kind);
  return found.order;
}

/** Returns the sessions of an application that wait for a lock. */
const waitingFor = (applicationName: string) => database.sql`select from pg_stat_activity
  where datname = current_database() and application_name = ${applicationName} and wait_event_type = 'Lock'`;

/** Returns the contents of all tables of the database as one string. */
async function allData(): Promise<string> {
  const { sql } = database;
  const tables = await sql`select table_name as name from information_schema.tables where table_schema = 'public'`;
  const rows = await Promise.all(tables.map(({ name }) => sql`select entry::text as text from ${sql(name)} entry`));
  return JSON.stringify(rows);
}

test('an order is erased once: its personal fields are gone, and all other data is unchanged', async () => {
  const { clientId, merchantId } = await newMerchant();
  const values = Object.fromEntries(personalFieldNames.map((name) => [name, `erased-${name}`.replaceAll('_', '-')]));
  const fields = {
    ...values,
    order_id: 'one',
    customer_email: 'erased@mail.example',
    customer_phone: '+31 99 123 4567',
    customer_address_postal_code: 'erased-code',
    return_url: 'https://shop.example.com/back?for=erased-url',
  };
  const order = await create(merchantId, fields, Date.now(), { name: 'erased-metadata', cart: '17' });
  const paid = {
    ...order,
    payment: { checkoutId: merchantId, paymentId: 'pay-1', paidAtMs: Date.now() },
    orderStatus: 'PAID' as const,
  };
  const change = { transition: transitions.pay, order: paid, note: 'erased-payment-note' };
  expect(await store.change(change, enoughMs)).toEqual({ kind: 'changed' });
  const requested = { refundId: 'r-1', amount: undefined, note: 'erased-refund-note' };
  const refund = decideRefund(paid, requested, true, Date.now());
  if (!refund.ok || refund.value.kind !== 'reverse') throw new Error('the order was not refunded');
  const { reversals } = refund.value.change.order;
  expect(await store.changeReversals(refund.value.change, enoughMs)).toEqual({ kind: 'changed' });
  const otherOrder = await create(merchantId, { order_id: 'another' }, Date.now(), { cart: '17' });
  expect(await allData()).toContain('erased-payment-note');
  expect(await allData()).toContain('erased-refund-note');
  expect(await allData()).toMatch(/erased-order-note.*erased@mail|erased@mail.*erased-order-note/);

  expect(await erase({ by: 'order', clientId, orderId: 'one' })).toBe(1);
  expect(await erase({ by: 'order', clientId, orderId: 'one' })).toBe(0);
  expect(await allData()).not.toMatch(/erased-|erased@|123 4567/);
  expect(await stored(order)).toEqual({
    ...paid,
    erasedDigest: expect.any(Uint8Array),
    metadata: null,
    reversals: { ...reversals, version: 2, refunds: [{ ...reversals.refunds[0], note: null }] },
    fields: { ...order.fields, ...erasedValues(order.fields) },
  });
  expect(Buffer.from((await stored(order)).erasedDigest ?? [])).toEqual(
    Buffer.from(erasureDigest(key, merchantId, order.fields)),
  );
  expect(await stored(otherOrder)).toEqual(otherOrder);
  const listed = await store.list(merchantId, { metadata: { cart: '17' }, limit: 5 }, enoughMs);
  expect(listed).toMatchObject({ kind: 'found', orders: [otherOrder] });
  expect(await database.sql`select from order_metadata where merchant_id = ${merchantId}`).toHaveLength(1);
  expect(await store.create(sampleOrder(merchantId, { order_id: 'one' }), enoughMs)).toMatchObject({ kind: 'exists' });
});

test('an order that is erased gets no note, even from a refund that was decided before', async () => {
  const { clientId, merchantId } = await newMerchant();
  const order = await create(merchantId, { order_id: 'noted' });
  const payment = { checkoutId: merchantId, paymentId: 'pay-noted', paidAtMs: Date.now() };
  const paid = { ...order, payment, orderStatus: 'PAID' as const };
  expect(await store.change({ transition: transitions.pay, order: paid }, enoughMs)).toEqual({ kind: 'changed' });
  const refund = async (found: Order) => {
    const requested = { refundId: 'r-1', amount: undefined, note: 'late-refund-note' };
    const decided = decideRefund(found, requested, true, Date.now());
    if (!decided.ok || decided.value.kind !== 'reverse') throw new Error('the order was not refunded');
    return store.changeReversals(decided.value.change, enoughMs);
  };
  expect(await erase({ by: 'order', clientId, orderId: 'noted' })).toBe(1);
  expect(await refund(paid)).toEqual({ kind: 'conflict' });
  expect(await refund(await stored(order))).toEqual({ kind: 'changed' });
  expect(await allData()).not.toContain('late-refund-note');
  expect((await stored(order)).reversals.refunds).toMatchObject([{ refundId: 'r-1', note: null }]);
});

const onPostgres = () => store;
/** A store whose statements are those of a server of Citus, where the change and its payment are not one statement. */
const onCitus = () =>
  openOrderChanges({ ...database.options, server: { number: 0, anyMerchant: () => 0 as AccountId } });

/** Creates an order, and returns a function that pays it with a note, as it was decided before any erasure. */
async function createToPay(open: () => Pick<PostgresOrderStore, 'change' | 'close'>) {
  const { clientId, merchantId } = await newMerchant();
  const order = await create(merchantId, { order_id: 'paid' });
  const payment = { checkoutId: merchantId, paymentId: 'pay-1', paidAtMs: Date.now() };
  const paid = { ...order, payment, orderStatus: 'PAID' as const };
  const changes = open();
  if (changes !== store) onTestFinished(() => changes.close());
  const pay = (note: string) => changes.change({ transition: transitions.pay, order: paid, note }, enoughMs);
  const notes = async () => (await database.sql`select note from payments where merchant_id = ${merchantId}`)[0];
  return { order, pay, notes, erase: () => erase({ by: 'order', clientId, orderId: 'paid' }) };
}

const statementsOf = [
  ['PostgreSQL', onPostgres],
  ['a server of Citus', onCitus],
] as const;

test.each(statementsOf)('on %s, a payment keeps its note', async (_name, open) => {
  const { pay, notes } = await createToPay(open);
  expect(await pay('kept')).toEqual({ kind: 'changed' });
  expect(await notes()).toEqual({ note: 'kept' });
});

test.each(statementsOf)('on %s, an order that was erased before it is paid gets no note', async (_name, open) => {
  const { order, pay, notes, erase } = await createToPay(open);
  expect(await erase()).toBe(1);
  expect(await pay('late')).toEqual({ kind: 'changed' });
  expect(await notes()).toEqual({ note: null });
  expect(await stored(order)).toMatchObject({ orderStatus: 'PAID', erasedDigest: expect.any(Uint8Array) });
});

test.each(statementsOf)('on %s, an order that is erased while it is paid gets no note', async (_name, open) => {
  const { order, pay, notes } = await createToPay(open);
  const { paying } = await database.sql.begin(async (session) => {
    await session`update orders set erased_digest = '' where merchant_id = ${order.merchantId}`;
    const paying = pay('late');
    await expect.poll(() => waitingFor('order-gateway changes')).toHaveLength(1);
    return { paying };
  });
  expect(await paying).toEqual({ kind: 'changed' });
  expect(await notes()).toEqual({ note: null });
});

test.each(statementsOf)('on %s, an order that is paid while it is erased keeps no note', async (_name, open) => {
  const { order, pay, notes, erase } = await createToPay(open);
  const { erasing } = await database.sql.begin(async (session) => {
    // The statement that erases an order also writes to the audit log.
    await session`lock table audit_log`;
    const erasing = erase();
    await expect.poll(() => waitingFor('order-gateway erasure')).toHaveLength(1);
    expect(await pay('early')).toEqual({ kind: 'changed' });
    return { erasing };
  });
  expect(await erasing).toBe(1);
  expect(await notes()).toEqual({ note: null });
  expect(await stored(order)).toMatchObject({ orderStatus: 'PAID', erasedDigest: expect.any(Uint8Array) });
});

type Erased = { readonly clientId: string; readonly orderId: string; readonly email: string; readonly before: Date };
test.each<[ErasureTarget['by'], (order: Erased) => ErasureTarget]>([
  ['order', ({ clientId, orderId }) => ({ by: 'order', clientId, orderId })],
  ['email', ({ email }) => ({ by: 'email', email })],
  ['age', ({ before }) => ({ by: 'age', before })],
])('an erasure by %s erases the metadata of an order, and what finds the order by it', async (_by, targetOf) => {
  const { clientId, merchantId } = await newMerchant();
  const createdAtMs = Date.parse('2018-03-01T00:00:00Z');
  const [orderId, email] = ['pairs', `pairs-${clientId}@mail.example`];
  const order = await create(merchantId, { order_id: orderId, customer_email: email }, createdAtMs, { a: '1', b: '2' });
  const pairs = () => database.sql`select from order_metadata where merchant_id = ${merchantId}`;
  expect(await pairs()).toHaveLength(2);
  expect(await erase(targetOf({ clientId, orderId, email, before: new Date(createdAtMs + 1) }))).toBe(1);
  expect(await pairs()).toHaveLength(0);
  expect((await stored(order)).metadata).toBeNull();
});

test('orders with an e-mail address are erased for all merchants, ignoring case', async () => {
  const [first, second] = [await newMerchant(), await newMerchant()];
  const email = 'Noor@Erase.example';
  const matching = await Promise.all([
    create(first.merchantId, { order_id: 'a', customer_email: email }),
    create(first.merchantId, { order_id: 'b', customer_email: email.toLowerCase() }),
    create(second.merchantId, { order_id: 'a', customer_email: email.toUpperCase() }),
  ]);
  const notMatching = await create(second.merchantId, { order_id: 'b', customer_email: 'noor@erase.example.com' });
  expect(await erase({ by: 'email', email: 'noor@erase.example' })).toBe(3);
  for (const order of matching) expect((await stored(order)).fields.customer_email).toBe('');
  expect((await stored(notMatching)).erasedDigest).toBeNull();
});

test('orders created before a given time are erased in batches and counted once, even by two erasures at once', async () => {
  const { merchantId } = await newMerchant();
  const before = Date.parse('2020-01-31T12:00:00Z');
  const creating = Array.from({ length: 1_100 }, (_, index) =>
    create(merchantId, { order_id: `old-${index}` }, before - 1 - index),
  );
  await Promise.all(creating);
  const young = await create(merchantId, { order_id: 'young' }, before);
  const target = { by: 'age', before: new Date(before) } as const;
  const counts = await Promise.all([erase(target), erase(target)]);
  expect(counts[0] + counts[1]).toBe(1_100);
  expect((await stored(young)).erasedDigest).toBeNull();
  expect(await erase(target)).toBe(0);
});

test('the database decides how many days old an order is, although the clock of this process is wrong', async () => {
  const { merchantId } = await newMerchant();
  const daysAgo = (days: number) => Date.now() - days * 86_400_000;
  const old = await create(merchantId, { order_id: 'days-31' }, daysAgo(31));
  const young = await create(merchantId, { order_id: 'days-29' }, daysAgo(29));
  vi.useFakeTimers({ now: daysAgo(-365), toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  await erase({ by: 'age', before: { daysAgo: 30 } });
  expect((await stored(old)).erasedDigest).not.toBeNull();
  expect((await stored(young)).erasedDigest).toBeNull();
});

test.each<ErasureTarget>([
  { by: 'age', before: new Date('2019-06-01') },
  { by: 'email', email: 'deadlock@mail.example' },
])('an erasure by $by continues after a deadlock with another session', async (target) => {
  const { merchantId } = await newMerchant();
  const createdAtMs = Date.parse('2019-05-01T00:00:00Z');
  for (const index of [1, 2]) {
    const fields = { order_id: `order-${index}`, customer_email: 'deadlock@mail.example' };
    await create(merchantId, fields, createdAtMs + index);
  }
  const deadlocked = { merchantId, applicationName: 'order-gateway erasure' };
  expect(await runIntoDeadlock(database.sql, deadlocked, () => erase(target))).toBe(2);
});

test('the audit log records the actor, the merchant and the number of erased orders, but no customer data', async () => {
  const { clientId, merchantId } = await newMerchant();
  await create(merchantId, { order_id: 'logged', customer_email: 'logged@mail.example' });
  await erase({ by: 'order', clientId, orderId: 'logged' });
  await create(merchantId, { order_id: 'logged too', customer_email: 'logged@mail.example' });
  await erase({ by: 'email', email: 'logged@mail.example' });
  const accounts = openAccountAdmin(database.options);
  const entries = await accounts.log({ after: 0, limit: 100 });
  await accounts.close();
  expect(entries.slice(-2)).toMatchObject([
    { actor: 'alice', action: 'orders.erase', clientId, details: { by: 'order', order_id: 'logged', orders: 1 } },
    { actor: 'alice', action: 'orders.erase', clientId: null, details: { by: 'email', orders: 1 } },
  ]);
  expect(JSON.stringify(entries)).not.toContain('logged@');
});
