import { runQuery } from '@order-gateway/postgres/testing/run-query';
import { expect, test } from 'vitest';
import { jpeg, pngOf, progressiveJpeg, webp } from '../../helpers/images.ts';
import { useGateway } from '../../helpers/running-gateway.ts';
import { type Caller, callJson, createOrder } from '../../helpers/send-order.ts';

const gateway = useGateway();

/** Changes a merchant's logo to an image. */
const changeLogo = (merchant: Caller, image: Buffer) =>
  callJson(merchant, 'PATCH', '/brand', { logo: image.toString('base64') });

const links = {
  support_email: 'help@shop.example',
  support_url: 'https://shop.example/help',
  terms_url: 'https://shop.example/terms',
  privacy_url: 'https://shop.example/privacy',
  payment_instructions: 'Transfer to\nDE75 5121 0800 1245 1261 99',
};

test('the payment page shows the brand: logo, colour, icon, support and legal links, and no amount in its preview', async () => {
  const merchant = await gateway.newMerchant('Blue Bottle Roasters');
  const changes = { logo: webp.toString('base64'), color: '#0B5FFF', ...links };
  const { status, body } = await callJson(merchant, 'PATCH', '/brand', changes);
  const { logo_url } = body;
  expect([status, body]).toEqual([200, { logo_url: expect.any(String), color: '#0B5FFF', ...links }]);
  const { payment_link } = await createOrder(merchant, 'branded', { order_amount: 48.5, order_currency: 'USD' });
  const response = await fetch(payment_link);
  const page = await response.text();
  const path = new URL(logo_url).pathname;
  for (const part of [
    '<title>Pay Blue Bottle Roasters</title>',
    `<img class="logo" src="${path}" width="8" height="4" alt="">`,
    `<link rel="icon" href="${path}">`,
    `<meta property="og:image" content="${logo_url}">`,
    '--accent:#0b5fff',
    'href="mailto:help@shop.example"',
    `<bdi>${links.payment_instructions}</bdi>`,
    ...[links.support_url, links.terms_url, links.privacy_url].map((url) => `href="${url}"`),
  ]) {
    expect(page).toContain(part);
  }
  for (const [preview] of page.matchAll(/<meta property="og:[^>]*>/g)) expect(preview).not.toContain('48.5');
  expect(response.headers.get('content-security-policy')).toMatch(/style-src 'sha256-[^ ]+' 'sha256-[^ ]+';/);
  const json = await (await fetch(payment_link, { headers: { accept: 'application/json' } })).json();
  expect(json).toMatchObject({ brand: body });
});

test.each([
  ['png', pngOf(8, 4)],
  ['jpeg', jpeg],
  ['webp', webp],
])('a logo in %s is served unchanged, and caches may store it', async (type, image) => {
  const { body } = await changeLogo(await gateway.newMerchant(), image);
  expect(body.logo_url).toMatch(new RegExp(`^${gateway.baseUrl}/logos/[\\w-]{43}\\.${type}$`));
  for (const _ of ['stored', 'cached']) {
    const response = await fetch(body.logo_url);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': `image/${type}`,
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy': "default-src 'none'; sandbox",
      'x-content-type-options': 'nosniff',
    });
    expect(Buffer.from(await response.arrayBuffer()).equals(image)).toBe(true);
  }
  const other = type === 'png' ? 'webp' : 'png';
  for (const path of [body.logo_url.replace(/\w+$/, other), `${gateway.url}/logos/${'x'.repeat(43)}.png`]) {
    expect((await fetch(path)).status).toBe(404);
  }
});

test('a logo may have 256 KiB of base64, and requests that do not change a brand have a lower limit', async () => {
  const merchant = await gateway.newMerchant();
  const filler = Buffer.concat([Buffer.from([0xff, 0xfe, 0xff, 0xfd]), Buffer.alloc(65_531)]);
  const padded = Buffer.concat([jpeg.subarray(0, 2), filler, filler, filler, jpeg.subarray(2)]);
  const { status, body } = await changeLogo(merchant, padded);
  expect([status, body.logo_url]).toEqual([200, expect.stringContaining('.jpeg')]);
  const large = 'x'.repeat(70_000);
  expect((await callJson(merchant, 'POST', '/webhook_endpoints', { url: large })).body.code).toBe('body_too_large');
  expect((await callJson(merchant, 'PATCH', '/brand', { color: 'x'.repeat(400_000) })).body).toMatchObject({
    code: 'body_too_large',
    detail: expect.stringContaining('384 KiB to change a brand'),
  });
});

test("logos that are slow to decode don't block another merchant's logo, and too many scans are invalid", async () => {
  const [hostile, other] = [await gateway.newMerchant(), await gateway.newMerchant()];
  const slow = progressiveJpeg(32);
  const [first, second, third] = await Promise.all([
    changeLogo(hostile, slow),
    changeLogo(hostile, slow),
    changeLogo(other, webp),
  ]);
  expect([first.status, second.status].toSorted()).toEqual([200, 429]);
  expect([third.status, third.body.logo_url]).toEqual([200, expect.stringContaining('.webp')]);
  expect((await changeLogo(hostile, progressiveJpeg(5_000))).body).toMatchObject({
    code: 'invalid_request',
    errors: [{ field: 'logo', code: 'out_of_range', message: expect.stringContaining('32 scans') }],
  });
});

test('every change is in the audit log with the digest of the logo, and a rejected or empty change stores nothing', async () => {
  const merchant = await gateway.newMerchant();
  const { clientId } = merchant.credentials;
  await callJson(merchant, 'PATCH', '/brand', { logo: webp.toString('base64'), color: '#000000' });
  for (const removed of ['logo', 'color']) await callJson(merchant, 'PATCH', '/brand', { [removed]: '' });
  await callJson(merchant, 'PATCH', '/brand', { color: 'javascript:alert(1)' });
  await callJson(merchant, 'PATCH', '/brand', {});
  expect((await callJson(merchant, 'GET', '/brand')).body).toEqual({});
  const log = await gateway.accounts.log({ clientId, after: 0, limit: 10 });
  expect(log.slice(1).map(({ actor, action, details }) => [actor, action, details])).toEqual([
    [clientId, 'brand', { color: '#000000', logo: expect.stringMatching(/^[\w-]{43}$/) }],
    [clientId, 'brand', { logo: null }],
    [clientId, 'brand', { color: '' }],
  ]);
  const stored = await runQuery(
    gateway.databaseUrl,
    `select logo from brands where merchant_id = (select id from accounts where client_id = '${clientId}')`,
  );
  expect(stored).toEqual([{ logo: null }]);
});
