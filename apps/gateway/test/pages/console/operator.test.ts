import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { createOperatorLink } from '../../../src/pages/console/operator/operator-access.ts';
import { cookieOf, request } from '../../helpers/console-visitor.ts';
import { exchange } from '../../helpers/raw-http.ts';
import { runGateway, testSecretsKey, useGateway } from '../../helpers/running-gateway.ts';
import { createOrder, postJson, postPayment } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasOperatorView: true });
const pages = ['', '/refused-payments', '/accounts', '/audit-log'];
const address = (path = '') => `http://localhost:${gateway.adminPort}/operator${path}`;

async function signIn({ adminPort }: { readonly adminPort: number } = gateway) {
  const link = createOperatorLink([testSecretsKey], adminPort);
  const cookie = cookieOf(await request(link, { form: {} }));
  return { cookie, get: (path = '') => request(new URL(`/operator${path}`, link).href, { headers: { cookie } }) };
}

test('every page is rejected without a session, or with an invalid cookie', async () => {
  for (const path of pages) {
    for (const cookie of ['', `order-gateway-operator=${'0'.repeat(32)}`, 'order-gateway-operator=']) {
      const { status, text } = await request(address(path), { headers: { cookie } });
      expect([path, status, text.includes('<table>')]).toEqual([path, 401, false]);
    }
  }
});

// If such a request were accepted, a site could read the pages by pointing its own host name to this machine (DNS
// rebinding).
test('a request is rejected if its Host header does not name the local machine', async () => {
  const { cookie } = await signIn();
  const statusAt = async (host: string) => {
    const head = `GET /operator HTTP/1.1\r\nhost: ${host}\r\ncookie: ${cookie}\r\nconnection: close\r\n\r\n`;
    return (await exchange({ httpPort: gateway.adminPort }, head)).split(' ')[1];
  };
  for (const host of [
    'evil.example.com',
    '10.0.0.1:9464',
    'localhost.evil.example.com',
    '127.0.0.1.evil.example.com',
    '',
  ])
    expect([host, await statusAt(host)]).toEqual([host, '421']);
  for (const host of ['localhost', '127.0.0.1:9464', '[::1]:80'])
    expect([host, await statusAt(host)]).toEqual([host, '200']);
});

test.each([
  [{ 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'iframe' }, {}],
  [{ 'sec-fetch-site': 'same-site', 'sec-fetch-dest': 'empty' }, {}],
  [{ 'sec-fetch-site': 'same-site' }, { form: {} }],
  [{ origin: 'http://localhost:3000' }, { form: {} }],
])('a request from another site is rejected, and the session continues: %j', async (foreign, options) => {
  const { cookie, get } = await signIn();
  const url = address();
  const headers = { cookie, ...foreign };
  // Unlike `request`, this call adds none of the headers that a browser sends.
  const response = await fetch(url, { headers, redirect: 'manual', ...('form' in options && { method: 'POST' }) });
  await response.text();
  expect([response.status, (await get()).status]).toEqual([403, 200]);
});

test('pages run no script but their own, cannot be framed or stored, and unknown addresses get 404', async () => {
  const { get } = await signIn();
  const { headers } = await get();
  expect(headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; style-src 'sha256-[^ ]+'; script-src 'sha256-[^ ]+'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
  );
  expect([headers.get('cache-control'), headers.get('x-frame-options')]).toEqual(['no-store', 'DENY']);
  expect((await get('/other')).status).toBe(404);
  expect((await get('er')).status).toBe(404);
  expect((await fetch(address(), { method: 'DELETE' })).status).toBe(405);
});

test('lists are divided into pages, and markup in the audit log is shown as text', async () => {
  const shop = await runGateway({ hasOperatorView: true });
  await runQuery(
    shop.databaseUrl,
    `insert into audit_log (actor, action, client_id, details)
     select '<img src=x onerror=alert(1)>', 'n' || n, null, '{"a":"</bdi><script>"}' from generate_series(1, 120) n`,
  );
  for (let number = 0; number < 51; number += 1) await shop.accounts.create(`Shop ${number} <b>`);
  const { get } = await signIn(shop);
  const readAll = async (path: string) => {
    const texts: string[] = [];
    for (let nextPath: string | undefined = path; nextPath !== undefined; ) {
      const { status, text }: Awaited<ReturnType<typeof get>> = await get(nextPath);
      expect([status, texts.length < 5]).toEqual([200, true]);
      texts.push(text);
      nextPath = /rel="next" href="\/operator([^"]+)"/.exec(text)?.[1];
    }
    return texts;
  };
  const log = await readAll('/audit-log');
  expect(log.map((text) => text.split('<tr>').length - 2)).toEqual([50, 50, 50, 23]);
  expect(log.join()).not.toMatch(/<img|<script>|<\/bdi><script/);
  expect(log.join()).toContain('&lt;img src=x onerror=alert(1)&gt;');
  const accounts = await readAll('/accounts');
  expect(accounts.map((text) => text.split('<tr>').length - 2)).toEqual([50, 3]);
  const logOfMerchant = await readAll(`/audit-log?client_id=${shop.credentials.clientId}`);
  expect(logOfMerchant.map((text) => text.split('<tr>').length - 2)).toEqual([1]);
  for (const before of ['x', '9'.repeat(30)])
    expect(await readAll(`/audit-log?client_id='&before=${before}`)).toHaveLength(4);
});

