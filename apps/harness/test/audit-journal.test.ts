import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AccountId } from '@order-gateway/domain/accounts';
import { createOrderToken } from '@order-gateway/domain/links';
import { formatAmount } from '@order-gateway/domain/money';
import {
  decide,
  decideRefund,
  formatTime,
  newOrder,
  type Order,
  type OrderStatus,
  parseOrder,
} from '@order-gateway/domain/orders';
import { loadFixtures } from '@order-gateway/fixtures';
import { createMerchant, openAccountDirectory } from '@order-gateway/postgres/accounts';
import { openOrderStore, type PostgresOrderStore } from '@order-gateway/postgres/order-store';
import { scanEvents } from '@order-gateway/postgres/orders/operators';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { temporaryFolder } from '../../../tools/test-resources.ts';
import { auditJournal, auditWhenDelivered } from '../src/audit/audit.ts';
import { createJournal, type JournalHead, type JournalRequest, type ShownOrder } from '../src/audit/journal.ts';
import { createOrders } from '../src/workload/orders.ts';

// These tests store orders without a gateway, and journal the calls that would have had these effects.

interface Account {
  readonly id: AccountId;
  readonly clientId: string;
}

let runs = 0;
let url = '';
let store: PostgresOrderStore;
let merchants: [Account, Account];
let checkouts: [Account, Account, Account];
let drop = () => Promise.resolve();

beforeAll(async () => {
  const database = await createMigratedDatabase();
  ({ url, drop } = database);
  const directory = openAccountDirectory({ url, patience: testPatience });
  const account = async (name: string, kind?: 'checkout'): Promise<Account> => {
    const { clientId } = await createMerchant(url, name, kind);
    const lookup = await directory.findAccount(clientId);
    if (lookup.kind !== 'found') throw new Error(lookup.kind);
    return { id: lookup.stored.account.id, clientId };
  };
  merchants = [await account('First'), await account('Second')];
  checkouts = [await account('A', 'checkout'), await account('B', 'checkout'), await account('C', 'checkout')];
  await directory.close();
  store = openOrderStore({ url, patience: testPatience });
});

afterAll(async () => {
  await store.close();
  await drop();
});

/** Starts a journal. Returns functions that store orders in the database and record calls in the journal. */
async function startRun() {
  runs += 1;
  const settings = { seed: runs, metadata_share: 0.5 };
  const head: JournalHead = {
    ...settings,
    client_ids: merchants.map(({ clientId }) => clientId),
    started_at_ms: Date.now(),
  };
  const file = join(await temporaryFolder(), 'journal.ndjson');
  const journal = createJournal(file, head);
  const orderOf = createOrders((await loadFixtures()).validOrder, { ...settings, merchants: merchants.length });
  let calls = 0;

  /** Records a call and, if there is an outcome, its response. */
  const record = (
    number: number | undefined,
    request: JournalRequest,
    outcome?: string,
    shown: readonly ShownOrder[] = [],
    leaseEndsAtMs?: number,
  ) => {
    const call = calls;
    calls += 1;
    const sentMs = Date.now() - head.started_at_ms;
    journal.write([{ call, sentMs, number, request }]);
    if (outcome !== undefined) journal.write([{ call, receivedMs: sentMs, outcome, shown: [...shown], leaseEndsAtMs }]);
  };

  const create = async (number: number): Promise<Order> => {
    const { merchant, fields, metadata = null } = orderOf(number);
    const parsed = parseOrder({ ...fields, order_amount: Number(fields.order_amount) });
    if (!parsed.ok) throw new Error('the order is invalid');
    const merchantId = (merchants[merchant] as Account).id;
    const orderToken = createOrderToken(merchantId, randomBytes);
    const assigned = { merchantId, orderToken, createdAtMs: Date.now(), expiresAtMs: null, metadata };
    const outcome = await store.create(newOrder(parsed.value.fields, assigned), waitLimitMs);
    if (outcome.kind !== 'created') throw new Error(outcome.kind);
    return outcome.order;
  };

  /** Creates an order, and records the call with its response. */
  const created = async (number: number): Promise<Order> => {
    const order = await create(number);
    record(number, { kind: 'create' }, 'created', [shownOf(number, order)]);
    return order;
  };

  /** Pays an order or, if it cannot be paid, stores the refused payment. Returns the request of the call. */
  const pay = async (order: Order, checkout: Account, paymentId: string): Promise<JournalRequest> => {
    const { order_amount: amount, order_currency: currency } = order.fields;
    const payment = { checkoutId: checkout.id, paymentId, paidAtMs: Date.now(), amount, currency };
    const found = await store.findForPayment(order.orderToken, payment, waitLimitMs);
    if (found.kind !== 'found') throw new Error(found.kind);
    const { isKnown, refused, nowMs } = found;
    const decided = decide(found.order, { kind: 'pay', payment: { ...payment, isKnown, refused } }, nowMs);
    if (!decided.ok || decided.value.kind === 'replayed') throw new Error('the payment has been reported before');
    if (decided.value.kind === 'change') await store.change(decided.value.change, waitLimitMs);
    else await store.refusePayment(decided.value.refusal, waitLimitMs);
    const { paidAtMs } = payment;
    return {
      kind: 'pay',
      payment: { checkout: checkout.clientId, paymentId, paidAtMs, amount: formatAmount(amount), currency },
    };
  };
  return { file, record, create, created, pay };
}

