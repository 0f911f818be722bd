import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { createEncryption } from '@order-gateway/runtime/encryption';
import { Command } from 'commander';
import { eq, sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { addRefundCommands } from '../src/cli/refunds.ts';
import { openGateway } from '../src/gateway/gateway.ts';
import { accountReader } from '../src/providers/accounts.ts';
import { createProviders } from '../src/providers/all.ts';
import { attempts, connections, credits } from '../src/store/schema.ts';
import { createStripeStandIn } from '../testing/stripe-stand-in.ts';
import { testSecretsKey, useWorld } from './helpers/world.ts';

const stripe = createStripeStandIn();
const world = useWorld('live', stripe.send);
const refundRoute = 'POST /v1/refunds';

/** Creates an order of 10 whose customer has chosen to pay at Stripe. */
async function started(orderId: string, order_currency = 'EUR') {
  await world.connect('stripe', 'acct_stand_in', stripe.secrets);
  const orderToken = await world.createOrder(orderId, { order_amount: 10, order_currency });
  await world.post(`/pay/${orderToken}`);
  return { orderToken, attempt: await world.store.newest(orderToken) };
}

/** Creates an order of 10 that a card paid. Returns its payment at Stripe. */
async function paid(orderId: string, order_currency?: string) {
  const { orderToken, attempt } = await started(orderId, order_currency);
  const intent = stripe.pay(attempt?.sessionId ?? '');
  await world.advance(attempt?.attemptId ?? '');
  expect(await world.findOrder(orderId)).toMatchObject({ order_status: 'PAID' });
  return { intent, orderToken, attempt };
}

/** Creates an order of 10 of which 9 are paid. The gateway refuses the payment once its attempt continues. */
async function underpaid(orderId: string) {
  const { orderToken, attempt } = await started(orderId);
  const intent = stripe.pay(attempt?.sessionId ?? '', { amount: 900 });
  Object.assign(intent, { status: 'succeeded', amount_received: 900 });
  return { orderToken, attemptId: attempt?.attemptId ?? '', intent };
}

const request = async (orderId: string, refund: object) =>
  Object(await (await world.call('POST', `/order/${orderId}/refunds`, refund)).json());

/** Makes the providers' lists due that were read up to now. */
const readListsAgain = () =>
  world.store.run((db) =>
    db.update(connections).set({ reversedUntil: sql`least(${connections.reversedUntil}, now() - interval '61 s')` }),
  );

/** Makes pending refunds and reads the lists until the refunds and disputes of an order are these. */
const expectReversals = (orderId: string, expected: object) =>
  expect
    .poll(async () => {
      await readListsAgain();
      await world.refunds.makePending();
      await world.refunds.reportListed();
      return world.findOrder(orderId);
    })
    .toMatchObject(expected);

const madeOf = (payment: { readonly id: string }) =>
  stripe.refunds.filter(({ payment_intent }) => payment_intent === payment.id);

test('the refunds that a merchant requests are made once each, and reported', async () => {
  const { intent, attempt } = await paid('parts');
  expect(await request('parts', { refund_id: 'r-1', refund_amount: 4 })).toMatchObject({ status: 'PENDING' });
  expect(await request('parts', { refund_id: 'r-2' })).toMatchObject({ status: 'PENDING', amount: 6 });
  const [first, second] = [
    { refund_id: 'r-1', status: 'SUCCEEDED', amount: 4 },
    { refund_id: 'r-2', status: 'SUCCEEDED', amount: 6 },
  ];
  await expectReversals('parts', { refunded_amount: 10, refunds: [first, second] });
  expect(madeOf(intent)).toMatchObject([
    { amount: 400, metadata: { order_id: 'parts', refund_id: 'r-1', attempt_id: attempt?.attemptId } },
    { amount: 600, metadata: { refund_id: 'r-2' } },
  ]);
});

test('an order that a gateway with a wrong clock created is paid and refunded', async () => {
  const { attempt } = await started('wrong-clock');
  const intent = stripe.pay(attempt?.sessionId ?? '');
  const later = "update orders set created_at = now() + interval '10 minutes' where order_id = 'wrong-clock'";
  await runQuery(world.ownerUrl, later);
  await world.advance(attempt?.attemptId ?? '');
  expect(await world.findOrder('wrong-clock')).toMatchObject({ order_status: 'PAID', payment_id: intent.id });
  await request('wrong-clock', { refund_id: 'r-1' });
  await expectReversals('wrong-clock', { refunded_amount: 10, refunds: [{ refund_id: 'r-1', status: 'SUCCEEDED' }] });
  expect(madeOf(intent)).toHaveLength(1);
});

test.each(['effect without response', '500', '429'] as const)(
  'a refund that ends with %s, and then fails again, is made once',
  async (mishap) => {
    const orderId = `refund-${mishap.replaceAll(' ', '-')}`;
    const { intent } = await paid(orderId);
    stripe.misbehave(refundRoute, mishap, '500');
    await request(orderId, { refund_id: 'r-1' });
    await expectReversals(orderId, { refunded_amount: 10, refunds: [{ refund_id: 'r-1', status: 'SUCCEEDED' }] });
    expect(madeOf(intent)).toHaveLength(1);
    // Misbehaviour that was not used must not affect other tests.
    expect(stripe.drain(refundRoute)).toHaveLength(mishap === 'effect without response' ? 1 : 0);
  },
);

test('a partial refund whose amount the provider cannot count fails, instead of refunding another amount', async () => {
  const { intent } = await paid('ariary', 'MGA');
  await request('ariary', { refund_id: 'r-1', refund_amount: 2.5 });
  await expectReversals('ariary', { refunds: [{ refund_id: 'r-1', status: 'FAILED', reason: 'amount_too_precise' }] });
  expect(madeOf(intent)).toEqual([]);
  await request('ariary', { refund_id: 'r-2', refund_amount: 2 });
  await expectReversals('ariary', { refunded_amount: 2 });
  expect(madeOf(intent)).toMatchObject([{ amount: 2 }]);
});

test('a refund that the provider refuses fails with its code, and the amount can be refunded again', async () => {
  const { intent } = await paid('refused');
  stripe.misbehave(refundRoute, 'refused');
  await request('refused', { refund_id: 'r-1' });
  await expectReversals('refused', { refunds: [{ status: 'FAILED', reason: 'refused_on_demand' }] });
  expect(await request('refused', { refund_id: 'r-2' })).toMatchObject({ status: 'PENDING', amount: 10 });
  await expectReversals('refused', { refunded_amount: 10 });
  expect(madeOf(intent)).toHaveLength(1);
});

test('refunds and disputes that are made at the provider are reported, and so are their later statuses', async () => {
  const { intent } = await paid('at-stripe');
  await stripe.refundByHand(intent.id, 300);
  const [made] = madeOf(intent);
  await expectReversals('at-stripe', { refunds: [{ refund_id: made?.id, status: 'SUCCEEDED', amount: 3 }] });
  if (made !== undefined) stripe.failRefund(made);
  const failed = { refund_id: made?.id, status: 'FAILED', reason: 'expired_or_canceled_card' };
  await expectReversals('at-stripe', { refunds: [failed] });
  stripe.dispute(intent, 'needs_response');
  await expectReversals('at-stripe', { disputes: [{ status: 'OPEN', amount: 10 }] });
  expect(await request('at-stripe', { refund_id: 'r-1' })).toMatchObject({ code: 'refund_exceeds_payment' });
  stripe.dispute(intent, 'won');
  await expectReversals('at-stripe', { disputes: [{ status: 'WON' }] });
});

test('what happened at the provider while no checkout could read it for two days is reported', async () => {
  const { intent, attempt } = await paid('outage');
  const twoDaysAgo = Date.now() - 2 * 86_400_000;
  await stripe.refundByHand(intent.id, 300);
  Object.assign(stripe.events.at(-1) ?? {}, { created: twoDaysAgo / 1_000 });
  await world.store.resetList(attempt?.connectionId ?? '', 'reversed', new Date(twoDaysAgo));
  // The list of attempts was read in that time, and the first read of the list of refunds fails.
  stripe.misbehave('GET /v1/events', '500', '500');
  await expectReversals('outage', { refunds: [{ status: 'SUCCEEDED', amount: 3 }] });
});

test('a payment whose refunds cannot be read does not keep those of others from being reported', async () => {
  const unreadable = await paid('unreadable');
  const { intent } = await paid('readable');
  await stripe.refundByHand(unreadable.intent.id, 100);
  const [made] = madeOf(unreadable.intent);
  Object.assign(made ?? {}, { amount: 1.5 });
  await stripe.refundByHand(intent.id, 200);
  await expectReversals('readable', { refunds: [{ amount: 2 }] });
  // The payment is looked at again after growing pauses, and the list is read further.
  const { attemptId = '', connectionId = '' } = unreadable.attempt ?? {};
  await expect.poll(async () => (await world.store.find(attemptId))?.failures).toBeGreaterThan(0);
  const readUntil = (await world.store.findConnection(`${connectionId}`))?.reversedUntil.getTime() ?? 0;
  await readListsAgain();
  await world.refunds.reportListed();
  const connection = await world.store.findConnection(`${connectionId}`);
  expect(connection?.reversedUntil.getTime()).toBeGreaterThan(readUntil);
  Object.assign(made ?? {}, { amount: 100 });
  await expectReversals('unreadable', { refunds: [{ amount: 1 }] });
});

test('a payment that the gateway refused is no longer owed when its refund was made', async () => {
  const { intent, attemptId } = await underpaid('owed');
  await world.advance(attemptId);
  await expectReversals('owed', {
    refused_payments: [{ payment_id: intent.id, code: 'payment_mismatch', refunded_at: expect.any(String) }],
  });
  expect(madeOf(intent)).toHaveLength(1);
});

test('the part of an authorisation that the merchant did not capture is no refund', async () => {
  const { attempt } = await started('part-captured');
  const intent = stripe.pay(attempt?.sessionId ?? '');
  stripe.captureByHand(intent, 600);
  await world.advance(attempt?.attemptId ?? '');
  const refused = { payment_id: intent.id, code: 'payment_mismatch', refunded_at: expect.any(String) };
  await expectReversals('part-captured', { refused_payments: [refused] });
  expect(await world.findOrder('part-captured')).toMatchObject({ refunds: [{ amount: 6 }] });
  expect(madeOf(intent)).toHaveLength(1);
});

test('a refused payment is not refunded while its dispute is open or lost, but once it is won', async () => {
  const { intent, attemptId } = await underpaid('disputed');
  stripe.dispute(intent, 'needs_response');
  expect(await world.advance(attemptId)).toMatchObject({ state: 'OWED', failures: 0 });
  expect(await world.findOrder('disputed')).toMatchObject({ disputes: [{ status: 'OPEN' }] });
  stripe.dispute(intent, 'lost');
  expect(await world.advance(attemptId)).toMatchObject({ state: 'REFUNDED' });
  const refused = { payment_id: intent.id, code: 'payment_mismatch' };
  const returned = { refused_payments: [{ ...refused, refunded_at: expect.any(String) }] };
  expect(await world.findOrder('disputed')).toMatchObject({ ...returned, disputes: [{ status: 'LOST' }] });
  expect(madeOf(intent)).toEqual([]);
  stripe.dispute(intent, 'won');
  await expectReversals('disputed', { ...returned, disputes: [{ status: 'WON' }], refunds: [{ amount: 9 }] });
  await expect.poll(() => world.store.find(attemptId)).toMatchObject({ state: 'REFUNDED', dueAt: null });
  expect(madeOf(intent)).toHaveLength(1);
});

test('a refused payment whose refund failed is listed for a person, and not refunded again', async () => {
  const { intent, attemptId, orderToken } = await underpaid('refund-failed');
  await world.advance(attemptId);
  await expect.poll(() => world.store.find(attemptId)).toMatchObject({ state: 'REFUNDED' });
  const { run, listed } = refundCommands();
  expect(await listed(intent.id)).toBeUndefined();
  const [made] = madeOf(intent);
  if (made !== undefined) stripe.failRefund(made);
  intent.latest_charge.refunded = false;
  await expectReversals('refund-failed', { refunds: [{ status: 'FAILED' }] });
  // It keeps the key of the account, and is counted as owed.
  await expect.poll(() => world.store.find(attemptId)).toMatchObject({ state: 'OWED', dueAt: expect.any(Date) });
  expect(await listed(intent.id)).toMatchObject({ refund_id: attemptId, amount: '9.00 EUR', order_token: orderToken });
  await run('refunded', orderToken, attemptId);
  expect(await listed(intent.id)).toBeUndefined();
  const refused = { payment_id: intent.id, refunded_at: expect.any(String) };
  expect(await world.findOrder('refund-failed')).toMatchObject({ refused_payments: [refused] });
  await run('refunded', orderToken, attemptId, '--failed');
  expect(await listed(intent.id)).toMatchObject({ refund_id: attemptId });
  expect(await world.store.find(attemptId)).toMatchObject({ state: 'OWED', dueAt: expect.any(Date) });
  await run('refunded', orderToken, attemptId);
  expect(await world.store.find(attemptId)).toMatchObject({ state: 'REFUNDED', dueAt: null });
  expect(madeOf(intent)).toHaveLength(1);
});

test('a person refunds what a lost dispute has not returned of a refused payment', async () => {
  const { intent, attemptId, orderToken } = await underpaid('partly-disputed');
  stripe.dispute({ ...intent, amount: 300 }, 'needs_response');
  await world.advance(attemptId);
  const { run, listed } = refundCommands();
  expect(await listed(intent.id)).toBeUndefined();
  stripe.dispute(intent, 'lost');
  expect(await world.advance(attemptId)).toMatchObject({ state: 'OWED' });
  const isOld = { createdAt: new Date('2026-01-01') };
  await world.store.run((db) => db.update(attempts).set(isOld).where(eq(attempts.attemptId, attemptId)));
  expect(await listed(intent.id)).toMatchObject({ refund_id: attemptId, amount: '6.00 EUR' });
  await run('refunded', orderToken, attemptId);
  expect(await listed(intent.id)).toBeUndefined();
  const refused = { payment_id: intent.id, refunded_at: expect.any(String) };
  expect(await world.findOrder('partly-disputed')).toMatchObject({ refused_payments: [refused] });
  expect(madeOf(intent)).toEqual([]);
});

test('a person is not asked to refund a card payment whose recording was not confirmed', async () => {
  const { intent, attempt } = await paid('unconfirmed');
  const { attemptId = '' } = attempt ?? {};
  const isLater = { state: 'CAPTURED', dueAt: new Date(Date.now() + 3_600_000) } as const;
  await world.store.run((db) => db.update(attempts).set(isLater).where(eq(attempts.attemptId, attemptId)));
  await request('unconfirmed', { refund_id: 'r-1' });
  expect(await refundCommands().listed(intent.id)).toBeUndefined();
  await expectReversals('unconfirmed', { refunds: [{ refund_id: 'r-1', status: 'SUCCEEDED' }] });
  expect(await world.advance(attemptId)).toMatchObject({ state: 'RECORDED' });
});

test('a refund that failed because of a dispute is made again, under another key, once the dispute is won', async () => {
  const { intent, attemptId } = await underpaid('failed-in-dispute');
  await world.advance(attemptId);
  await expect.poll(() => world.store.find(attemptId)).toMatchObject({ state: 'REFUNDED' });
  const [made] = madeOf(intent);
  if (made !== undefined) stripe.failRefund(made);
  intent.latest_charge.refunded = false;
  stripe.dispute(intent, 'won');
  const refunds = [{ status: 'FAILED' }, { status: 'SUCCEEDED', amount: 9 }];
  await expectReversals('failed-in-dispute', { refunds });
  expect(madeOf(intent)).toHaveLength(2);
});

test('the webhook of a refund or a dispute starts a look at the payment', async () => {
  const { intent, attempt } = await paid('webhook');
  const events = stripe.events.length;
  await stripe.refundByHand(intent.id, 300);
  stripe.dispute(intent, 'needs_response');
  const { body, headers } = stripe.webhook();
  // No list mentions the payment.
  stripe.events.splice(events);
  const path = `/hooks/${attempt?.connectionId}`;
  const hook = await fetch(`http://127.0.0.1:${world.port}${path}`, { method: 'POST', body, headers });
  expect(hook.status).toBe(204);
  await expect
    .poll(() => world.findOrder('webhook'))
    .toMatchObject({ refunds: [{ amount: 3 }], disputes: [{ status: 'OPEN' }] });
});

test('the key of a disconnected account is erased once its refunds have ended, and nothing tries to use it', async () => {
  const { intent, attempt } = await paid('disconnected');
  const { attemptId = '', connectionId } = attempt ?? {};
  const isKept = async () => {
    await world.refunds.eraseKeys();
    return (await world.store.findConnection(`${connectionId}`))?.secrets.length !== 0;
  };
  await stripe.refundByHand(intent.id, 300);
  const [made] = madeOf(intent);
  Object.assign(made ?? {}, { status: 'pending' });
  await expectReversals('disconnected', { refunds: [{ status: 'PENDING' }] });
  const disconnectedAt = new Date(Date.now() - 7_200_000);
  await world.store.run((db) => db.update(connections).set({ disconnectedAt }));
  expect(await isKept()).toBe(true);
  Object.assign(made ?? {}, { status: 'succeeded' });
  await expectReversals('disconnected', { refunds: [{ status: 'SUCCEEDED' }] });
  await expect.poll(isKept).toBe(false);
  const { body, headers } = stripe.webhook();
  const hook = await fetch(`http://127.0.0.1:${world.port}/hooks/${connectionId}`, { method: 'POST', body, headers });
  expect(hook.status).toBe(404);
  await world.store.run((db) => db.update(attempts).set({ state: 'ENDED' }).where(eq(attempts.attemptId, attemptId)));
  await world.get(`/back/${attemptId}`);
  expect(await world.store.find(attemptId)).toMatchObject({ state: 'ENDED', dueAt: null, failures: 0 });
});

/** Returns the commands with which a person refunds payments. */
function refundCommands() {
  const gateway = openGateway(world.options.gatewayGrpcUrl, world.options.credentials, world.options.patience);
  const { store } = world;
  const providers = createProviders(store, { baseUrl: () => world.baseUrl, send: stripe.send });
  const accountOf = accountReader(store, createEncryption<string>([testSecretsKey]));
  const lines: string[] = [];
  const output = { print: (line: string) => lines.push(line), actor: 'tester' };
  /** Runs a command of `payments`. Returns the last line that it printed. */
  const run = async (...args: string[]) => {
    const program = new Command();
    addRefundCommands(program, (work) => work({ store, gateway, providers, accountOf }), output);
    await program.parseAsync(args, { from: 'user' });
    return lines.at(-1) ?? '';
  };
  /** Returns what `payments refunds` lists of a payment. */
  const listed = async (paymentId: string) => {
    lines.length = 0;
    await run('refunds', '--json');
    return lines.map((line) => JSON.parse(line)).find(({ payment_id }) => payment_id === paymentId);
  };
  return { gateway, run, listed };
}

/** Creates an order of 10.00 that a transfer paid, and the commands with which a person refunds it. */
async function transferred(orderId: string) {
  const orderToken = await world.createOrder(orderId, { order_amount: 10, order_currency: 'EUR' });
  const { gateway, run, listed } = refundCommands();
  const transfer = (paymentId: string) =>
    gateway.recordTransfer({
      orderToken,
      attemptId: '',
      paymentId,
      paidAt: new Date(),
      amount: 1_000n,
      currency: 'EUR',
    });
  await transfer(`${orderId}-1`);
  return { orderToken, transfer, run, listed };
}

test('a person returns a transfer, and marks the refund as made', async () => {
  const { orderToken, run } = await transferred('transfer');
  expect(await request('transfer', { refund_id: 'r-1' })).toMatchObject({ status: 'PENDING' });
  expect(JSON.parse(await run('refunds', '--json'))).toMatchObject({ refund_id: 'r-1', order_token: orderToken });
  await run('refunded', orderToken, 'r-1');
  expect(await world.findOrder('transfer')).toMatchObject({ refunded_amount: 10, refunds: [{ status: 'SUCCEEDED' }] });
  await expect(run('refunded', orderToken, 'r-1')).rejects.toThrow('No refund r-1');
  expect((await world.store.actions()).at(-1)).toMatchObject({ actor: 'tester', action: 'refunded' });
});

test('a refund that the bank returned fails, before or after it was marked as made', async () => {
  const { orderToken, run } = await transferred('returned');
  await request('returned', { refund_id: 'r-1', refund_amount: 4 });
  await run('refunded', orderToken, 'r-1', '--failed');
  await request('returned', { refund_id: 'r-2' });
  await run('refunded', orderToken, 'r-2');
  expect(await world.findOrder('returned')).toMatchObject({ refunded_amount: 10 });
  expect(await run('refunded', orderToken, 'r-2', '--failed')).toContain('the failure of the refund r-2');
  const failed = { status: 'FAILED', reason: 'returned_by_bank' };
  const { refunds, refunded_amount } = await world.findOrder('returned');
  expect([refunds, refunded_amount]).toMatchObject([[failed, { ...failed, amount: 10 }], undefined]);
  expect(await request('returned', { refund_id: 'r-3' })).toMatchObject({ status: 'PENDING', amount: 10 });
  await expect(run('refunded', orderToken, 'r-4', '--failed')).rejects.toThrow('No refund r-4');
});

/** Stores a transfer that the gateway refused for an order. */
function storeOwed(orderToken: string, paymentId: string) {
  const credit = { account: 'DE00', paymentId, amountHundredths: 1_000n, currency: 'EUR', payerDigest: '' };
  const reported = { paidOn: '2026-11-28', orderToken, state: 'OWED', reason: 'order_already_paid' } as const;
  return world.store.run((db) => db.insert(credits).values({ ...credit, ...reported }));
}

test('a transfer whose refusal a restored gateway has lost is marked as returned', async () => {
  const { orderToken, run, listed } = await transferred('refusal-lost');
  await storeOwed(orderToken, 'refusal-lost-2');
  const { refund_id } = await listed('refusal-lost-2');
  await run('refunded', orderToken, refund_id);
  expect(await listed('refusal-lost-2')).toBeUndefined();
});

test('a transfer that is owed is listed although a restored gateway has lost its order', async () => {
  const { run, listed } = refundCommands();
  const lostToken = 'a'.repeat(32);
  await storeOwed(lostToken, 'order-lost');
  const { refund_id, ...refund } = await listed('order-lost');
  expect(refund).toMatchObject({ order_token: lostToken, order_id: '', amount: '10.00 EUR' });
  expect(await run('refunded', lostToken, refund_id)).toBe(
    `Recorded the refund ${refund_id} of the order ${lostToken}.`,
  );
  expect(await listed('order-lost')).toBeUndefined();
});

test('a transfer that is owed is listed until a person marks it as returned', async () => {
  const { orderToken, transfer, run, listed } = await transferred('transferred-twice');
  const paymentId = 'transferred-twice-2';
  expect(await transfer(paymentId)).toMatchObject({ refused: 'order_already_paid' });
  await storeOwed(orderToken, paymentId);
  const { refund_id } = await listed(paymentId);
  expect(refund_id).toMatch(/^entry-\d+$/);
  await expect(run('refunded', orderToken, refund_id, '--failed')).rejects.toThrow('still owed');
  await run('refunded', orderToken, refund_id);
  const { refused_payments, refunds, refunded_amount } = await world.findOrder('transferred-twice');
  expect(refused_payments).toMatchObject([{ payment_id: paymentId, refunded_at: expect.any(String) }]);
  expect([refunds, refunded_amount]).toMatchObject([[{ payment_id: paymentId, status: 'SUCCEEDED' }], undefined]);
  await expect(run('refunded', orderToken, refund_id)).rejects.toThrow(`No refund ${refund_id}`);
  expect(await run('refunded', orderToken, refund_id, '--failed')).toContain(`the failure of the refund ${refund_id}`);
  const [refused] = (await world.findOrder('transferred-twice')).refused_payments as object[];
  expect(refused).not.toHaveProperty('refunded_at');
  expect(await listed(paymentId)).toMatchObject({ refund_id });
  await expect(run('refunded', orderToken, refund_id, '--failed')).rejects.toThrow('still owed');
  await run('refunded', orderToken, refund_id);
  await expectReversals('transferred-twice', {
    refused_payments: [{ payment_id: paymentId, refunded_at: expect.any(String) }],
    refunds: [{ status: 'FAILED', reason: 'returned_by_bank' }, { status: 'SUCCEEDED' }],
  });
});
