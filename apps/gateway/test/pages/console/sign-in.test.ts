import { describe, expect, test } from 'vitest';
import { unauthenticatedLimits } from '../../../src/limits.ts';
import { cookieOf, newSignInLink, request, signIn } from '../../helpers/console-visitor.ts';
import { runGateway, useGateway } from '../../helpers/running-gateway.ts';

const gateway = useGateway({ hasConsole: true, baseUrl: 'https://pay.example.com/shop' });

describe('the sign-in link', () => {
  test('GET shows a button and does not use the link, and POST signs in once', async () => {
    const link = await newSignInLink(gateway);
    for (const _preview of [1, 2]) {
      const page = await request(link);
      expect([page.status, page.text]).toEqual([200, expect.stringContaining('<form method="post">')]);
    }
    const signedIn = await request(link, { form: {} });
    expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, '/shop/console']);
    const cookie = signedIn.headers.get('set-cookie');
    expect(cookie).toMatch(
      /^__Host-order-gateway=[0-9A-Za-z]{32}; Max-Age=28800; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
    );
    const secondUse = await request(link, { form: {} });
    const unknown = await request(`${gateway.url}/console/sign-in/${'x'.repeat(32)}`, { form: {} });
    expect([secondUse.status, unknown.status]).toEqual([410, 410]);
    expect(secondUse.text).toBe(unknown.text);
    expect(cookieOf(secondUse)).toBe('');
  });

  test('starts a new session, even if an attacker has set a session cookie (session fixation)', async () => {
    const planted = `__Host-order-gateway=${'0'.repeat(32)}`;
    const signedIn = await request(await newSignInLink(gateway), { form: {}, headers: { cookie: planted } });
    expect(cookieOf(signedIn)).not.toBe(planted);
    const visited = await request(`${gateway.url}/console/sessions`, { headers: { cookie: planted } });
    expect(visited.status).toBe(401);
  });

  test('ends the session that the browser had before', async () => {
    const { cookie, get } = await signIn(gateway);
    const latest = cookieOf(await request(await newSignInLink(gateway), { form: {}, headers: { cookie } }));
    expect((await get('/sessions')).status).toBe(401);
    expect((await request(`${gateway.url}/console/sessions`, { headers: { cookie: latest } })).status).toBe(200);
  });

  test.each([
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example.com' },
    { origin: 'null' },
  ])('a form from another site is rejected with 403, and the link still works: %j', async (headers) => {
    const link = await newSignInLink(gateway);
    const body = new URLSearchParams();
    const response = await fetch(link, { method: 'POST', body, headers, redirect: 'manual' });
    expect([response.status, response.headers.get('set-cookie')]).toEqual([403, null]);
    expect((await request(link, { form: {} })).status).toBe(303);
  });
});

test('after signing out, the cookie no longer works', async () => {
  const visitor = await signIn(gateway);
  expect((await visitor.get('/sessions')).status).toBe(200);
  const signedOut = await visitor.post('/sign-out');
  expect([signedOut.status, cookieOf(signedOut)]).toEqual([303, '__Host-order-gateway=']);
  const after = await visitor.get('/sessions');
  expect([after.status, after.text]).toEqual([401, expect.stringContaining('You are signed out')]);
});

