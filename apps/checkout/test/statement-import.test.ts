import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { and, eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { addStatementCommands } from '../src/cli/statement.ts';
import { type CheckoutOrder, OrderStatus, type Payment } from '../src/gateway/gateway.ts';
import { creditorReferenceOf } from '../src/providers/transfer/creditor-reference.ts';
import { openTransfers } from '../src/providers/transfer/transfers.ts';
import { type ImportDeps, openImport } from '../src/statements/import.ts';
import { openErasure } from '../src/store/erasure.ts';
import { attempts, calls, credits } from '../src/store/schema.ts';
import type { Store } from '../src/store/store.ts';
import { statementXml, type TestEntry, transaction } from '../testing/statements.ts';
import { openTestStore } from './helpers/test-store.ts';

let store: Store;
let folder: string;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  const opened = await openTestStore();
  store = opened.store;
  closing.push(opened.close);
  folder = await mkdtemp(join(tmpdir(), 'statements-'));
  closing.push(() => rm(folder, { recursive: true }));
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});

// Every test has its own account, merchant and orders, and a gateway that responds as the test requires.
let number = 0;
let account: string;
let merchantId: string;
let recorded: Payment[];
let answers: { start?: string; record?: string; crash?: boolean };
const orders = new Map<string, Partial<CheckoutOrder>>();

const gateway = {
  async resolve(orderToken: string) {
    return orders.get(orderToken) as CheckoutOrder | undefined;
  },
  async start({ orderToken }: { readonly orderToken: string }) {
    return answers.start === undefined
      ? { order: orders.get(orderToken) as CheckoutOrder }
      : { refused: answers.start };
  },
  async recordTransfer(payment: Payment) {
    const isReplay = recorded.some(({ paymentId }) => paymentId === payment.paymentId);
    if (!isReplay) recorded.push(payment);
    if (answers.crash) throw new Error('the response was lost');
    const refused = answers.record ?? (!isReplay && recorded.length > 1 ? 'order_already_paid' : undefined);
    if (refused !== undefined) return { refused };
    return {
      order: Object.assign(orders.get(payment.orderToken) ?? {}, { orderStatus: OrderStatus.PAID }) as CheckoutOrder,
    };
  },
} satisfies ImportDeps['gateway'];

async function connect(): Promise<void> {
  const secrets = new Uint8Array();
  const connection = { merchantId, provider: 'transfer', mode: 'live' as const, account, secrets };
  await store.connect({ ...connection, connectionId: `con_${++number}` }, 'tester');
}

beforeEach(async () => {
  number += 1;
  account = `DE00TEST${number}`;
  merchantId = `app_live_${number}`;
  recorded = [];
  answers = {};
  await connect();
});

/** Stores an order whose customer chose a transfer. Returns its reference. */
async function createOrder(amount = 10): Promise<string> {
  number += 1;
  const orderToken = `token${number}`;
  const reference = creditorReferenceOf(number);
  orders.set(orderToken, { orderId: `order${number}`, orderAmount: amount, orderCurrency: 'EUR', merchantId });
  await openTransfers(store).choose({ reference, orderToken, merchantId });
  return reference;
}

/** Imports files. Returns the state and the reason of each credit, and the missing statements. */
async function importFiles(contents: readonly string[], { isDryRun = false } = {}): Promise<unknown[]> {
  const statements = openImport({ store, gateway });
  const results: unknown[] = [];
  for (const [index, content] of contents.entries()) {
    const path = join(folder, `statement${index}.xml`);
    await writeFile(path, content);
    for await (const { state, reason } of statements.importFile(path, isDryRun))
      results.push([state, reason].filter(Boolean).join(' '));
  }
  return [...results, ...(await statements.withGapBefore()).map(({ number: of }) => `missing before ${of}`)];
}

const importContent = (content: string, options: { readonly isDryRun?: boolean } = {}) =>
  importFiles([content], options);

const importEntries = (
  entries: readonly TestEntry[],
  { isDryRun = false, ...statement }: Parameters<typeof statementXml>[1] & { readonly isDryRun?: boolean } = {},
) => importContent(statementXml(entries, { account, ...statement }), { isDryRun });

const payBy = (text: string, entry: TestEntry = {}) => ({ ...entry, transactions: [transaction(text)] });

