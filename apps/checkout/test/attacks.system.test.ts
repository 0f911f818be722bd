import { Writable } from 'node:stream';
import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { createEncryption } from '@order-gateway/runtime/encryption';
import pino from 'pino';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { waitLimitMs } from '../../../tools/test-limits.ts';
import { openCheckout } from '../src/checkout.ts';
import { openErasure } from '../src/store/erasure.ts';
import { newId } from '../src/store/ids.ts';
import { openStore } from '../src/store/store.ts';
import { createStripeStandIn } from '../testing/stripe-stand-in.ts';
import { testSecretsKey, useWorld } from './helpers/world.ts';

const stripe = createStripeStandIn();
const world = useWorld('live', stripe.send);
beforeAll(() => world.connect('stripe', 'acct_stand_in', stripe.secrets));

async function pay(orderId: string) {
  const orderToken = await world.createOrder(orderId);
  await world.post(`/pay/${orderToken}`);
  const { attemptId = '', sessionId, connectionId } = (await world.store.newest(orderToken)) ?? {};
  return { orderToken, attemptId, sessionId: sessionId ?? '', connectionId: connectionId ?? '' };
}

const stateOf = async (attemptId: string) => (await world.store.find(attemptId))?.state;

const hook = (connectionId: string, { body, headers }: ReturnType<typeof stripe.webhook>) =>
  fetch(`http://127.0.0.1:${world.port}/hooks/${connectionId}`, { method: 'POST', body, headers });

test('a webhook that is sent again changes nothing', async () => {
  const { attemptId, sessionId, connectionId } = await pay('replayed');
  stripe.pay(sessionId);
  const webhook = stripe.webhook();
  await hook(connectionId, webhook);
  await expect.poll(() => stateOf(attemptId)).toBe('RECORDED');
  const before = stripe.requests.filter(({ route }) => route.startsWith('POST')).length;
  for (let count = 0; count < 3; count += 1) expect((await hook(connectionId, webhook)).status).toBe(204);
  expect(stripe.requests.filter(({ route }) => route.startsWith('POST'))).toHaveLength(before);
  expect(await world.findOrder('replayed')).toMatchObject({ order_status: 'PAID' });
});

test("a merchant's valid webhook can't touch the attempt of another merchant", async () => {
  const { attemptId, sessionId } = await pay('of-another-merchant');
  const connectionId = newId('con');
  const webhookSecret = 'whsec_attacker';
  const secrets = createEncryption<string>([testSecretsKey]).encrypt(
    connectionId,
    Buffer.from(JSON.stringify({ ...stripe.secrets, webhookSecret })),
  );
  const attacker = {
    merchantId: `app_${'a'.repeat(24)}`,
    provider: 'stripe',
    mode: 'live',
    account: 'acct_2',
  } as const;
  await world.store.connect({ connectionId, ...attacker, secrets }, 'tester');
  stripe.pay(sessionId);
  expect((await hook(connectionId, stripe.webhook({ secret: webhookSecret }))).status).toBe(204);
  expect(await world.store.findNoticed(connectionId, [attemptId, sessionId])).toEqual([]);
});

test.each([
  ['/pay/TOKEN?return_url=https://attacker.example', {}],
  ['/pay/TOKEN', { method: 'https://attacker.example', return_url: 'https://attacker.example' }],
  ['/pay//attacker.example', {}],
] as const)('a form at %s leads to no site that a request names', async (path, form) => {
  const orderToken = await world.createOrder(`redirect-${newId('x')}`);
  const response = await world.post(path.replace('TOKEN', orderToken), form);
  expect(response.headers.get('location') ?? '').not.toContain('attacker.example');
  const { attemptId } = (await world.store.newest(orderToken)) ?? {};
  for (const query of ['left=https://attacker.example', 'n=1&left=//attacker.example'])
    if (attemptId !== undefined)
      expect((await world.get(`/back/${attemptId}?${query}`)).headers.get('location')).not.toContain('attacker');
});

test.each(['/pay/x', '/demo/x'])(
  'a body that is no form is rejected at %s, and is no failure of the checkout',
  async (path) => {
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' };
    const response = await fetch(`http://127.0.0.1:${world.port}${path}`, { method: 'POST', headers, body: '{}' });
    expect(response.status).toBe(415);
  },
);

