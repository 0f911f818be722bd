import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import { unauthenticatedLimits } from '../../src/limits.ts';
import { bind } from '../../src/network/listen.ts';
import { openBrowser } from '../browser/open-browser.ts';
import { cookieOf, request } from '../helpers/console-visitor.ts';
import { startIdentityProvider } from '../helpers/identity-provider.ts';
import { type RunningGateway, runGateway, startGateway } from '../helpers/running-gateway.ts';

let provider: Awaited<ReturnType<typeof startIdentityProvider>>;
let gateway: RunningGateway;
beforeAll(async () => {
  provider = await startIdentityProvider();
  gateway = await startGateway({ hasConsole: true, openId: provider.settings });
  provider.serve(gateway.baseUrl);
});
afterAll(() => Promise.all([gateway?.close(), provider?.close()]));

const claimOf = (role: string, { clientId } = gateway.credentials) => ({ order_gateway: `${clientId}:${role}` });
const ada = () => ({ ...claimOf('read'), email: 'ada@example.com', email_verified: true });

/** Follows the redirects from the start of a sign-in to the one that leads back to the gateway. */
async function signInAtProvider(claims: Readonly<Record<string, unknown>>) {
  provider.setClaims(claims);
  const begun = await request(`${gateway.url}/console/openid`);
  expect(begun.status).toBe(303);
  const cookies = new Map<string, string>();
  let url = begun.headers.get('location') ?? '';
  expect(new URL(url).origin).toBe(provider.settings.issuer);
  while (url.startsWith(provider.settings.issuer)) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const { status, headers, text } = await request(url, { headers: { cookie } });
    expect([status, text]).toEqual([303, text]);
    for (const set of headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      cookies.set(name, value);
    }
    url = new URL(headers.get('location') ?? '', url).href;
  }
  expect(url.startsWith(`${gateway.baseUrl}/console/openid/callback?`)).toBe(true);
  return { back: new URL(url.replace(gateway.baseUrl, gateway.url)), cookie: cookieOf(begun) };
}

/** Returns to the gateway, and whether a session began. */
async function comeBack({ back, cookie }: Awaited<ReturnType<typeof signInAtProvider>>) {
  const response = await request(back.href, { headers: { cookie } });
  const session = response.headers.getSetCookie().find((set) => /^order-gateway=\w{32};/.test(set));
  return { ...response, session: session?.split(';')[0] };
}

const rejected = { status: 403, session: undefined };

test('a person signs in at the provider, and has a session with the role of the claim', async () => {
  const back = await comeBack(await signInAtProvider(ada()));
  expect([back.status, back.headers.get('refresh')]).toEqual([200, '0; url=/console']);
  expect(back.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^order-gateway-openid=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax$/),
    expect.stringMatching(/^order-gateway=\w{32}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/),
  ]);
  const get = (path: string) => request(`${gateway.url}/console${path}`, { headers: { cookie: back.session ?? '' } });
  expect((await get('/orders')).text).toContain('<bdi>ada@example.com</bdi>');
  expect((await get('/secrets')).status).toBe(403);
  const [entry] = await gateway.accounts.log({ clientId: gateway.credentials.clientId, before: 1e9, limit: 1 });
  expect(entry).toMatchObject({
    action: 'console.sign_in',
    actor: 'console:ada@example.com',
    details: { role: 'read', signed_in_by: 'openid' },
  });
});

test('an email that is not verified is not the name in the audit log', async () => {
  const { session = '' } = await comeBack(await signInAtProvider({ ...claimOf('manage'), email: 'ada@example.com' }));
  const { text } = await request(`${gateway.url}/console/secrets`, { headers: { cookie: session } });
  expect(text).toContain('<bdi>ada-1</bdi>');
});

test.each<[string, (signIn: { back: URL; cookie: string }) => void]>([
  ['no state', ({ back }) => back.searchParams.delete('state')],
  ['another state', ({ back }) => back.searchParams.set('state', 'x'.repeat(43))],
  ['another issuer', ({ back }) => back.searchParams.set('iss', 'https://evil.example.com')],
  ['no issuer', ({ back }) => back.searchParams.delete('iss')],
  ['another code', ({ back }) => back.searchParams.set('code', 'x'.repeat(43))],
  ['an error of the provider', ({ back }) => back.searchParams.set('error', 'access_denied')],
])('a redirect with %s is rejected', async (_name, change) => {
  const signIn = await signInAtProvider(ada());
  change(signIn);
  expect(await comeBack(signIn)).toMatchObject(rejected);
});