test('a transfer with the exact reference and amount is recorded once, with its date, even if it is read several times', async () => {
  const reference = await createOrder();
  const entry = payBy(reference, { reference: 'B1' });
  expect(await importEntries([entry])).toEqual(['RECORDED']);
  expect(recorded).toMatchObject([
    { paymentId: `${account}/B1/1`, paidOn: '2027-01-31', paidAt: null, amount: 1000n, currency: 'EUR' },
  ]);
  expect(await importEntries([entry])).toEqual(['KNOWN']);
  expect(recorded).toHaveLength(1);
});

test('an acceptance time is the time of the payment', async () => {
  const extra = '<RltdDts><AccptncDtTm>2027-01-29T23:30:00+01:00</AccptncDtTm></RltdDts>';
  const entry = { transactions: [transaction(await createOrder(), { extra })] };
  expect(await importEntries([entry])).toEqual(['RECORDED']);
  expect(recorded[0]?.paidAt?.toISOString()).toBe('2027-01-29T22:30:00.000Z');
});

test('a transfer that a restored gateway has lost is recorded again when its statement is read again', async () => {
  const entry = payBy(await createOrder());
  const setStatus = (orderStatus: OrderStatus) => Object.assign(orders.get(`token${number}`) ?? {}, { orderStatus });
  await importEntries([entry]);
  recorded = [];
  setStatus(OrderStatus.UN_PAID);
  expect(await importEntries([entry], { isDryRun: true })).toEqual(['KNOWN']);
  expect(await importEntries([entry])).toEqual(['RECORDED']);
  expect(recorded).toHaveLength(1);
  setStatus(OrderStatus.PAID);
  expect(await importEntries([entry])).toEqual(['KNOWN']);
  recorded = [];
  setStatus(OrderStatus.UN_PAID);
  answers = { record: 'order_expired' };
  expect(await importEntries([entry])).toEqual(['OWED order_expired']);
  expect(await importEntries([entry])).toEqual(['KNOWN']);
});

test.each([
  [OrderStatus.EXPIRED, {}, 'RECORDED'],
  [OrderStatus.CANCELLED, { record: 'order_cancelled' }, 'OWED order_cancelled'],
])(
  'a transfer that a restored gateway has lost is reported again if its order has the status %s now',
  async (orderStatus, now, outcome) => {
    const entry = payBy(await createOrder());
    await importEntries([entry]);
    recorded = [];
    answers = now;
    Object.assign(orders.get(`token${number}`) ?? {}, { orderStatus });
    expect(await importEntries([entry])).toEqual([outcome]);
  },
);

test('files that overlap record each payment once, without references of the bank', async () => {
  const first = payBy(await createOrder(), { date: '2027-01-30' });
  const second = payBy('Rent', { date: '2027-01-31' });
  const twice = [second, second];
  expect(await importEntries([first, ...twice])).toEqual(['RECORDED', 'LISTED no_reference', 'LISTED no_reference']);
  expect(await importEntries([...twice, first], { number: 2 })).toEqual([
    'LISTED no_reference',
    'LISTED no_reference',
    'KNOWN',
  ]);
  expect(recorded).toHaveLength(1);
});

test('digests of payers are erased by age or order, and a statement that is read again changes nothing', async () => {
  const references = [await createOrder(), 'Rent', await createOrder(), await createOrder()];
  const lastToken = `token${number}`;
  const entries = references.map((text, index) => payBy(text, { reference: `E${index}` }));
  answers = { record: 'order_already_paid' };
  await importEntries(entries.slice(0, 3));
  answers = { start: 'payment_in_progress' };
  await importEntries(entries.slice(3));
  const ofAccount = eq(credits.account, account);
  const change = (changed: object, paymentId: string) =>
    store.run((db) =>
      db
        .update(credits)
        .set(changed)
        .where(and(ofAccount, eq(credits.paymentId, `${account}/${paymentId}`))),
    );
  const erased = async () => {
    const rows = await store.run((db) => db.select().from(credits).where(ofAccount).orderBy(credits.creditId));
    return rows.flatMap(({ paymentId, payerDigest }) => (payerDigest === '' ? paymentId.split('/')[1] : []));
  };
  const { eraseOlderThan, eraseOrder } = openErasure(store);
  const createdAt = new Date(Date.now() - 31 * 86_400_000);
  for (const paymentId of ['E0/1', 'E1/1', 'E3/1']) await change({ createdAt }, paymentId);
  expect(await eraseOlderThan(32)).toBe(0);
  expect(await eraseOlderThan(30)).toBe(2);
  expect(await erased()).toEqual(['E0', 'E1']);
  expect(await eraseOrder(lastToken, 'tester')).toBe(0);
  expect(await eraseOrder(`token${number - 1}`, 'tester')).toBe(1);
  expect(await erased()).toEqual(['E0', 'E1', 'E2']);
  expect((await store.actions()).at(-1)).toMatchObject({ actor: 'tester', action: 'erase', details: { payers: '1' } });
  const states = ['KNOWN', 'LISTED no_reference', 'KNOWN', 'WAITING payment_in_progress'];
  expect(await importEntries(entries)).toEqual(states);
  answers = {};
  await openImport({ store, gateway }).reportWaiting();
});