/** Returns an order as a response to its merchant shows it. */
function shownOf(number: number, order: Order, status: OrderStatus = 'UN_PAID'): ShownOrder {
  const { serviceOrderId, orderToken, createdAtMs } = order;
  return {
    number,
    status,
    service_order_id: serviceOrderId,
    order_token: orderToken,
    created_at: formatTime(createdAtMs),
  };
}

async function cancel({ merchantId, fields }: Order): Promise<void> {
  const found = await store.findByOrderId(merchantId, fields.order_id, waitLimitMs);
  if (found.kind !== 'found') throw new Error(found.kind);
  const decided = decide(found.order, { kind: 'cancel' }, Date.now());
  if (!decided.ok || decided.value.kind !== 'change') throw new Error('the order cannot be cancelled');
  await store.change(decided.value.change, waitLimitMs);
}

const noErrors = { lost: 0, duplicated: 0, changed: 0, unreadable: 0, unexplained: 0, examples: [] };

test('the audit finds no error if the database has the orders, payments and events of the journal', async () => {
  const { file, record, create, created, pay } = await startRun();
  const [a, b, c] = checkouts;
  const paid = await created(0);
  record(0, { kind: 'create' }, 'replayed', [shownOf(0, paid)]);
  const paidShown = { ...shownOf(0, paid, 'PAID'), paymentId: 'p0' };
  record(0, await pay(paid, a, 'p0'), 'ok', [paidShown]);

  const started = await created(1);
  const attempt = { checkoutId: b.id, attemptId: 'attempt' };
  const lease = await store.startPayment(started, attempt, 900, waitLimitMs);
  if (lease.kind !== 'changed') throw new Error(lease.kind);
  const start = { kind: 'start' as const, attempt: { checkout: b.clientId, attemptId: 'attempt' }, leaseMs: 900_000 };
  record(1, start, 'ok', [shownOf(1, started)], lease.endsAtMs);

  const cancelled = await created(2);
  await cancel(cancelled);
  record(2, { kind: 'cancel' }, 'ok', [shownOf(2, cancelled, 'CANCELLED')]);

  // The response to the cancellation was lost, but the response to the refused payment acknowledges the cancellation.
  const refused = await created(3);
  record(3, { kind: 'cancel' });
  await cancel(refused);
  record(3, await pay(refused, a, 'p3'), 'order_cancelled');

  // Another checkout system may use the same payment_id.
  const paidOnce = await created(4);
  record(4, await pay(paidOnce, a, 'p4'));
  record(4, await pay(paidOnce, c, 'p4'), 'order_already_paid');

  const unacknowledged = await create(5);
  record(5, { kind: 'create' });
  record(undefined, { kind: 'read' }, 'ok', [paidShown, shownOf(5, unacknowledged)]);
  record(undefined, { kind: 'read' }, 'unavailable');

  const counts = {
    acknowledged: 5,
    stored: 6,
    unacknowledged: 1,
    changes: 4,
    undelivered: undefined,
    copies: undefined,
  };
  expect(await auditJournal(file, url)).toEqual({ ...noErrors, ...counts });
});