test('a manager invites a colleague, ends a session, and signs everyone out', async () => {
  const shop = await gateway.newMerchant();
  const [manager, clerk] = [await signIn(shop), await signIn(shop, { name: 'Bob', role: 'read' })];
  const page = await manager.get('/sessions');
  expect(page.text).toContain('<bdi>Bob</bdi>');
  const invalid = await manager.post('/sessions', { name: ' ', role: 'read' });
  expect([invalid.status, invalid.text]).toEqual([400, expect.stringContaining('id="name-error"')]);
  const invited = await manager.post('/sessions', { name: 'Cy', role: 'read' });
  const [link = ''] = /https:\/\/pay\.example\.com\/shop\/console\/sign-in\/\w+/.exec(invited.text) ?? [];
  const token = link.split('/').at(-1);
  expect((await request(`${gateway.url}/console/sign-in/${token}`, { form: {} })).status).toBe(303);
  const [, id] = /sessions\/(\d+)\/end"><input[^>]+><button class="button plain">Sign <bdi>Bob/.exec(page.text) ?? [];
  const otherVisitor = await signIn(gateway);
  for (const unknown of [id, 'x', '9'.repeat(30)])
    expect((await otherVisitor.post(`/sessions/${unknown}/end`)).status).toBe(404);
  expect((await clerk.get('/sessions')).status).toBe(200);
  expect((await manager.post(`/sessions/${id}/end`)).status).toBe(303);
  expect((await clerk.get('/sessions')).status).toBe(401);
  expect((await manager.post('/sign-out-all')).status).toBe(303);
  expect((await manager.get('/sessions')).status).toBe(401);
  expect((await otherVisitor.get('/sessions')).status).toBe(200);
});

test('a person with the role `read` sees only the form to sign out, and gets 403 for every other action', async () => {
  const clerk = await signIn(gateway, { role: 'read' });
  const { text } = await clerk.get('/sessions');
  expect(text.match(/<form[^>]*action="[^"]*"/g)).toEqual(['<form method="post" action="/shop/console/sign-out"']);
  for (const path of ['/sessions', '/sessions/1/end', '/sign-out-all']) {
    expect([path, (await clerk.post(path)).status]).toEqual([path, 403]);
  }
});

const unescaped = (html: string) =>
  html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

const hiddenFieldsIn = (html: string) =>
  [...html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)].map(([, name = '', value = '']) => [
    name,
    unescaped(value),
  ]);

describe('a form of the console', () => {
  test.each([{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'none' }])(
    'is rejected with 403 unless it comes from the same origin: %j',
    async (headers) => {
      const visitor = await signIn(gateway);
      expect((await visitor.post('/sign-out', {}, headers)).status).toBe(403);
      expect((await visitor.get('/sessions')).status).toBe(200);
    },
  );

  test('is rejected with 403 if its token is missing, changed or from another session', async () => {
    const [visitor, otherVisitor] = [await signIn(gateway), await signIn(gateway)];
    for (const form_token of ['', otherVisitor.formToken, `${visitor.formToken} `]) {
      expect((await visitor.post('/sign-out', { form_token })).status).toBe(403);
    }
    expect((await visitor.get('/sessions')).status).toBe(200);
  });

  test.each([
    ['/new-order', { order_amount: '49.90', order_note: 'Two lines\r\n<b>"quoted" & more</b>' }],
    ['/webhooks', { url: 'https://shop.example.com/hooks?a=1&b="2"' }],
    ['/sessions', { name: "Ada O'Neil", role: 'manage' }],
    ['/brand', { support_email: '<ada@example.com>' }],
  ])('that is sent to %s after the session has ended is returned unchanged, and does nothing', async (path, form) => {
    const shop = await gateway.newMerchant();
    const visitor = await signIn(shop);
    await visitor.post('/sign-out');
    const signedOut = await visitor.post(path, form);
    expect([signedOut.status, signedOut.text]).toEqual([401, expect.stringContaining('This page keeps')]);
    const kept = Object.fromEntries(hiddenFieldsIn(signedOut.text));
    expect(kept).toEqual(form);
    const { cookie } = await signIn(shop);
    const again = await request(`${gateway.url}/console${path}`, { form: kept, headers: { cookie } });
    expect([again.status, again.text]).toEqual([403, expect.stringContaining('Nothing has been done yet')]);
    for (const text of Object.values(form)) expect(unescaped(again.text)).toContain(text);
  });

  test('that has only a button is not kept', async () => {
    const visitor = await signIn(gateway);
    await visitor.post('/sign-out');
    const { status, text } = await visitor.post('/sign-out-all', { note: 'x' });
    expect([status, text]).toEqual([401, expect.not.stringContaining('This page keeps')]);
  });

  test('is rejected with 401 without a session', async () => {
    const response = await request(`${gateway.url}/console/sign-out`, { form: { form_token: 'x' } });
    expect(response.status).toBe(401);
  });
});