test('the digests of an order include those of transfers that did not pay it', async () => {
  const reference = await createOrder();
  const entries = [payBy(reference, { reference: 'A1', amount: '9' }), payBy(await createOrder(), { reference: 'A2' })];
  expect(await importEntries(entries)).toEqual(['LISTED another_amount', 'RECORDED']);
  const { eraseOrder } = openErasure(store);
  expect(await eraseOrder(`token${number - 1}`, 'tester')).toBe(1);
  expect(await eraseOrder(`token${number}`, 'tester')).toBe(1);
});

test('requests to providers are erased by age, except for those of a payment that is not finished', async () => {
  const attempt = { merchantId, orderId: 'o', provider: 'demo', method: 'card', currency: 'EUR', locale: 'en' };
  const started = await Promise.all(
    ['finished', 'unfinished'].map((orderToken) =>
      store.start({ ...attempt, orderToken, serviceOrderId: 1, amountHundredths: 1n, sessionEndsAt: new Date() }),
    ),
  );
  for (const row of started) if (row !== undefined) await store.prepareCall(row, 'open', { order_id: 'o' });
  await store.run((db) => db.update(calls).set({ createdAt: new Date(Date.now() - 31 * 86_400_000) }));
  await store.run((db) => db.update(attempts).set({ dueAt: null }).where(eq(attempts.orderToken, 'finished')));
  await openErasure(store).eraseOlderThan(30);
  const left = await store.run((db) => db.select().from(calls));
  expect(left.map(({ attemptId }) => attemptId)).toEqual([started[1]?.attemptId]);
});

test('everything else is listed with a reason, and nothing is reported', async () => {
  const [first, second] = [await createOrder(), await createOrder()];
  const foreign = await createOrder();
  orders.delete(`token${number}`);
  expect(
    await importEntries([
      payBy('Thanks'),
      payBy(creditorReferenceOf(999_999_999)),
      payBy(foreign),
      payBy(first, { amount: '9.99' }),
      payBy(`${first} ${second}`),
      payBy(first, { currency: 'CHF' }),
      payBy(first, { extra: '<RvslInd>true</RvslInd>' }),
    ]),
  ).toEqual([
    'LISTED no_reference',
    'LISTED unknown_order',
    'LISTED unknown_order',
    'LISTED another_amount',
    'LISTED several_orders',
    'LISTED other_currency',
    'LISTED reversal',
  ]);
  expect(recorded).toEqual([]);
});

test('a reference of a merchant with another account pays nothing', async () => {
  const reference = await createOrder();
  account = `${account}X`;
  merchantId = `${merchantId}x`;
  await connect();
  expect(await importEntries([payBy(reference)])).toEqual(['LISTED unknown_order']);
});

test('a payment that the gateway refuses is owed, and reported once', async () => {
  answers = { start: 'order_expired', record: 'order_expired' };
  const entry = payBy(await createOrder());
  expect(await importEntries([entry])).toEqual(['OWED order_expired']);
  expect(await importEntries([entry])).toEqual(['KNOWN']);
});

test('an order that was marked as paid for the same transfer owes nobody money', async () => {
  const entry = payBy(await createOrder());
  Object.assign(orders.get(`token${number}`) ?? {}, { orderStatus: OrderStatus.PAID });
  expect(await importEntries([entry], { isDryRun: true })).toEqual(['LISTED already_paid']);
  expect(await importEntries([entry])).toEqual(['LISTED already_paid']);
  await openImport({ store, gateway }).reportWaiting();
  expect(recorded).toEqual([]);
});

test('a payment that paid its order, but whose response was lost, is recorded', async () => {
  const entry = payBy(await createOrder());
  answers = { crash: true };
  expect(await importEntries([entry])).toEqual(['WAITING the response was lost']);
  Object.assign(orders.get(`token${number}`) ?? {}, { orderStatus: OrderStatus.PAID });
  answers = { start: 'order_already_paid' };
  expect(await importEntries([entry])).toEqual(['RECORDED']);
});