test('if more than 20 endpoints fail, the health page shows the 20 that have been failing longest', async () => {
  const shop = await runGateway({ hasOperatorView: true });
  await runQuery(
    shop.databaseUrl,
    `insert into webhook_endpoints (merchant_id, endpoint_id, url, signing_secret, failing_since)
     select id, 'we_' || n, 'https://shop.example.com/' || n, '', now() - n * interval '1 hour'
     from accounts, generate_series(1, 21) n where kind = 'merchant'`,
  );
  const { text } = await (await signIn(shop)).get();
  const shownNumbers = [...text.matchAll(/https:\/\/shop\.example\.com\/(\d+)/g)].map(([, number]) => Number(number));
  expect(shownNumbers).toEqual(Array.from({ length: 20 }, (_, index) => 21 - index));
  expect(text).toContain('More endpoints fail');
});

test('refused payments are listed with their order, merchant and checkout system', async () => {
  const order = await createOrder(gateway, `<b>${Math.random()}`);
  await postPayment(gateway.checkout, order.order_token, { payment_id: '<i>p1', order_amount: 1 });
  const { text } = await (await signIn()).get('/refused-payments');
  const [, ...lists] = text.split('<tbody>');
  expect(lists).toHaveLength(2);
  for (const list of lists) {
    expect(list).toContain('&lt;i&gt;p1');
    expect(list).toContain(order.order_id.replace('<b>', '&lt;b&gt;'));
    expect(list).toContain(gateway.credentials.clientId);
    expect(list).toContain(gateway.checkout.credentials.clientId);
  }
});

test('the refused payments that are owed are listed with their age, oldest first, until they have been refunded', async () => {
  const shop = await runGateway({ hasOperatorView: true });
  const { order_token } = await createOrder(shop, 'owed');
  const refuse = (payment_id: string) => postPayment(shop.checkout, order_token, { payment_id, order_amount: 2 });
  for (const payment_id of ['new', 'back', 'old']) await refuse(payment_id);
  const demo = await createOrder(await shop.newMerchant('Test Shop', 'test'), 'simulated');
  await request(`${demo.payment_link}/simulate`, { form: { outcome: 'pay_late' } });
  await runQuery(
    shop.databaseUrl,
    "update refused_payments set refused_at = refused_at - interval '75 hours' where payment_id = 'old'",
  );
  const report = { order_token, payment_id: 'back', provider_refund_id: 're', status: 'SUCCEEDED', amount: 2 };
  expect((await postJson(shop.checkout, '/gateway.v1.CheckoutService/RecordRefund', report)).status).toBe(200);
  const { text } = await (await signIn(shop)).get('/refused-payments');
  const [, owed = '', latest = ''] = text.split('<tbody>');
  const paymentsIn = (list: string) => list.match(/<bdi>(new|back|old|late[^<]*|test_[^<]*)<\/bdi>/g)?.length;
  expect(owed).toMatch(/Owed for 3 days.*<bdi>old<.*Owed for 0 hours.*<bdi>new</s);
  expect([paymentsIn(owed), paymentsIn(latest)]).toEqual([2, 4]);
  expect(latest.match(/>Refunded</g)).toHaveLength(1);
});

test('the health page shows the gateway even if the endpoints can’t be read', async () => {
  const broken = await runGateway({ hasOperatorView: true });
  const { get } = await signIn(broken);
  await runQuery(broken.databaseUrl, 'alter table webhook_endpoints rename to gone');
  const health = await get();
  expect([health.status, health.text]).toEqual([200, expect.stringContaining('can’t be read from the database')]);
});

test("the admin port has no operators' view unless it is switched on", async () => {
  const otherGateway = await runGateway();
  expect((await fetch(`http://localhost:${otherGateway.adminPort}/operator`)).status).toBe(404);
});
