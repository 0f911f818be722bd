import { createEncryption } from '@order-gateway/runtime/encryption';
import { Command } from 'commander';
import { eq } from 'drizzle-orm';
import pino from 'pino';
import { expect, test } from 'vitest';
import { openCheckout } from '../src/checkout.ts';
import { addCheckCommand } from '../src/cli/check.ts';
import { openGateway } from '../src/gateway/gateway.ts';
import { accountReader } from '../src/providers/accounts.ts';
import { createProviders } from '../src/providers/all.ts';
import { newId } from '../src/store/ids.ts';
import { attempts, calls, connections } from '../src/store/schema.ts';
import { createStripeStandIn } from '../testing/stripe-stand-in.ts';
import { startedAttempt } from './helpers/test-store.ts';
import { testSecretsKey, useWorld } from './helpers/world.ts';

const stripe = createStripeStandIn();
const world = useWorld('live', stripe.send);

/** Connects the merchant to the stand-in, once. */
const connect = () => world.connect('stripe', 'acct_stand_in', stripe.secrets);

/** Clicks Pay. Returns the attempt, and the id of its session. */
async function pay(orderId: string, overrides?: Readonly<Record<string, unknown>>) {
  await connect();
  const orderToken = await world.createOrder(orderId, overrides);
  const response = await world.post(`/pay/${orderToken}`);
  const location = response.headers.get('location') ?? '';
  const attempt = await world.store.newest(orderToken);
  const sessionId = attempt?.sessionId ?? '';
  const { attemptId = '', connectionId } = attempt ?? {};
  return { orderToken, location, attempt, attemptId, connectionId: connectionId ?? '', sessionId };
}

const changeAttempt = (attemptId: string, change: Partial<typeof attempts.$inferInsert>) =>
  world.store.run((db) => db.update(attempts).set(change).where(eq(attempts.attemptId, attemptId)));

const stateOf = async (attemptId: string) => (await world.store.find(attemptId))?.state;

const captureRoute = 'POST /v1/payment_intents/{intent}/capture';
const sessionRoute = 'POST /v1/checkout/sessions';
const expireRoute = 'POST /v1/checkout/sessions/{session}/expire';
const lookRoute = 'GET /v1/checkout/sessions/{session}';
const refundRoute = 'POST /v1/refunds';

/** Returns the requests that the stand-in got while `act` ran. */
async function requestsOf(act: () => Promise<unknown>) {
  const before = stripe.requests.length;
  await act();
  return stripe.requests.slice(before);
}

const intentOf = (sessionId: string) => stripe.sessions.get(sessionId)?.payment_intent;

test('one click leads to Stripe, and a card that is authorised is captured and recorded', async () => {
  const { location, attemptId, sessionId } = await pay('card');
  expect(location).toBe(`https://checkout.stripe.example/${sessionId}`);
  stripe.pay(sessionId);
  const returned = await world.get(`/back/${attemptId}`);
  expect(new URL(returned.headers.get('location') ?? '').searchParams.get('order_status')).toBe('PAID');
  expect(intentOf(sessionId)).toMatchObject({ status: 'succeeded' });
  expect(await world.findOrder('card')).toMatchObject({ payment_id: intentOf(sessionId)?.id });
});

test('a session allows one method, and nothing that changes the amount', async () => {
  const { attempt } = await pay('fixed', { order_amount: 12.34, order_currency: 'EUR' });
  const { body } = stripe.requests.findLast(({ route }) => route === sessionRoute) ?? {};
  expect(body).toMatchObject({
    allowed_payment_method_types: ['card'],
    adaptive_pricing: { enabled: 'false' },
    automatic_tax: { enabled: 'false' },
    allow_promotion_codes: 'false',
    line_items: [{ quantity: '1', price_data: { currency: 'eur', unit_amount: '1234' } }],
    payment_intent_data: { capture_method: 'manual' },
    metadata: { order_id: 'fixed', attempt_id: attempt?.attemptId },
  });
  expect(JSON.stringify(body)).not.toContain(attempt?.orderToken);
});

