import { expect, test } from 'vitest';
import { useWorld } from './helpers/world.ts';

const world = useWorld();

/** Chooses the test payment for an order, and returns the path of the attempt. */
async function startTestPayment(orderToken: string): Promise<string> {
  const started = await world.post(`/pay/${orderToken}`);
  expect(started.status).toBe(303);
  return new URL(started.headers.get('location') ?? '', world.baseUrl).pathname;
}

const locationOf = (response: Response) => response.headers.get('location') ?? '';

test('a test payment that succeeds pays the order, and the customer returns with its status', async () => {
  const orderToken = await world.createOrder('paid');
  const page = await world.get(`/pay/${orderToken}`);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Test payment')]);
  const path = await startTestPayment(orderToken);
  const choice = await world.get(path);
  expect(await choice.text()).toContain('It succeeds');
  // Chromium blocks the form's redirect to the merchant otherwise.
  expect(choice.headers.get('content-security-policy')).toContain("form-action 'self' https: http:;");
  const chosen = await world.post(path, { outcome: 'succeed' });
  const returned = await world.get(locationOf(chosen));
  expect(new URL(locationOf(returned)).searchParams.get('order_status')).toBe('PAID');
  const attemptId = path.split('/').at(-1) ?? '';
  expect(await world.findOrder('paid')).toMatchObject({ order_status: 'PAID', payment_id: `demo_${attemptId}` });
  await expect.poll(() => world.store.find(attemptId)).toMatchObject({ state: 'RECORDED', dueAt: null, failures: 0 });
});

test('after a declined test payment, the customer can try again', async () => {
  const orderToken = await world.createOrder('declined');
  const path = await startTestPayment(orderToken);
  const returned = await world.get(locationOf(await world.post(path, { outcome: 'decline' })));
  expect(locationOf(returned)).toBe(`/pay/${orderToken}`);
  expect(await (await world.get(`/pay/${orderToken}`)).text()).toContain('The payment was declined.');
  const secondPath = await startTestPayment(orderToken);
  expect(secondPath).not.toBe(path);
  await world.get(locationOf(await world.post(secondPath, { outcome: 'succeed' })));
  expect(await world.findOrder('declined')).toMatchObject({ order_status: 'PAID' });
});

test('a second payment has the language of the page on which it was chosen', async () => {
  const orderToken = await world.createOrder('second-language');
  await world.post(`/pay/${orderToken}`, { lang: 'fr' });
  const { attemptId = '' } = (await world.store.newest(orderToken)) ?? {};
  await world.get(locationOf(await world.post(`/demo/${attemptId}`, { outcome: 'decline' })));
  const page = await (await world.get(`/pay/${orderToken}`)).text();
  const fields = page.matchAll(/name="(\w+)" value="([^"]+)"/g);
  await world.post(`/pay/${orderToken}`, Object.fromEntries([...fields].map(([, name, value]) => [name, value])));
  expect(await world.store.newest(orderToken)).toMatchObject({ state: 'OPEN', locale: 'fr' });
});

test('an abandoned test payment stays open, and every tab continues the same one', async () => {
  const orderToken = await world.createOrder('abandoned');
  const path = await startTestPayment(orderToken);
  expect(locationOf(await world.get(locationOf(await world.post(path, { outcome: 'abandon' }))))).toBe(
    `/pay/${orderToken}`,
  );
  expect(await (await world.get(`/pay/${orderToken}`)).text()).toContain('Continue the payment');
  expect(await startTestPayment(orderToken)).toBe(path);
});

test('a test payment that arrives late is recorded once it has arrived', async () => {
  const orderToken = await world.createOrder('late');
  const path = await startTestPayment(orderToken);
  const attemptId = path.split('/').at(-1) ?? '';
  const chosen = await world.post(path, { outcome: 'late' });
  expect(locationOf(chosen)).toBe(`/back/${attemptId}`);
  expect(await world.advance(attemptId)).toMatchObject({ state: 'OPEN' });
  const waiting = await (await world.get(`/back/${attemptId}?n=1&lang=fr`)).text();
  expect(waiting).toContain(`content="5;url=/back/${attemptId}?n=2&amp;lang=fr"`);
  await world.store.changeDemoPayment(attemptId, 'authorised', { authorisedAt: new Date() });
  const returned = await world.get(locationOf(chosen));
  expect(new URL(locationOf(returned)).searchParams.get('order_status')).toBe('PAID');
  expect(await world.findOrder('late')).toMatchObject({ payment_id: `demo_${attemptId}` });
});

test('the refund of a test payment that the gateway refused is reported', async () => {
  const orderToken = await world.createOrder('refused');
  const attemptId = (await startTestPayment(orderToken)).split('/').at(-1) ?? '';
  const state = { state: 'captured', authorisedAt: new Date(), amountHundredths: 1n } as const;
  await world.store.changeDemoPayment(attemptId, 'open', state);
  expect(await world.advance(attemptId)).toMatchObject({ state: 'REFUNDED' });
  expect(await world.findOrder('refused')).toMatchObject({
    refused_payments: [{ code: 'payment_mismatch', refunded_at: expect.any(String) }],
  });
});

test('two clicks at the same time open one session', async () => {
  const orderToken = await world.createOrder('double-click');
  const [path, otherPath] = await Promise.all([startTestPayment(orderToken), startTestPayment(orderToken)]);
  expect(otherPath).toBe(path);
});