test('the audit shows lost and unexplained orders and the first invalid line of the journal', async () => {
  const { file, record, created } = await startRun();
  const order = await created(0);
  record(1, { kind: 'create' }, 'created', [{ ...shownOf(1, order), service_order_id: 1 }]);
  record(0, { kind: 'cancel' }, 'ok', [shownOf(0, order, 'CANCELLED')]);
  appendFileSync(file, '{"call":12,"sent\n{}\n');
  const { examples, ...counts } = await auditJournal(file, url);
  expect(counts).toMatchObject({ acknowledged: 2, stored: 1, lost: 1, changed: 0, unexplained: 1, unreadable: 2 });
  expect(examples).toEqual([
    `load-${runs}-1: acknowledged but not stored`,
    expect.stringMatching(/^load-\d+-0: unexplained\ncall +sent/),
    'line 8 of the journal is invalid',
  ]);
});

test('the audit finds a refund that was lost, and one that was made twice', async () => {
  const { file, record, created, pay } = await startRun();
  const checkout = checkouts[0];
  const refund = async (order: Order, refundId: string) => {
    const key = { checkoutId: checkout.id, paymentId: `p-${order.fields.order_id}` };
    const found = await store.findForPayment(order.orderToken, key, waitLimitMs);
    if (found.kind !== 'found') throw new Error(found.kind);
    const requested = { refundId, amount: 1n as Order['fields']['order_amount'], note: undefined };
    const decided = decideRefund(found.order, requested, true, found.nowMs);
    if (!decided.ok || decided.value.kind !== 'reverse') throw new Error('the refund cannot be made');
    await store.changeReversals(decided.value.change, waitLimitMs);
  };
  const [right, lost, doubled] = [await created(0), await created(1), await created(2)];
  for (const [number, order] of [right, lost, doubled].entries()) {
    const paymentId = `p-${order.fields.order_id}`;
    const paid = [{ ...shownOf(number, order, 'PAID'), paymentId }];
    record(number, await pay(order, checkout, paymentId), 'ok', paid);
    record(number, { kind: 'refund', refundId: 'r', amount: '0.01' }, 'created');
  }
  await refund(right, 'r');
  await refund(doubled, 'r');
  await refund(doubled, 'r-again');
  const { unexplained, examples } = await auditJournal(file, url);
  expect([unexplained, examples.length]).toEqual([2, 1]);
});

test('the audit counts webhooks that were rejected, delivered again or not delivered', async () => {
  const { file, record, created, pay } = await startRun();
  const order = await created(0);
  record(0, await pay(order, checkouts[0], 'paid'), 'ok', [{ ...shownOf(0, order, 'PAID'), paymentId: 'paid' }]);
  const [event] = await Array.fromAsync(
    scanEvents(url, { merchantId: order.merchantId, orderIdPrefix: `load-${runs}-` }),
  );
  const { eventId = '', type = '', orderId = '' } = event ?? {};
  const delivered = new Map([[eventId, { orderId, type, copies: 2 }]]);
  expect(await auditWhenDelivered(file, url, { deliveries: delivered, rejected: [] })).toMatchObject({
    ...noErrors,
    undelivered: 0,
    copies: 1,
  });
  const missing = await auditWhenDelivered(file, url, { deliveries: new Map(), rejected: ['the signature is wrong'] });
  const examples = [`${orderId}: order.paid was not delivered`, 'the signature is wrong'];
  expect(missing).toMatchObject({ ...noErrors, undelivered: 2, examples });
  expect(await auditWhenDelivered(file, url, undefined)).toMatchObject({ ...noErrors, undelivered: undefined });
});

test('the audit rejects a journal with an account that is not in the database', async () => {
  const { file, record } = await startRun();
  record(0, { kind: 'end', attempt: { checkout: 'chk_unknown', attemptId: 'attempt' } });
  await expect(auditJournal(file, url)).rejects.toThrow('the account chk_unknown is unknown in the database');
});