test.each(['/pay/%E2%82%AC', '/demo/%0d'])(
  'a form at %s, where nothing is, is no failure of the checkout',
  async (path) => {
    const headers = { origin: 'https://attacker.example' };
    const form = { method: 'POST', headers, body: new URLSearchParams(), redirect: 'manual' } as const;
    expect((await fetch(`http://127.0.0.1:${world.port}${path}`, form)).status).toBe(404);
  },
);

test.each(['/pay/%ff', '/back/%00', '/demo/%00', '/unknown', '/pay/x'])(
  '%s has a page in the language of the browser',
  async (path) => {
    const { status, headers } = await fetch(`http://127.0.0.1:${world.port}${path}`, {
      headers: { 'accept-language': 'de' },
    });
    expect([status, headers.get('content-type'), headers.get('content-language')]).toEqual([
      404,
      'text/html; charset=utf-8',
      'de',
    ]);
  },
);

test('the role of the checkout erases what RETENTION_DAYS names', async () => {
  const store = openStore({ url: world.options.databaseUrl });
  onTestFinished(store.close);
  expect(await openErasure(store).eraseOlderThan(1)).toBe(0);
});

test.each([
  'update checkout.attempts set amount_hundredths = 1',
  'delete from checkout.attempts',
  "update checkout.connections set account = 'acct_attacker'",
  'select * from checkout.audit_log',
  'select * from orders',
  'create table checkout.more (id int)',
])('the role of the checkout is denied: %s', async (text) => {
  await expect(runQuery(world.options.databaseUrl, text)).rejects.toThrow(/permission denied/);
});

test('a dump of the database has no key and no data of the customer', async () => {
  const { orderToken, sessionId } = await pay('dumped');
  stripe.pay(sessionId);
  const tables = await runQuery(
    world.ownerUrl,
    "select tablename as name from pg_tables where schemaname = 'checkout'",
  );
  const rows = await Promise.all(
    tables.map(({ name }) => runQuery(world.ownerUrl, `select t::text as text from checkout.${name} t`)),
  );
  const dump = rows
    .flat()
    .map(({ text }) => String(text))
    .join('\n');
  expect(dump).toContain(orderToken);
  const { key, webhookSecret } = stripe.secrets;
  const secrets = [key, webhookSecret, world.options.credentials.clientSecret];
  const asStored = secrets.flatMap((secret) => [secret, Buffer.from(secret).toString('hex')]);
  for (const secret of [...asStored, 'noor.vanderlinden', 'Noor']) expect(dump).not.toContain(secret);
});

test('orders are created while the checkout is flooded', async () => {
  const orderToken = await world.createOrder('before-the-flood');
  let isOver = false;
  const statuses: number[] = [];
  const flood = async () => {
    while (!isOver) statuses.push((await world.get(`/pay/${orderToken}`)).status);
  };
  const flooding = Array.from({ length: 50 }, flood);
  await vi.waitUntil(() => statuses.length > 100, waitLimitMs);
  for (let count = 0; count < 20; count += 1) await world.createOrder(`in-the-flood-${count}`);
  isOver = true;
  await Promise.all(flooding);
  // 429 if the machine is fast enough, and 503 if it is so slow that calls of the gateway exceed their deadline.
  expect(new Set(statuses).difference(new Set([200, 429, 503]))).toEqual(new Set());
  await expect.poll(async () => (await world.get(`/pay/${orderToken}`)).status).toBe(200);
});

test('log lines and errors have no key, order token or data of the customer', async () => {
  let log = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      log += chunk;
      done();
    },
  });
  const send: typeof stripe.send = (url, init) =>
    url.includes('/capture') ? Promise.reject(new TypeError('fetch failed')) : stripe.send(url, init);
  const other = await openCheckout({ ...world.options, send }, pino(sink));
  try {
    const { orderToken, attemptId, sessionId } = await pay('logged');
    stripe.pay(sessionId);
    await other.advance(attemptId);
    await fetch(`http://127.0.0.1:${other.port}/hooks/con_${'x'.repeat(20)}`, { method: 'POST', body: 'x' });
    expect(log).toContain(attemptId);
    const { clientSecret } = world.options.credentials;
    const customer = ['noor.vanderlinden', 'Noor'];
    for (const secret of [stripe.secrets.key, stripe.secrets.webhookSecret, clientSecret, orderToken, ...customer])
      expect(log).not.toContain(secret);
  } finally {
    await other.close();
  }
});