test('the redirect of another browser is rejected, and one with a changed nonce or verifier', async () => {
  const [state, nonce, verifier] = ['x', 'y', 'z'].map((letter) => letter.repeat(43));
  for (const change of [
    () => '',
    () => `order-gateway-openid=${[state, nonce, verifier].join('.')}`,
    (cookie: string) => cookie.replace(/\.[^.]+\./, `.${nonce}.`),
    (cookie: string) => cookie.replace(/[^.]+$/, verifier ?? ''),
  ]) {
    const { back, cookie } = await signInAtProvider(ada());
    expect(await comeBack({ back, cookie: change(cookie) })).toMatchObject(rejected);
  }
});

test('a redirect that is sent again is rejected', async () => {
  const signIn = await signInAtProvider(ada());
  expect(await comeBack(signIn)).toMatchObject({ status: 200 });
  expect(await comeBack(signIn)).toMatchObject(rejected);
});

test('a person without a merchant, or with a disabled one, is rejected', async () => {
  const disabled = await gateway.accounts.create('Disabled');
  await gateway.accounts.disable(disabled.clientId);
  const claims = [
    {},
    { order_gateway: '' },
    { order_gateway: gateway.credentials.clientId },
    claimOf('admin'),
    claimOf('read:manage'),
    { order_gateway: [claimOf('read').order_gateway, claimOf('manage', disabled).order_gateway] },
    { order_gateway: [claimOf('read').order_gateway] },
    claimOf('manage', disabled),
    claimOf('manage', gateway.checkout.credentials),
    { order_gateway: `app_${'0'.repeat(24)}:manage` },
    { ...claimOf('manage'), email: 'x'.repeat(300), email_verified: true },
  ];
  for (const person of claims)
    expect([person, await comeBack(await signInAtProvider(person))]).toMatchObject([person, rejected]);
});

test('nothing in the request chooses where a sign-in leads', async () => {
  const target = 'https://evil.example.com/';
  const begun = await request(`${gateway.url}/console/openid?return_to=${target}&redirect_uri=${target}`);
  const sent = new URL(begun.headers.get('location') ?? '');
  expect([sent.origin, sent.searchParams.get('redirect_uri')]).toEqual([
    provider.settings.issuer,
    `${gateway.baseUrl}/console/openid/callback`,
  ]);
  expect(sent.searchParams.get('code_challenge_method')).toBe('S256');
  const signIn = await signInAtProvider(ada());
  signIn.back.searchParams.set('return_to', target);
  expect((await comeBack(signIn)).headers.get('refresh')).toBe('0; url=/console');
});

test('while the provider does not respond, a sign-in is 503', async () => {
  const late = await startIdentityProvider();
  const other = await runGateway({ hasConsole: true, openId: late.settings });
  late.serve('http://localhost:1');
  await late.close();
  expect((await request(`${other.url}/console/openid`)).status).toBe(503);
});

test('while the provider hangs, sign-ins keep no payment page waiting', async () => {
  const silent = createServer(() => {});
  const issuer = `http://127.0.0.1:${await bind(silent, { port: 0, host: '127.0.0.1' })}`;
  onTestFinished(() => silent.closeAllConnections());
  onTestFinished(() => void silent.close());
  const limits = { ...unauthenticatedLimits, inFlightMax: 1, waitingMax: 0 };
  const other = await runGateway({
    hasConsole: true,
    openId: { ...provider.settings, issuer },
    unauthenticatedLimits: limits,
  });
  const asked = once(silent, 'request');
  const begun = request(`${other.url}/console/openid`);
  await asked;
  expect((await request(`${other.url}/payment/${'x'.repeat(32)}`)).status).toBe(404);
  silent.closeAllConnections();
  expect((await begun).status).toBe(503);
});

test('without a provider, there is no such page', async () => {
  const other = await runGateway({ hasConsole: true });
  expect((await request(`${other.url}/console/openid`)).status).toBe(404);
  expect((await request(`${other.url}/console`)).text).not.toContain('openid');
});

const opened = await openBrowser();
if (opened.kind === 'none') test.skipIf(mustSkip('OpenID Connect in a real browser', opened.reason))('in a browser');
else
  describe(`in ${opened.name}`, () => {
    afterAll(() => opened.browser.close());

    test('one click signs a person in, without JavaScript', async () => {
      provider.setClaims(ada());
      const context = await opened.browser.newContext({ javaScriptEnabled: false });
      const page = await context.newPage();
      page.setDefaultTimeout(0);
      await page.goto(`${gateway.baseUrl}/console`);
      await page.getByRole('link', { name: 'Sign in with your organisation’s account' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();
    });
  });
