import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { createEncryption } from '@order-gateway/runtime/encryption';
import { eq, sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { paymentsCommands } from '../src/cli/commands.ts';
import { createProviders } from '../src/providers/all.ts';
import { connections } from '../src/store/schema.ts';
import { createMollieStandIn } from '../testing/mollie-stand-in.ts';
import { testSecretsKey, useWorld } from './helpers/world.ts';

const mollie = createMollieStandIn();
const world = useWorld('live', mollie.send);
const captureRoute = 'POST /payments/{id}/captures';
const openRoute = 'POST /payments';

/** Connects the merchant as an operator does, once. */
async function connect(): Promise<void> {
  const { store, baseUrl } = world;
  const providers = createProviders(store, { baseUrl: () => baseUrl, send: mollie.send });
  const encryption = createEncryption<string>([testSecretsKey]);
  const program = paymentsCommands((work) => work({ store, providers, encryption }), {
    print: () => {},
    readSecrets: async () => [mollie.secrets.key],
    actor: 'tester',
  });
  await program.parseAsync(['connect', world.merchant.clientId, 'mollie'], { from: 'user' });
}

/** Chooses a method of Mollie. Returns the attempt, and the address to which the customer is sent. */
async function pay(orderId: string, method = 'card', order: Readonly<Record<string, unknown>> = {}) {
  await connect();
  const orderToken = await world.createOrder(orderId, { order_amount: 12.34, order_currency: 'EUR', ...order });
  const page = await (await world.get(`/pay/${orderToken}`)).text();
  const [id = ''] = page.match(new RegExp(`con_\\w+\\.${method}(?=")`)) ?? [];
  const location = (await world.post(`/pay/${orderToken}`, { method: id })).headers.get('location') ?? '';
  const { attemptId = '', sessionId } = (await world.store.newest(orderToken)) ?? {};
  return { orderToken, page, location, attemptId, sessionId: sessionId ?? '' };
}

const stateOf = async (attemptId: string) => (await world.store.find(attemptId))?.state;

/** Continues an attempt until nothing changes. */
async function completeCapture(attemptId: string, sessionId: string) {
  await world.advance(attemptId);
  expect(await stateOf(attemptId)).toBe('CLAIMED');
  mollie.completeCapture(sessionId);
  await world.advance(attemptId);
}

test('a card is authorised, captured asynchronously and recorded', async () => {
  const { location, attemptId, sessionId } = await pay('card');
  expect(location).toBe(`https://checkout.mollie.example/${sessionId}`);
  const { body } = mollie.requests.findLast(({ route }) => route === openRoute) ?? {};
  expect(body).toMatchObject({
    amount: { currency: 'EUR', value: '12.34' },
    method: 'creditcard',
    captureMode: 'manual',
    metadata: { order_id: 'card', attempt_id: attemptId },
  });
  // Mollie can't reach this address.
  expect(body).not.toHaveProperty('webhookUrl');
  mollie.pay(sessionId);
  await completeCapture(attemptId, sessionId);
  expect(await stateOf(attemptId)).toBe('RECORDED');
  expect(mollie.requests.filter(({ route }) => route === captureRoute)).toHaveLength(1);
  expect(await world.findOrder('card')).toMatchObject({ order_status: 'PAID', payment_id: sessionId });
});

test('a method that the account does not have is not offered; another is paid immediately', async () => {
  const { page, attemptId, sessionId } = await pay('ideal', 'iDEAL');
  expect(page).not.toContain('Bancontact');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  expect(await world.findOrder('ideal')).toMatchObject({ order_status: 'PAID', payment_id: sessionId });
});

test.each([
  ['JPY', 500, '500'],
  ['ISK', 500, '500'],
  ['HUF', 500, '500.00'],
])('an amount in %s is written with its decimals', async (currency, amount, value) => {
  await pay(currency, 'card', { order_amount: amount, order_currency: currency });
  const { body } = mollie.requests.findLast(({ route }) => route === openRoute) ?? {};
  expect(body).toMatchObject({ amount: { currency, value } });
});

test('a webhook needs no signature, because it is only a hint', async () => {
  const { attemptId, sessionId } = await pay('webhook', 'iDEAL');
  const { connectionId } = (await world.store.find(attemptId)) ?? {};
  const hook = (id: string) =>
    fetch(`http://127.0.0.1:${world.port}/hooks/${connectionId}`, {
      method: 'POST',
      body: new URLSearchParams({ id }),
    });
  expect([(await hook('nonsense')).status, (await hook(sessionId)).status]).toEqual([400, 204]);
  expect(await stateOf(attemptId)).toBe('OPEN');
  mollie.pay(sessionId);
  await hook(sessionId);
  await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
});

test('without any webhook, the list of payments is enough', async () => {
  const { attemptId, sessionId } = await pay('listed', 'iDEAL');
  mollie.pay(sessionId);
  const { connectionId } = (await world.store.find(attemptId)) ?? {};
  await world.store.resetList(connectionId ?? '', 'recent', new Date(Date.now() - 61_000));
  await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
});

test.each(['effect without response', '500', '429', '401'] as const)(
  'a capture that ends with %s is retried after a lookup, and made once',
  async (mishap) => {
    const { attemptId, sessionId } = await pay(`capture-${mishap}`);
    mollie.pay(sessionId);
    mollie.misbehave(captureRoute, mishap);
    await world.advance(attemptId);
    await expect.poll(() => mollie.payments.get(sessionId)?._embedded.captures.length).toBe(1);
    mollie.completeCapture(sessionId);
    await world.advance(attemptId);
    await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
  },
);

test.each([
  ['a capture that is refused', () => mollie.misbehave(captureRoute, 'refused'), {}],
  ['an authorisation of another amount', () => {}, { amount: '1.00' }],
])('%s releases the money, and the order can be paid again', async (name, prepare, paid) => {
  const { attemptId, sessionId } = await pay(name);
  mollie.pay(sessionId, paid);
  prepare();
  await world.advance(attemptId);
  expect([await stateOf(attemptId), mollie.payments.get(sessionId)?.status]).toEqual(['ENDED', 'canceled']);
  expect(await world.findOrder(name)).toMatchObject({ order_status: 'UN_PAID' });
});

test('a capture that fails later releases the money, and the order can be paid again', async () => {
  const { attemptId, sessionId } = await pay('capture-failed');
  const payment = mollie.pay(sessionId);
  await world.advance(attemptId);
  Object.assign(payment._embedded.captures[0] ?? {}, { status: 'failed' });
  await world.advance(attemptId);
  expect([await stateOf(attemptId), payment.status]).toEqual(['ENDED', 'canceled']);
  expect(await world.findOrder('capture-failed')).toMatchObject({ order_status: 'UN_PAID' });
});

test('while a payment is captured, its order offers no other way to pay', async () => {
  const { orderToken, page, attemptId, sessionId } = await pay('capturing');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  const shown = await world.get(`/pay/${orderToken}?lang=de`);
  expect(shown.headers.get('location')).toBe(`/back/${attemptId}?lang=de`);
  const [other = ''] = page.match(/con_\w+\.iDEAL(?=")/) ?? [];
  for (const form of [{}, { method: other }])
    expect((await world.post(`/pay/${orderToken}`, form)).headers.get('location')).toBe(`/pay/${orderToken}`);
  expect(await stateOf(attemptId)).toBe('CLAIMED');
});

/** Lets the gateway lose the payment of an order, with its refunds, as a restored one does. */
async function losePayment(orderId: string): Promise<void> {
  for (const table of ['payments', 'pending_refunds'])
    await runQuery(world.ownerUrl, `delete from ${table} where order_id = '${orderId}'`);
  await runQuery(
    world.ownerUrl,
    `update orders set order_status = 'UN_PAID', paid_at = null, payment_id = null, checkout_id = null, reversals = null
     where order_id = '${orderId}'`,
  );
  expect(await world.findOrder(orderId)).toMatchObject({ order_status: 'UN_PAID' });
}

test('an order whose payment a restored gateway has lost is recorded again, and cannot be paid twice', async () => {
  const { orderToken, page, attemptId, sessionId } = await pay('restored', 'iDEAL');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  await losePayment('restored');
  const [other = ''] = page.match(/con_\w+\.card(?=")/) ?? [];
  const before = mollie.payments.size;
  expect((await world.post(`/pay/${orderToken}`, { method: other })).headers.get('location')).toBe(
    `/pay/${orderToken}`,
  );
  expect(await world.findOrder('restored')).toMatchObject({ order_status: 'PAID', payment_id: sessionId });
  expect(mollie.payments.size).toBe(before);
});

test('a lost payment is recorded again although a later attempt of its order has ended', async () => {
  const { orderToken, page, attemptId, sessionId } = await pay('restored-earlier', 'iDEAL');
  const [other = ''] = page.match(/con_\w+\.card(?=")/) ?? [];
  mollie.end(sessionId, 'expired');
  await world.advance(attemptId);
  await world.post(`/pay/${orderToken}`, { method: other });
  const later = await world.store.newest(orderToken);
  mollie.end(later?.sessionId ?? '', 'failed');
  await world.advance(later?.attemptId ?? '');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  expect(await stateOf(attemptId)).toBe('RECORDED');
  await losePayment('restored-earlier');
  const before = mollie.payments.size;
  await world.post(`/pay/${orderToken}`, { method: other });
  expect(await world.findOrder('restored-earlier')).toMatchObject({ order_status: 'PAID', payment_id: sessionId });
  expect(mollie.payments.size).toBe(before);
});

test('the old refunds of a payment that a restored gateway has lost are reported again', async () => {
  const { orderToken, attemptId, sessionId } = await pay('restored-refund', 'iDEAL');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  mollie.refundByHand(sessionId, '2.34');
  const refunds = [{ amount: 2.34, status: 'PENDING' }];
  await expect.poll(() => reversalsOf('restored-refund', attemptId)).toMatchObject({ refunds });
  // No list has it any more.
  Object.assign(mollie.payments.get(sessionId)?._embedded.refunds[0] ?? {}, { createdAt: new Date(0).toISOString() });
  await losePayment('restored-refund');
  await world.post(`/pay/${orderToken}`);
  await expect.poll(() => world.findOrder('restored-refund')).toMatchObject({ order_status: 'PAID', refunds });
});

test('a payment of which the merchant captured only a part at Mollie does not pay its order', async () => {
  const { attemptId, sessionId } = await pay('part-captured');
  mollie.pay(sessionId);
  mollie.captureByHand(sessionId, '2.34');
  await world.advance(attemptId);
  await expect.poll(() => stateOf(attemptId)).toBe('REFUNDED');
  const refused_payments = [{ payment_id: sessionId, code: 'payment_mismatch', amount: 2.34 }];
  expect(await world.findOrder('part-captured')).toMatchObject({ order_status: 'UN_PAID', refused_payments });
  expect(mollie.payments.get(sessionId)?._embedded.refunds).toMatchObject([{ amount: { value: '2.34' } }]);
});

test('an opened payment whose response was lost is opened once', async () => {
  mollie.misbehave(openRoute, 'effect without response');
  const before = mollie.payments.size;
  expect((await pay('lost')).location).toMatch(/^https:\/\/checkout\.mollie\.example\//);
  expect(mollie.payments.size).toBe(before + 1);
});

test('an open payment that cannot be closed keeps its attempt, and no second one opens', async () => {
  const { orderToken, attemptId, page } = await pay('not-closable');
  const [other = ''] = page.match(/con_\w+\.iDEAL(?=")/) ?? [];
  const before = mollie.payments.size;
  const response = await world.post(`/pay/${orderToken}`, { method: other });
  expect(response.headers.get('location')).toBe(`/pay/${orderToken}`);
  const choice = await (await world.get(`/pay/${orderToken}`)).text();
  expect([choice.includes('.card"'), choice.includes('.iDEAL"')]).toEqual([true, false]);
  expect([mollie.payments.size, await stateOf(attemptId)]).toEqual([before, 'OPEN']);
});

test('a customer who cancels at Mollie can choose another method immediately', async () => {
  const { attemptId, sessionId, orderToken } = await pay('cancelled');
  mollie.end(sessionId, 'canceled');
  const back = await world.get(`/back/${attemptId}?left=1&lang=fr`);
  expect(back.headers.get('location')).toBe(`/pay/${orderToken}?lang=fr`);
  const choice = await (await world.get(`/pay/${orderToken}`)).text();
  expect([choice.includes('.card"'), choice.includes('.iDEAL"')]).toEqual([true, true]);
  expect(choice).not.toContain('declined');
});

test('a status that Mollie added later does not end a payment', async () => {
  const { attemptId, sessionId } = await pay('new-status');
  Object.assign(mollie.payments.get(sessionId) ?? {}, { status: 'waiting' });
  await world.advance(attemptId);
  expect(await stateOf(attemptId)).toBe('OPEN');
});

test('a payment that is refused by the gateway is refunded once', async () => {
  const { attemptId, sessionId } = await pay('owed', 'iDEAL');
  mollie.pay(sessionId, { amount: '1.00' });
  mollie.misbehave('POST /payments/{id}/refunds', 'effect without response');
  await world.advance(attemptId);
  await expect.poll(() => stateOf(attemptId)).toBe('REFUNDED');
  expect(mollie.payments.get(sessionId)?._embedded.refunds).toHaveLength(1);
});

test('a payment that the merchant partly refunded before it was recorded is recorded', async () => {
  const { attemptId, sessionId } = await pay('part-back', 'iDEAL');
  mollie.pay(sessionId);
  mollie.refundByHand(sessionId, '2.34');
  await world.advance(attemptId);
  expect(await stateOf(attemptId)).toBe('RECORDED');
  expect(await world.findOrder('part-back')).toMatchObject({ order_status: 'PAID', payment_id: sessionId });
});

test('only the rest of a refused payment is refunded if the merchant has refunded a part', async () => {
  const { attemptId, sessionId } = await pay('part-owed', 'iDEAL');
  mollie.pay(sessionId, { amount: '1.00' });
  mollie.refundByHand(sessionId, '0.40');
  await world.advance(attemptId);
  await expect.poll(() => stateOf(attemptId)).toBe('REFUNDED');
  const amounts = mollie.payments.get(sessionId)?._embedded.refunds.map(({ amount }) => amount.value);
  expect(amounts).toEqual(['0.40', '0.60']);
});

test('a failed payment ends the attempt as declined', async () => {
  const { attemptId, sessionId, orderToken } = await pay('failed');
  mollie.end(sessionId, 'failed');
  await world.advance(attemptId);
  expect(await (await world.get(`/pay/${orderToken}`)).text()).toContain('The payment was declined.');
});

/** Makes pending refunds and reads the lists that are due a minute later. Returns the order record. */
async function reversalsOf(orderId: string, attemptId: string) {
  const { connectionId } = (await world.store.find(attemptId)) ?? {};
  const readUntil = sql`least(${connections.reversedUntil}, now() - interval '61 s')`;
  await world.store.run((db) =>
    db
      .update(connections)
      .set({ reversedUntil: readUntil })
      .where(eq(connections.connectionId, connectionId ?? '')),
  );
  await world.refunds.makePending();
  await world.refunds.reportListed();
  return world.findOrder(orderId);
}

test('a refund whose identifiers are as long as possible fits the metadata of Mollie', async () => {
  const orderId = '🧾'.repeat(127);
  const { attemptId, sessionId } = await pay(orderId, 'iDEAL');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  const refund_id = '💸'.repeat(128);
  const path = encodeURIComponent(orderId);
  expect((await world.call('POST', `/order/${path}/refunds`, { refund_id })).status).toBe(201);
  await expect.poll(() => reversalsOf(path, attemptId)).toMatchObject({ refunds: [{ refund_id, status: 'PENDING' }] });
  expect(mollie.payments.get(sessionId)?._embedded.refunds).toHaveLength(1);
});

test('a refund behind a full page of later ones is reported', async () => {
  const { attemptId, sessionId } = await pay('many-refunds', 'iDEAL');
  const payment = mollie.pay(sessionId);
  await world.advance(attemptId);
  mollie.refundByHand(sessionId, '2.34');
  mollie.payments.set('tr_other', structuredClone({ ...payment, id: 'tr_other' }));
  for (let count = 0; count < 250; count += 1) mollie.refundByHand('tr_other', '0.01');
  const refunds = [{ amount: 2.34, status: 'PENDING' }];
  await expect.poll(() => reversalsOf('many-refunds', attemptId)).toMatchObject({ refunds });
});

test('an old chargeback that no reading of the lists reported is reported by the daily one', async () => {
  const { attemptId, sessionId } = await pay('old-chargeback', 'iDEAL');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  const createdAt = new Date(Date.now() - 100 * 86_400_000).toISOString();
  Object.assign(mollie.chargeBack(sessionId), { createdAt, reversedAt: createdAt });
  await world.store.run((db) => db.update(connections).set({ comparedAt: sql`now() - interval '25 hours'` }));
  await expect.poll(() => reversalsOf('old-chargeback', attemptId)).toMatchObject({ disputes: [{ status: 'WON' }] });
});

test('a refund is requested once and stays pending until Mollie has made it, and a chargeback is reported', async () => {
  const { attemptId, sessionId } = await pay('refunded', 'iDEAL');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  const refund = { refund_id: 'r-1', refund_amount: 2.34 };
  expect((await world.call('POST', '/order/refunded/refunds', refund)).status).toBe(201);
  mollie.misbehave('POST /payments/{id}/refunds', 'effect without response', '500');
  const reversals = () => reversalsOf('refunded', attemptId);
  const made = { refund_id: 'r-1', amount: 2.34, provider_refund_id: `re_${sessionId}_1` };
  await expect.poll(reversals).toMatchObject({ refunds: [{ ...made, status: 'PENDING' }] });
  const [stored] = mollie.payments.get(sessionId)?._embedded.refunds ?? [];
  Object.assign(stored ?? {}, { status: 'refunded' });
  await expect.poll(reversals).toMatchObject({ refunds: [{ ...made, status: 'SUCCEEDED' }], refunded_amount: 2.34 });
  expect(mollie.payments.get(sessionId)?._embedded.refunds).toHaveLength(1);
  const chargeback = mollie.chargeBack(sessionId);
  await expect.poll(reversals).toMatchObject({ disputes: [{ status: 'LOST', amount: 12.34, reason: 'AC01' }] });
  chargeback.reversedAt = new Date().toISOString();
  await expect.poll(reversals).toMatchObject({ disputes: [{ status: 'WON' }] });
});

test('a refund that was requested before the gateway knew of a chargeback is not made', async () => {
  const { attemptId, sessionId } = await pay('charged-back', 'iDEAL');
  mollie.pay(sessionId);
  await world.advance(attemptId);
  // The list is read again after a minute.
  await world.store.run((db) => db.update(connections).set({ reversedUntil: sql`now()` }));
  mollie.chargeBack(sessionId);
  expect((await world.call('POST', '/order/charged-back/refunds', { refund_id: 'r-1' })).status).toBe(201);
  await expect
    .poll(() => world.findOrder('charged-back'))
    .toMatchObject({
      refunds: [{ refund_id: 'r-1', status: 'FAILED', reason: 'exceeds_payment' }],
      disputes: [{ status: 'LOST', amount: 12.34 }],
    });
  expect(mollie.payments.get(sessionId)?._embedded.refunds).toEqual([]);
});