test('a method whose provider refuses the amount of an order is not offered again', async () => {
  const order = { order_amount: 10, order_currency: 'ISK' };
  const { location, attempt, orderToken } = await pay('refused-amount', order);
  expect([location, attempt?.state, attempt?.reason]).toEqual([`/pay/${orderToken}`, 'ENDED', 'amount_too_small']);
  expect(await (await world.get(`/pay/${orderToken}`)).text()).not.toMatch(/name="method"|declined/);
  await world.post(`/pay/${orderToken}`);
  expect((await world.store.newest(orderToken))?.attemptId).toBe(attempt?.attemptId);
});

test('a signed webhook continues the attempt; a forged, an old and a foreign one do not', async () => {
  const { attemptId, sessionId, connectionId } = await pay('webhook');
  stripe.pay(sessionId);
  const send = async ({ body, headers }: ReturnType<typeof stripe.webhook>, to = connectionId) =>
    (await fetch(`http://127.0.0.1:${world.port}/hooks/${to}`, { method: 'POST', body, headers })).status;
  expect(await send(stripe.webhook({ secret: 'whsec_forged' }))).toBe(400);
  expect(await send(stripe.webhook({ timestamp: Math.floor(Date.now() / 1_000) - 301 }))).toBe(400);
  expect(await send(stripe.webhook(), 'con_unknown')).toBe(404);
  expect(await stateOf(attemptId)).toBe('OPEN');
  // Stripe's clock, or the way to here, may be slow.
  expect(await send(stripe.webhook({ timestamp: Math.floor(Date.now() / 1_000) - 200 }))).toBe(204);
  await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
});

test('without any webhook, the list of events is enough', async () => {
  const { attemptId, sessionId, connectionId } = await pay('no-webhook');
  stripe.pay(sessionId);
  await world.store.resetList(connectionId, 'recent', new Date(Date.now() - 61_000));
  await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
});

test('a list can have more ids than a statement has parameters', async () => {
  const { attemptId, connectionId } = await pay('long-list');
  const ids = [...Array.from({ length: 70_000 }, (_, index) => `evt_"${index}`), attemptId];
  expect(await world.store.findNoticed(connectionId, ids)).toEqual([expect.objectContaining({ attemptId })]);
});

test('an attempt that ended keeps the time of its next look, although lists repeat old changes', async () => {
  const { attemptId, connectionId, sessionId } = await pay('listed-ended');
  stripe.expire(sessionId);
  const { dueAt } = (await world.advance(attemptId)) ?? {};
  await world.store.makeDue(connectionId, [attemptId, sessionId]);
  expect(await world.store.find(attemptId)).toMatchObject({ state: 'ENDED', looks: 1, dueAt });
});

test.each([
  ['effect without response', 'RECORDED'],
  ['500', 'RECORDED'],
  ['429', 'RECORDED'],
] as const)('a capture that ends with %s is retried after a lookup, and charged once', async (mishap, state) => {
  const { attemptId, sessionId } = await pay(`capture-${mishap}`);
  stripe.pay(sessionId);
  stripe.misbehave(captureRoute, mishap);
  await world.advance(attemptId);
  await expect.poll(() => stateOf(attemptId)).toBe(state);
  const keys = stripe.requests
    .filter(({ route: sent, key }) => sent === captureRoute && key !== undefined)
    .map(({ key }) => key)
    .slice(mishap === '500' ? -2 : -1);
  // A key whose stored response is an error is not used again.
  expect(new Set(keys).size).toBe(mishap === '500' ? 2 : 1);
});