test('a payment that the gateway rejects without storing it is listed for a person, and is not owed', async () => {
  answers = { record: 'invalid_request' };
  expect(await importEntries([payBy(await createOrder())])).toEqual(['LISTED invalid_request']);
});

test('while another payment is in progress, a transfer waits, and is reported afterwards', async () => {
  answers = { start: 'payment_in_progress' };
  expect(await importEntries([payBy(await createOrder())])).toEqual(['WAITING payment_in_progress']);
  await openImport({ store, gateway }).reportWaiting();
  expect(recorded).toEqual([]);
  answers = {};
  await openImport({ store, gateway }).reportWaiting();
  await openImport({ store, gateway }).reportWaiting();
  expect(recorded).toHaveLength(1);
});

test('after a lost response, a payment is reported again under the same id, and a duplicate never', async () => {
  answers = { crash: true };
  const reference = await createOrder();
  const entries = [payBy(reference, { reference: 'A' }), payBy(reference, { reference: 'B', date: '2027-02-02' })];
  expect(await importEntries(entries)).toEqual(['WAITING the response was lost', 'LISTED possible_duplicate']);
  answers = {};
  expect(await importEntries(entries)).toEqual(['RECORDED', 'LISTED possible_duplicate']);
  expect(recorded).toHaveLength(1);
});

test('after a crash between the report and its storage, an equal payment of another file is not reported', async () => {
  const reference = await createOrder();
  const path = join(folder, 'crash.xml');
  await writeFile(path, statementXml([payBy(reference, { reference: 'A' })], { account }));
  const unlessDead = <Result>(work: () => Promise<Result>) =>
    recorded.length > 0 ? Promise.reject(new Error('crashed')) : work();
  const dying: ImportDeps['store'] = {
    run: (statement) => unlessDead(() => store.run(statement)),
    first: (statement) => unlessDead(() => store.first(statement)),
    log: (...entry) => unlessDead(() => store.log(...entry)),
  };
  await expect(Array.fromAsync(openImport({ store: dying, gateway }).importFile(path, false))).rejects.toThrow(
    'crashed',
  );
  expect(await importEntries([payBy(reference, { reference: 'B' })])).toEqual(['LISTED possible_duplicate']);
  expect(recorded).toHaveLength(1);
});

test('camt.053 after camt.054 is rejected, and after the account is connected again, equal payments are listed', async () => {
  const entry = payBy(await createOrder());
  expect(await importEntries([{ ...entry, reference: 'N1' }], { namespace: 'camt.054.001.08' })).toEqual(['RECORDED']);
  await expect(importEntries([{ ...entry, reference: 'S1' }])).rejects.toThrow('statements of the kind camt.054');
  const [connection] = await store.listConnections(merchantId);
  await store.disconnect(connection?.connectionId ?? '', 'tester');
  await connect();
  expect(await importEntries([{ ...entry, reference: 'S1' }])).toEqual(['LISTED possible_duplicate']);
  expect(recorded).toHaveLength(1);
});

test('a duplicate of a transfer that is owed is not owed again after the digest of its payer was erased', async () => {
  answers = { record: 'order_expired' };
  const entry = payBy(await createOrder());
  const notified = { ...entry, reference: 'N1' };
  expect(await importEntries([notified], { namespace: 'camt.054.001.08' })).toEqual(['OWED order_expired']);
  expect(await openErasure(store).eraseOrder(`token${number}`, 'tester')).toBe(1);
  const [connection] = await store.listConnections(merchantId);
  await store.disconnect(connection?.connectionId ?? '', 'tester');
  await connect();
  expect(await importEntries([{ ...entry, reference: 'S1' }])).toEqual(['LISTED possible_duplicate']);
});

test('a reference of the bank is listed if it is used again for another amount, order or time', async () => {
  const first = payBy(await createOrder(), { reference: 'B1' });
  await importEntries([first]);
  const others = [
    payBy(await createOrder(20), { reference: 'B1', amount: '20' }),
    payBy(await createOrder(), { reference: 'B1' }),
    { ...first, date: '2027-02-06' },
  ];
  // Two files can give a booking dates that are up to 5 days apart.
  expect(await importEntries([{ ...first, date: '2027-02-05' }])).toEqual(['KNOWN']);
  expect(await importEntries(others)).toEqual(others.map(() => 'LISTED reference_reused'));
  expect(recorded).toHaveLength(1);
});