test('a form of another site starts and pays nothing', async () => {
  const orderToken = await world.createOrder('other-site');
  const form = {
    method: 'POST',
    headers: {
      origin: 'https://elsewhere.example',
      'sec-fetch-site': 'cross-site',
      'content-type': 'application/x-www-form-urlencoded',
    },
    redirect: 'manual',
  } as const;
  const response = await fetch(`http://127.0.0.1:${world.port}/pay/${orderToken}`, form);
  expect([response.status, locationOf(response)]).toEqual([303, `/pay/${orderToken}`]);
  expect(await world.store.newest(orderToken)).toBeUndefined();
  const path = await startTestPayment(orderToken);
  const chosen = await fetch(`http://127.0.0.1:${world.port}${path}`, { ...form, body: 'outcome=succeed' });
  expect([chosen.status, locationOf(chosen)]).toEqual([303, path]);
  expect(await world.store.findDemoPayment(path.split('/').at(-1) ?? '')).toMatchObject({ state: 'open' });
});

test.each([
  ['another site that hides its origin', { origin: 'null', 'sec-fetch-site': 'cross-site' }, false],
  ['another page that hides its origin, from an old browser', { origin: 'null' }, false],
  ['the gateway, whose origin the browser hides', { origin: 'null', 'sec-fetch-site': 'same-site' }, true],
  ['the gateway', { origin: 'GATEWAY', 'sec-fetch-site': 'cross-site' }, true],
])('a form of %s starts a payment only if its page is trusted', async (name, { origin, ...headers }, isTrusted) => {
  const orderToken = await world.createOrder(`form-of-${name}`);
  const response = await fetch(`http://127.0.0.1:${world.port}/pay/${orderToken}`, {
    method: 'POST',
    headers: { ...headers, origin: origin.replace('GATEWAY', new URL(world.gatewayUrl).origin) },
    redirect: 'manual',
  });
  const attempt = await world.store.newest(orderToken);
  expect([response.status, attempt !== undefined]).toEqual([303, isTrusted]);
  if (!isTrusted) expect(locationOf(response)).toBe(`/pay/${orderToken}`);
});

test.each(['GET', 'HEAD'])('a prefetch or a link scanner that sends %s starts and changes nothing', async (method) => {
  const load = (path: string) =>
    fetch(`http://127.0.0.1:${world.port}${path}`, {
      method,
      headers: { 'sec-purpose': 'prefetch' },
      redirect: 'manual',
    });
  const orderToken = await world.createOrder(`scanned-${method}`);
  for (const path of [`/pay/${orderToken}`, `/pay/${orderToken}?method=demo.demo`, `/transfer/${orderToken}`])
    await load(path);
  expect(await world.store.newest(orderToken)).toBeUndefined();
  const attemptId = (await startTestPayment(orderToken)).split('/').at(-1) ?? '';
  const paths = [`/demo/${attemptId}?outcome=succeed`, `/back/${attemptId}?left=1`, `/hooks/${attemptId}`];
  for (const path of [`/pay/${orderToken}`, ...paths]) await load(path);
  expect(await world.store.newest(orderToken)).toMatchObject({ attemptId, state: 'OPEN' });
  expect(await world.store.findDemoPayment(attemptId)).toMatchObject({ state: 'open' });
});

test('an unknown link, and an unknown attempt, are 404', async () => {
  for (const path of [
    `/pay/${'A'.repeat(32)}`,
    '/pay/short',
    '/back/att_unknown',
    '/demo/att_unknown',
    '/hooks/unknown',
  ])
    expect([path, (await world.get(path)).status]).toEqual([path, 404]);
});

test('a page without a payment has the language that its visitor chooses on it', async () => {
  for (const path of ['/unknown', `/pay/${'A'.repeat(32)}`, '/back/att_unknown', '/demo/att_unknown']) {
    const shown = await world.get(`${path}?lang=de`);
    expect([path, shown.headers.get('content-language')]).toEqual([path, 'de']);
  }
});

test('a customer who chooses a transfer can no longer pay in the session that was open', async () => {
  await world.connect('transfer', 'DE89370400440532013000', { iban: 'DE89370400440532013000', name: 'Test Shop' });
  const orderToken = await world.createOrder('transfer-instead');
  const methods = await (await world.get(`/pay/${orderToken}`)).text();
  const [transferOffer = ''] = /con_[^"]+\.transfer/.exec(methods) ?? [];
  await world.post(`/pay/${orderToken}`, { method: 'demo.demo' });
  const { attemptId = '' } = (await world.store.newest(orderToken)) ?? {};
  const chosen = await world.post(`/pay/${orderToken}`, { method: transferOffer, lang: 'de' });
  expect(locationOf(chosen)).toBe(`/transfer/${orderToken}?lang=de`);
  expect(await world.store.find(attemptId)).toMatchObject({ state: 'ENDED' });

  const other = await world.createOrder('paid-before-transfer');
  await world.post(`/pay/${other}`, { method: 'demo.demo' });
  const { attemptId: paidId = '' } = (await world.store.newest(other)) ?? {};
  await world.post(`/demo/${paidId}`, { outcome: 'succeed' });
  expect(locationOf(await world.post(`/pay/${other}`, { method: transferOffer }))).toBe(`/pay/${other}`);
  await expect.poll(() => world.findOrder('paid-before-transfer')).toMatchObject({ order_status: 'PAID' });
});