test('a capture that is refused voids the payment, and the order can be paid again', async () => {
  const { attemptId, sessionId, orderToken } = await pay('capture-refused');
  stripe.pay(sessionId);
  stripe.misbehave(captureRoute, 'refused');
  await world.advance(attemptId);
  expect([await stateOf(attemptId), intentOf(sessionId)?.status]).toEqual(['ENDED', 'canceled']);
  expect(await (await world.get(`/pay/${orderToken}`)).text()).toContain('The payment was declined.');
  const again = await world.post(`/pay/${orderToken}`);
  expect(again.headers.get('location')).toMatch(/^https:\/\/checkout\.stripe\.example\//);
});

test('an authorisation of another amount is voided, and the customer is not charged', async () => {
  const { attemptId, sessionId } = await pay('wrong-amount');
  stripe.pay(sessionId, { amount: 1 });
  await world.advance(attemptId);
  expect([await stateOf(attemptId), intentOf(sessionId)?.status]).toEqual(['ENDED', 'canceled']);
  expect(await world.findOrder('wrong-amount')).toMatchObject({ order_status: 'UN_PAID' });
});

test('an authorisation that is found after the end of its attempt is released', async () => {
  const { attemptId, sessionId } = await pay('late-authorisation');
  stripe.pay(sessionId);
  await changeAttempt(attemptId, { state: 'ENDED', dueAt: new Date() });
  await world.advance(attemptId);
  expect([await stateOf(attemptId), intentOf(sessionId)?.status]).toEqual(['ENDED', 'canceled']);
});

test('an opened session whose response was lost is opened once', async () => {
  stripe.misbehave(sessionRoute, 'effect without response');
  const before = stripe.sessions.size;
  const { location } = await pay('lost-session');
  expect(location).toMatch(/^https:\/\/checkout\.stripe\.example\//);
  expect(stripe.sessions.size).toBe(before + 1);
});

test('a session that expires ends the attempt, and its claim', async () => {
  const { attemptId, sessionId } = await pay('expired');
  stripe.expire(sessionId);
  await world.advance(attemptId);
  expect(await world.store.find(attemptId)).toMatchObject({ state: 'ENDED', reason: 'expired' });
  expect(await world.findOrder('expired')).not.toHaveProperty('payment_in_progress_until');
});

test('a live order is not offered the test payment, and amounts that Stripe cannot take are not offered', async () => {
  await connect();
  const orderToken = await world.createOrder('too-small', { order_amount: 0.1, order_currency: 'EUR' });
  const page = await (await world.get(`/pay/${orderToken}`)).text();
  expect(page).not.toContain('<form');
  expect(page).toContain('Online payment is not available');
});

test.each([
  ['effect without response', 1],
  ['500', 2],
] as const)('a refused payment is refunded once, even if the call to refund it ends with %s', async (mishap, sent) => {
  const { attemptId, sessionId } = await pay(`owed-${mishap}`);
  // Someone captured another amount at Stripe.
  Object.assign(stripe.pay(sessionId, { amount: 1 }), { status: 'succeeded', amount_received: 1 });
  stripe.misbehave(refundRoute, mishap);
  const requests = await requestsOf(async () => {
    await world.advance(attemptId);
    await expect
      .poll(() => world.store.find(attemptId))
      .toMatchObject({ state: 'REFUNDED', reason: 'payment_mismatch', dueAt: null });
  });
  const keys = requests.filter(({ route }) => route === refundRoute).map(({ key }) => key);
  expect([keys.length, new Set(keys).size]).toEqual([sent, sent]);
  expect(intentOf(sessionId)?.latest_charge.refunded).toBe(true);
});

/** Changes the method of the attempt. */
const useAnotherMethod = (attemptId: string) =>
  world.store.run((db) => db.update(attempts).set({ method: 'another' }).where(eq(attempts.attemptId, attemptId)));

test('another method closes the old session before its own is opened', async () => {
  const { attemptId, sessionId, orderToken } = await pay('another-method');
  await useAnotherMethod(attemptId);
  const requests = await requestsOf(() => world.post(`/pay/${orderToken}`));
  const routes = requests.map(({ route }) => route).filter((route) => route !== lookRoute);
  expect(routes.filter((route) => route.startsWith('POST'))).toEqual([expireRoute, sessionRoute]);
  expect([await stateOf(attemptId), stripe.sessions.get(sessionId)?.status]).toEqual(['ENDED', 'expired']);
  expect(await world.store.unfinished(orderToken)).toMatchObject({ state: 'OPEN', method: 'card' });
});

test('a customer who paid before choosing another method gets no second session', async () => {
  const { attemptId, sessionId, orderToken } = await pay('paid-before-another');
  await useAnotherMethod(attemptId);
  stripe.pay(sessionId);
  const requests = await requestsOf(() => world.post(`/pay/${orderToken}`));
  expect(requests.filter(({ route }) => route === sessionRoute)).toEqual([]);
  expect(await stateOf(attemptId)).toBe('RECORDED');
  expect(await world.findOrder('paid-before-another')).toMatchObject({ payment_id: intentOf(sessionId)?.id });
});

test('a customer whose session could not be opened can choose another method', async () => {
  const { connectionId } = await pay('before-the-outage');
  const orderToken = await world.createOrder('in-the-outage');
  const sessionEndsAt = new Date(Date.now() + 2_100_000);
  const dueAt = new Date(Date.now() + 600_000);
  const another = { ...startedAttempt, orderToken, connectionId, method: 'another', sessionEndsAt, dueAt };
  const { attemptId = '' } = (await world.store.start(another)) ?? {};
  stripe.misbehave(sessionRoute, '429');
  const response = await world.post(`/pay/${orderToken}`);
  expect(response.headers.get('location')).toMatch(/^https:\/\/checkout\.stripe\.example\//);
  expect(await world.store.find(attemptId)).toMatchObject({ state: 'ENDED', sessionId: null });
});

test.each([
  [22, true],
  [25, false],
])('a call that is repeated after %i hours follows a lookup, and uses its key again: %s', async (hours, isSameKey) => {
  const { attemptId, sessionId } = await pay(`repeated-${hours}`);
  const { id: paymentId } = stripe.pay(sessionId);
  const createdAt = new Date(Date.now() - hours * 3_600_000);
  const key = newId('key');
  await world.store.run((db) =>
    db.insert(calls).values({ attemptId, purpose: 'capture', key, request: { paymentId }, createdAt }),
  );
  const requests = await requestsOf(() => world.advance(attemptId));
  const captures = requests.filter(({ route }) => route === captureRoute);
  expect(captures.map((capture) => capture.key === key)).toEqual([isSameKey]);
  const [first] = requests.filter(({ route }) => [lookRoute, captureRoute].includes(route));
  expect(first?.route).toBe(lookRoute);
  expect(await stateOf(attemptId)).toBe('RECORDED');
});

test('two processes that continue one attempt at the same time capture and record its payment once', async () => {
  const other = await openCheckout({ ...world.options }, pino({ level: 'silent' }));
  try {
    const { attemptId, sessionId } = await pay('two-processes');
    stripe.pay(sessionId);
    const requests = await requestsOf(async () => {
      await Promise.all([world.advance(attemptId), other.advance(attemptId)]);
      await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
    });
    expect(requests.filter(({ route }) => route === captureRoute)).toHaveLength(1);
  } finally {
    await other.close();
  }
});

test('a process whose lease has expired does not end the lease of another one', async () => {
  const { attemptId } = await pay('expired-lease');
  const { store } = world;
  const lease = async () => {
    const leased = await store.lease(attemptId);
    if (leased === undefined) throw new Error('another process has the lease');
    return leased;
  };
  const paused = await lease();
  await store.run((db) =>
    db
      .update(attempts)
      .set({ leasedUntil: new Date(0) })
      .where(eq(attempts.attemptId, attemptId)),
  );
  const { leasedUntil, dueAt } = await lease();
  await store.release(paused, { seconds: null, failed: true });
  expect(await store.find(attemptId)).toMatchObject({ leasedUntil, dueAt, failures: 0 });
});

test('an attempt whose process ended after a change is due, even if it was not before', async () => {
  const { attemptId } = await pay('crash-after-change');
  const { store } = world;
  const leased = await store.lease(attemptId);
  if (leased === undefined) throw new Error('another process has the lease');
  await store.run((db) => db.update(attempts).set({ dueAt: null }).where(eq(attempts.attemptId, attemptId)));
  expect(await store.change(leased, { state: 'ENDING' })).toMatchObject({ dueAt: expect.any(Date) });
});

/** Runs `payments check`. Returns what it prints. */
async function check(): Promise<string> {
  const lines: string[] = [];
  const { clientId, clientSecret } = world.options.credentials;
  const gateway = openGateway(world.options.gatewayGrpcUrl, { clientId, clientSecret }, world.options.patience);
  const providers = createProviders(world.store, { baseUrl: () => world.baseUrl, send: stripe.send });
  const accountOf = accountReader(world.store, createEncryption<string>([testSecretsKey]));
  const program = new Command();
  addCheckCommand(
    program,
    (work) => work({ store: world.store, gateway, providers, accountOf }),
    (line) => void lines.push(line),
  );
  await program.parseAsync(['check', '--json'], { from: 'user' }).catch((error: unknown) => lines.push(`${error}`));
  return lines.join('\n');
}

test('payments check lists every payment on which provider, checkout and gateway differ, and nothing else', async () => {
  const recorded = async (orderId: string) => {
    const paid = await pay(orderId);
    const intent = stripe.pay(paid.sessionId);
    await world.advance(paid.attemptId);
    return { ...paid, intent };
  };
  const { connectionId } = await recorded('agrees');
  // A merchant who connects the account again has its earlier payments too.
  await world.store.disconnect(connectionId, 'tester');
  await recorded('agrees-again');
  expect(await check()).toBe('');
  const changedAt = new Date(Date.now() - 3_600_000);
  const faults: Readonly<Record<string, (paid: Awaited<ReturnType<typeof recorded>>) => unknown>> = {
    not_recorded: ({ attemptId }) => changeAttempt(attemptId, { state: 'ENDED', dueAt: null, changedAt }),
    amount_differs: ({ intent }) => Object.assign(intent, { amount_received: 1 }),
    not_captured: ({ intent }) => Object.assign(intent, { status: 'canceled' }),
    missing_at_provider: ({ sessionId }) => stripe.sessions.delete(sessionId),
    unknown_attempt: ({ attemptId }) =>
      world.store.run((db) => db.delete(attempts).where(eq(attempts.attemptId, attemptId))),
    not_paid_at_gateway: async ({ attemptId }) =>
      changeAttempt(attemptId, { orderToken: await world.createOrder('not-paid') }),
  };
  const expected = [];
  for (const [difference, plant] of Object.entries(faults)) {
    const paid = await recorded(difference);
    await plant(paid);
    expected.push([difference, paid.attemptId]);
    // Both connections list it, because no attempt says to which one it belongs.
    if (difference === 'unknown_attempt') expected.push([difference, paid.attemptId]);
  }
  const lines = (await check()).split('\n');
  expect(lines.pop()).toContain('7 payments differ.');
  const found = lines.map((line) => JSON.parse(line)).map(({ difference, attempt_id: id }) => [difference, id]);
  expect(found.toSorted()).toEqual(expected.toSorted());
});

test('the daily comparison records a payment that arrived too late for all lookups', async () => {
  const { attemptId, sessionId, connectionId } = await pay('found-by-comparison');
  const { amount } = stripe.pay(sessionId);
  Object.assign(intentOf(sessionId) ?? {}, { status: 'succeeded', amount_received: amount });
  const changedAt = new Date(Date.now() - 3_600_000);
  await changeAttempt(attemptId, { state: 'ENDED', dueAt: null, changedAt });
  await world.store.run((db) =>
    db
      .update(connections)
      .set({ comparedAt: new Date(Date.now() - 25 * 3_600_000) })
      .where(eq(connections.connectionId, connectionId)),
  );
  await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
});

test('a customer continues a session that was opened before the merchant disconnected', async () => {
  const { orderToken, location, connectionId } = await pay('continued');
  await world.store.disconnect(connectionId, 'tester');
  const page = await (await world.get(`/pay/${orderToken}`)).text();
  const [, method = ''] = /name="method" value="([^"]+)">Continue the payment/.exec(page) ?? [];
  const continued = await world.post(`/pay/${orderToken}`, { method });
  await connect();
  expect(continued.headers.get('location')).toBe(location);
});

test('no customer is sent to a session that can no longer be paid', async () => {
  const { orderToken, attemptId, connectionId } = await pay('not-continued');
  // Another process releases the money.
  await changeAttempt(attemptId, { state: 'VOIDING', leasedUntil: new Date(Date.now() + 3_600_000) });
  await world.store.disconnect(connectionId, 'tester');
  const response = await world.post(`/pay/${orderToken}`);
  await connect();
  expect(response.headers.get('location')).toBe(`/pay/${orderToken}`);
});

test('the page of a customer who waits asks Stripe once each time it reloads', async () => {
  const { attemptId } = await pay('waiting');
  const requests = await requestsOf(() => world.get(`/back/${attemptId}?n=1`));
  expect(requests.filter(({ route }) => route === lookRoute)).toHaveLength(1);
});

test('a rolling restart of two processes loses no attempt, and each customer gets one session', async () => {
  const open = () => openCheckout(world.options, pino({ level: 'silent' }));
  const processes = [await open(), await open()];
  // A proxy sends a request to the other process if one does not listen.
  const post = async (orderToken: string): Promise<Response> => {
    for (const { port } of [...processes, ...processes])
      try {
        const headers = { 'sec-fetch-site': 'same-origin' };
        const init = { method: 'POST', headers, redirect: 'manual' } as const;
        return await fetch(`http://127.0.0.1:${port}/pay/${orderToken}`, init);
      } catch {}
    throw new Error('no process responded');
  };
  const customers = Array.from({ length: 12 }, async (_, index) => {
    const orderToken = await world.createOrder(`rolling-${index}`);
    const responses = [await post(orderToken), await post(orderToken)];
    const [first, second] = responses.map(({ headers }) => headers.get('location') ?? '');
    expect(first).toContain('https://checkout.stripe.example/');
    expect(second).toBe(first);
    stripe.pay(first?.split('/').at(-1) ?? '');
    return (await world.store.newest(orderToken))?.attemptId ?? '';
  });
  for (const index of processes.keys()) {
    const old = processes[index];
    processes[index] = await open();
    await old?.close();
  }
  for (const attemptId of await Promise.all(customers)) await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
  await Promise.all(processes.map(({ close }) => close()));
});

test('metrics count attempts by provider and state, and show the age of payments in progress', async () => {
  const other = await openCheckout({ ...world.options, adminPort: 0 }, pino({ level: 'silent' }));
  try {
    const scrape = async () => (await fetch(`http://127.0.0.1:${other.adminPort}/metrics`)).text();
    const metric = async (name: string) =>
      Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)`, 'm').exec(await scrape())?.[1]);
    const owed = (await world.store.moneyOnItsWay())?.owed ?? 0;
    const { attemptId, sessionId } = await pay('measured');
    stripe.pay(sessionId);
    await other.advance(attemptId);
    expect(await scrape()).toContain('order_gateway_checkout_attempts_total{provider="stripe",state="RECORDED"} 1');
    expect(await metric('order_gateway_checkout_differences_total')).toBe(0);
    const paidAt = new Date(Date.now() - 7_200_000);
    const leasedUntil = new Date(Date.now() + 3_600_000);
    await changeAttempt(attemptId, { state: 'OWED', dueAt: new Date(), paidAt, leasedUntil });
    expect(await metric('order_gateway_checkout_unfinished_seconds')).toBeGreaterThanOrEqual(7_200);
    expect(await metric('order_gateway_checkout_owed')).toBe(owed + 1);
    expect(await scrape()).not.toContain('order_gateway_checkout_authorisation_seconds{');
    const captureBefore = new Date(Date.now() + 3_600_000);
    await changeAttempt(attemptId, { state: 'CLAIMED', captureBefore });
    const untilEnd = await metric('order_gateway_checkout_authorisation_seconds');
    expect(untilEnd).toBeGreaterThan(0);
    expect(untilEnd).toBeLessThanOrEqual(3_600);
  } finally {
    await other.close();
  }
});
