import { expect, test } from 'vitest';
import { createDemoOrder } from '../../../src/pages/demo/demo-merchant.ts';
import { giveSigningSecret, runGateway, useGateway } from '../../helpers/running-gateway.ts';
import { createOrder, pressPay } from '../../helpers/send-order.ts';

const gateway = useGateway({ hasDemo: true });

const fetchPage = async (url: string) => {
  const response = await fetch(url);
  return { status: response.status, headers: response.headers, text: await response.text() };
};

/** Pays an order. Returns the URL that the customer returns to. */
async function returnOf(paymentLink: string): Promise<URL> {
  return new URL((await pressPay(paymentLink)).headers.get('location') ?? '');
}

async function returnOfDemoOrder(): Promise<URL> {
  if (gateway.demo === undefined) throw new Error('no demo');
  const order = await createDemoOrder(gateway.url, gateway.demo, gateway.baseUrl);
  return returnOf(order?.paymentLink ?? '');
}

test('GET /demo/return shows what a shop receives, with a valid signature, even after the demo merchant’s endpoint changes', async () => {
  const { status, headers, text } = await fetchPage((await returnOfDemoOrder()).href);
  expect(status).toBe(200);
  expect(Object.fromEntries(headers)).toMatchObject({
    'cache-control': 'no-store',
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': expect.stringMatching(/^default-src 'none'; style-src 'sha256-[^;]+; base-uri 'none'/),
    'referrer-policy': 'no-referrer',
  });
  for (const shown of ['Thank you for your payment', 'demo-1000', '>PAID<', '>Valid<']) expect(text).toContain(shown);
  await giveSigningSecret(gateway.databaseUrl, gateway.demo?.clientId ?? '');
  expect((await fetchPage((await returnOfDemoOrder()).href)).text).toContain('>Valid<');
});

test.each([
  ['order_id', 'demo-2', 'Not valid'],
  ['order_status', 'CANCELLED', 'Not valid'],
  ['service_order_id', '9007199254740991', 'Not valid'],
  ['service_order_id', '1e999', 'Not valid'],
  ['signature', `v1=${'0'.repeat(64)}`, 'Not valid'],
  ['signature', null, 'Not signed'],
])('GET /demo/return with the %s %j says %s and does not thank the customer', async (name, value, label) => {
  const changed = await returnOfDemoOrder();
  if (value === null) changed.searchParams.delete(name);
  else changed.searchParams.set(name, value);
  const { status, text } = await fetchPage(changed.href);
  expect([status, text.includes(`>${label}<`), text.includes('Thank you')]).toEqual([200, true, false]);
});

test('GET /demo/return escapes markup in every parameter, and does not say Valid for markup or without parameters', async () => {
  const markup = `"><script>alert(1)</script><b a='`;
  const names = ['order_id', 'service_order_id', 'order_status', 'signed_at', 'signature'];
  const hostile = new URLSearchParams(names.map((name) => [name, markup]));
  for (const query of [`?${hostile}`, '']) {
    const { status, text } = await fetchPage(`${gateway.url}/demo/return${query}`);
    expect([status, text.includes('>Valid<'), /<script|<b /.test(text)]).toEqual([200, false, false]);
  }
});

test("GET /demo/return does not accept another merchant's signature", async () => {
  const other = await gateway.newMerchant('Other Shop', 'test');
  await giveSigningSecret(gateway.databaseUrl, other.credentials.clientId);
  const { payment_link } = await createOrder(other, 'other-1', { return_url: `${gateway.baseUrl}/demo/return` });
  expect((await fetchPage((await returnOf(payment_link)).href)).text).toContain('>Not valid<');
});

test('GET /demo/return without a demo merchant: 404', async () => {
  const other = await runGateway();
  expect((await fetchPage(`${other.url}/demo/return`)).status).toBe(404);
});