test('a file of another account, or one that is not complete, changes nothing', async () => {
  const entry = payBy(await createOrder());
  await expect(importEntries([entry], { account: 'DE00OTHER' })).rejects.toThrow('No merchant has connected');
  const content = statementXml([entry], { account });
  await expect(importContent(content.slice(0, -1))).rejects.toThrow('not well-formed');
  await expect(openImport({ store, gateway }).importFile(join(folder, 'none'), false).next()).rejects.toThrow(
    "can't be opened",
  );
  expect(recorded).toEqual([]);
  expect(await importContent(content)).toEqual(['RECORDED']);
});

test('a dry run shows what would be recorded, and stores nothing', async () => {
  const entries = [payBy(await createOrder()), payBy('Thanks')];
  expect(await importEntries(entries, { isDryRun: true })).toEqual(['MATCHED', 'LISTED no_reference']);
  expect(recorded).toEqual([]);
  expect(await importEntries(entries, { namespace: 'camt.054.001.08' })).toEqual(['RECORDED', 'LISTED no_reference']);
  expect(await importEntries(entries, { namespace: 'camt.054.001.08', isDryRun: true })).toEqual([
    'KNOWN',
    'LISTED no_reference',
  ]);
});

/** Returns a statement without credits that was written in February. */
const numbered = (of: number, day: string) =>
  statementXml([], { account, number: of }).replace('2027-02-01', `2027-02-${day}`);

test('a missing statement is reported until it has been read', async () => {
  expect(await importContent(numbered(7, '01'))).toEqual([]);
  expect(await importContent(numbered(8, '02'))).toEqual([]);
  expect(await importContent(numbered(10, '04'))).toEqual(['missing before 10']);
  expect(await importContent(numbered(9, '03'))).toEqual([]);
  expect(await importContent(numbered(10, '04'))).toEqual([]);
});

test.each([true, false])(
  'no statement is missing that another file has, in any order (dry run: %s)',
  async (isDryRun) => {
    await importContent(numbered(7, '01'));
    expect(await importFiles([numbered(9, '03'), numbered(8, '02')], { isDryRun })).toEqual([]);
    expect(await importFiles([numbered(12, '06'), numbered(9, '03'), numbered(8, '02')], { isDryRun })).toEqual([
      'missing before 12',
    ]);
  },
);

test('a dry run shows that only one of several transfers pays an order', async () => {
  const reference = await createOrder();
  const transactions = [transaction(reference), transaction(reference, { payer: 'Max Mustermann' })];
  const entries = transactions.map((text) => ({ transactions: [text] }));
  expect(await importEntries(entries, { isDryRun: true })).toEqual(['MATCHED', 'LISTED already_paid']);
});

test('an account that was connected again keeps the kind of a statement that is read again', async () => {
  const csv = `account,date,amount,currency,text\n${account},2027-01-31,1,EUR,Rent\n`;
  expect(await importContent(csv)).toEqual(['LISTED no_reference']);
  const [connection] = await store.listConnections(merchantId);
  await store.disconnect(connection?.connectionId ?? '', 'tester');
  await connect();
  expect(await importContent(csv)).toEqual(['LISTED no_reference']);
  await expect(importEntries([])).rejects.toThrow('statements of the kind csv');
});

test('a person assigns a listed entry to an order of the same merchant, once, and the log says who', async () => {
  await createOrder();
  const orderToken = `token${number}`;
  expect(await importEntries([payBy('Thanks', { reference: 'B1' })])).toEqual(['LISTED no_reference']);
  const statements = openImport({ store, gateway });
  const path = join(folder, 'statement0.xml');
  const [listed] = await Array.fromAsync(statements.importFile(path, false));
  const creditId = Number(listed?.creditId);
  orders.set('foreign', { ...orders.get(orderToken), merchantId: 'app_live_other' });
  expect(await statements.assign(creditId, 'foreign', 'tester')).toMatchObject({ reason: 'unknown_order' });
  expect(await statements.assign(creditId, orderToken, 'tester')).toMatchObject({ state: 'RECORDED' });
  expect(await statements.assign(creditId, orderToken, 'tester')).toMatchObject({ state: 'KNOWN' });
  expect(await statements.assign(999_999, orderToken, 'tester')).toMatchObject({ reason: 'unknown_entry' });
  expect(recorded).toMatchObject([{ orderToken, paymentId: `${account}/B1/1` }]);
  const assigned = (await store.actions()).filter(({ action }) => action === 'assign');
  expect(assigned.at(-1)).toMatchObject({ actor: 'tester', merchantId, details: { payment_id: `${account}/B1/1` } });
});