test('no page can be stored, framed or indexed, or runs a script of others, and a request for an embedded page is rejected', async () => {
  const visitor = await signIn(gateway);
  const pages = [
    await request(await newSignInLink(gateway)),
    await request(`${gateway.url}/console`),
    await visitor.get('/sessions'),
    await visitor.get('/sessions', { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'iframe' }),
  ];
  expect(pages.map(({ status }) => status)).toEqual([200, 401, 200, 403]);
  for (const { headers, text } of pages) {
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-[^ ]+'; script-src 'sha256-[^ ]+'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
      ),
      'x-frame-options': 'DENY',
      'x-robots-tag': 'noindex, nofollow',
      'x-content-type-options': 'nosniff',
    });
    expect(text).not.toContain('<script>');
  }
});

test('a link on another site can open the console', async () => {
  const visitor = await signIn(gateway);
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' };
  expect((await visitor.get('/sessions', headers)).status).toBe(200);
});

test('disabling the merchant ends its sessions', async () => {
  const shop = await gateway.newMerchant();
  const visitor = await signIn(shop);
  await gateway.accounts.disable(shop.credentials.clientId);
  expect((await visitor.get('/sessions')).status).toBe(401);
});

test('guesses of links and sessions are limited like guesses of client secrets', async () => {
  // The two requests of the first guess use it up. Later ones are allowed so rarely that even slow guesses exceed it.
  const rejectedPerSecond = 2;
  const limited = await runGateway({
    hasConsole: true,
    unauthenticatedLimits: { ...unauthenticatedLimits, rejectedPerSecond, pauseMs: 50 },
  });
  const visitor = await signIn(limited);
  const statuses = new Map<string, number>();
  const guess = async (count: number) => {
    const token = `${count}`.padStart(32, '0');
    const [link, session] = [
      await request(`${limited.url}/console/sign-in/${token}`, { form: {} }),
      await request(`${limited.url}/console/sessions`, { headers: { cookie: `order-gateway=${token}` } }),
    ];
    for (const { status } of [link, session]) statuses.set(`${status}`, (statuses.get(`${status}`) ?? 0) + 1);
  };
  const startedAt = performance.now();
  await guess(0);
  for (let count = 1; count < 100; count += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, index) => guess(count + index)));
  }
  expect([...statuses.keys()].toSorted()).toEqual(['401', '410', '429']);
  // A second's worth is allowed at once. On a busy machine, the guesses take longer, and more of them are allowed.
  const allowedMax = rejectedPerSecond * (1 + (performance.now() - startedAt) / 1_000);
  expect(202 - Number(statuses.get('429'))).toBeLessThanOrEqual(allowedMax);
  expect((await visitor.get('/sessions')).status).toBe(200);
});

test('an unknown path gets a 404 page with a link to the console, with and without a session', async () => {
  const { get } = await signIn(gateway);
  for (const response of [
    await get('/unknown'),
    await get('/orders/1/2/3'),
    await request(`${gateway.url}/console/`),
  ]) {
    expect([response.status, response.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8']);
    expect(response.text).toContain('<h1>There is no such page</h1>');
    expect(response.text).toMatch(/<a href="[^"]*\/console">Overview<\/a>/);
  }
  expect((await request(`${gateway.url}/consoles`)).headers.get('content-type')).toContain('json');
});

test('without CONSOLE, every path under /console gets 404', async () => {
  const without = await runGateway();
  for (const path of ['/console', '/console/sessions', `/console/sign-in/${'x'.repeat(32)}`]) {
    expect((await request(without.url + path)).status).toBe(404);
  }
});