test('an entry that equals an assigned one without a reference is listed as a possible duplicate', async () => {
  await createOrder();
  const notified = payBy('Thanks', { reference: 'N1' });
  expect(await importEntries([notified], { namespace: 'camt.054.001.08' })).toEqual(['LISTED no_reference']);
  const isListed = eq(credits.paymentId, `${account}/N1/1`);
  const credit = await store.first((db) => db.select().from(credits).where(isListed));
  const assigned = await openImport({ store, gateway }).assign(Number(credit?.creditId), `token${number}`, 'tester');
  expect(assigned).toMatchObject({ state: 'RECORDED' });
  const [connection] = await store.listConnections(merchantId);
  await store.disconnect(connection?.connectionId ?? '', 'tester');
  await connect();
  const other = { reference: 'S2', transactions: [transaction('Thanks', { payer: 'Max Mustermann' })] };
  expect(await importEntries([payBy('Thanks', { reference: 'S1' }), other])).toEqual([
    'LISTED possible_duplicate',
    'LISTED no_reference',
  ]);
});

test('an entry that was assigned waits for that order, although its text names another one', async () => {
  const entry = payBy(await createOrder(20), { reference: 'B1' });
  await createOrder();
  expect(await importEntries([entry])).toEqual(['LISTED another_amount']);
  const isListed = eq(credits.paymentId, `${account}/B1/1`);
  const credit = await store.first((db) => db.select().from(credits).where(isListed));
  const statements = openImport({ store, gateway });
  answers = { start: 'payment_in_progress' };
  const waiting = await statements.assign(Number(credit?.creditId), `token${number}`, 'tester');
  expect(waiting).toMatchObject({ state: 'WAITING' });
  expect(await importEntries([entry])).toEqual(['WAITING payment_in_progress']);
  answers = {};
  await statements.reportWaiting();
  expect(recorded).toContainEqual(expect.objectContaining({ orderToken: `token${number}` }));
});

test('payments assign says that an entry waits, or was reported before', async () => {
  await createOrder();
  const orderToken = 'a'.repeat(32);
  orders.set(orderToken, orders.get(`token${number}`) ?? {});
  await importEntries([payBy('Thanks', { reference: 'B1' })]);
  const isListed = eq(credits.paymentId, `${account}/B1/1`);
  const credit = await store.first((db) => db.select().from(credits).where(isListed));
  const assign = async () => {
    const lines: string[] = [];
    const program = new Command();
    const output = { print: (line: string) => void lines.push(line), actor: 'tester' };
    addStatementCommands(program, (work) => work({ store, gateway }), output);
    await program.parseAsync(['assign', `${credit?.creditId}`, orderToken], { from: 'user' });
    return lines.join('\n');
  };
  answers = { start: 'payment_in_progress' };
  expect(await assign()).toContain('waits: payment_in_progress. The checkout tries again each minute.');
  expect(await importEntries([payBy('Thanks', { reference: 'B1' })])).toEqual(['WAITING payment_in_progress']);
  await expect(assign()).rejects.toThrow('was reported before: WAITING.');
  answers = {};
  await openImport({ store, gateway }).reportWaiting();
});

test('an entry that two people assign at the same time is reported for one order', async () => {
  await createOrder();
  await createOrder();
  const tokens = [`token${number - 1}`, `token${number}`];
  await importEntries([payBy('Thanks', { reference: 'B1' })]);
  const statements = openImport({ store, gateway });
  const isListed = eq(credits.paymentId, `${account}/B1/1`);
  const find = () => store.first((db) => db.select().from(credits).where(isListed));
  const creditId = (await find())?.creditId ?? 0;
  const assigned = await Promise.all(tokens.map((token) => statements.assign(creditId, token, 'tester')));
  expect(assigned.map(({ state }) => state).toSorted()).toEqual(['KNOWN', 'RECORDED']);
  expect(assigned.find(({ state }) => state === 'KNOWN')?.reason).toMatch(/^(WAITING|RECORDED)$/);
  expect(recorded).toEqual([expect.objectContaining({ orderToken: (await find())?.orderToken })]);
});
