import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { unauthenticatedLimits } from '../../src/limits.ts';
import { bind } from '../../src/network/listen.ts';
import { describeInBrowser } from '../browser/pages.ts';
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

/** Starts a sign-in and follows the provider's redirects. Returns the redirect to the gateway without following it. */
async function signInAtProvider(claims: Readonly<Record<string, unknown>>) {
  provider.setClaims(claims);
  const started = await request(`${gateway.url}/console/openid`);
  expect(started.status).toBe(303);
  const cookies = new Map<string, string>();
  let url = started.headers.get('location') ?? '';
  expect(new URL(url).origin).toBe(provider.settings.issuer);
  while (url.startsWith(provider.settings.issuer)) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const { status, headers, text } = await request(url, { headers: { cookie } });
    expect([status, text]).toEqual([303, text]);
    for (const cookieHeader of headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookieHeader) ?? [];
      cookies.set(name, value);
    }
    url = new URL(headers.get('location') ?? '', url).href;
  }
  expect(url.startsWith(`${gateway.baseUrl}/console/openid/callback?`)).toBe(true);
  return { callback: new URL(url.replace(gateway.baseUrl, gateway.url)), cookie: cookieOf(started) };
}

/** Follows the redirect to the gateway. `session` is the cookie of the session, if one was started. */
async function returnToGateway({ callback, cookie }: Awaited<ReturnType<typeof signInAtProvider>>) {
  const response = await request(callback.href, { headers: { cookie } });
  const session = response.headers.getSetCookie().find((cookieHeader) => /^order-gateway=\w{32};/.test(cookieHeader));
  return { ...response, session: session?.split(';')[0] };
}

const rejected = { status: 403, session: undefined };

test('a person who signs in at the provider gets a session with the role in the claim', async () => {
  const response = await returnToGateway(await signInAtProvider(ada()));
  expect([response.status, response.headers.get('refresh')]).toEqual([200, '0; url=/console']);
  expect(response.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^order-gateway-openid=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax$/),
    expect.stringMatching(/^order-gateway=\w{32}; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/),
  ]);
  const get = (path: string) =>
    request(`${gateway.url}/console${path}`, { headers: { cookie: response.session ?? '' } });
  expect((await get('/orders')).text).toContain('<bdi>ada@example.com</bdi>');
  expect((await get('/secrets')).status).toBe(403);
  const [entry] = await gateway.accounts.log({ clientId: gateway.credentials.clientId, before: 1e9, limit: 1 });
  expect(entry).toMatchObject({
    action: 'console.sign_in',
    actor: 'console:ada@example.com',
    details: { role: 'read', signed_in_by: 'openid' },
  });
});

test('an unverified email address is not used as the name of a person', async () => {
  const { session = '' } = await returnToGateway(
    await signInAtProvider({ ...claimOf('manage'), email: 'ada@example.com' }),
  );
  const { text } = await request(`${gateway.url}/console/secrets`, { headers: { cookie: session } });
  expect(text).toContain('<bdi>ada-1</bdi>');
});

test.each<[string, (signIn: { callback: URL; cookie: string }) => void]>([
  ['no state', ({ callback }) => callback.searchParams.delete('state')],
  ['a different state', ({ callback }) => callback.searchParams.set('state', 'x'.repeat(43))],
  ['a different issuer', ({ callback }) => callback.searchParams.set('iss', 'https://evil.example.com')],
  ['no issuer', ({ callback }) => callback.searchParams.delete('iss')],
  ['a different code', ({ callback }) => callback.searchParams.set('code', 'x'.repeat(43))],
  ['an error from the provider', ({ callback }) => callback.searchParams.set('error', 'access_denied')],
])('a redirect with %s is rejected', async (_name, change) => {
  const signIn = await signInAtProvider(ada());
  change(signIn);
  expect(await returnToGateway(signIn)).toMatchObject(rejected);
});

test('a redirect without the cookie of this sign-in, or with a changed nonce or verifier, is rejected', async () => {
  const [state, nonce, verifier] = ['x', 'y', 'z'].map((letter) => letter.repeat(43));
  for (const change of [
    () => '',
    () => `order-gateway-openid=${[state, nonce, verifier].join('.')}`,
    (cookie: string) => cookie.replace(/\.[^.]+\./, `.${nonce}.`),
    (cookie: string) => cookie.replace(/[^.]+$/, verifier ?? ''),
  ]) {
    const { callback, cookie } = await signInAtProvider(ada());
    expect(await returnToGateway({ callback, cookie: change(cookie) })).toMatchObject(rejected);
  }
});

test('a redirect that is repeated is rejected', async () => {
  const signIn = await signInAtProvider(ada());
  expect(await returnToGateway(signIn)).toMatchObject({ status: 200 });
  expect(await returnToGateway(signIn)).toMatchObject(rejected);
});

test('a person whose claim is not one text with an enabled merchant and a role, or whose name is too long, is rejected', async () => {
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
    expect([person, await returnToGateway(await signInAtProvider(person))]).toMatchObject([person, rejected]);
});

test('no parameter of a request changes where a sign-in redirects to', async () => {
  const target = 'https://evil.example.com/';
  const started = await request(`${gateway.url}/console/openid?return_to=${target}&redirect_uri=${target}`);
  const providerUrl = new URL(started.headers.get('location') ?? '');
  expect([providerUrl.origin, providerUrl.searchParams.get('redirect_uri')]).toEqual([
    provider.settings.issuer,
    `${gateway.baseUrl}/console/openid/callback`,
  ]);
  expect(providerUrl.searchParams.get('code_challenge_method')).toBe('S256');
  const signIn = await signInAtProvider(ada());
  signIn.callback.searchParams.set('return_to', target);
  expect((await returnToGateway(signIn)).headers.get('refresh')).toBe('0; url=/console');
});

test('503 if the provider is unreachable', async () => {
  const unreachable = await startIdentityProvider();
  const otherGateway = await runGateway({ hasConsole: true, openId: unreachable.settings });
  await unreachable.close();
  expect((await request(`${otherGateway.url}/console/openid`)).status).toBe(503);
});

test('while the provider hangs, waiting sign-ins do not delay payment pages', async () => {
  const silent = createServer(() => {});
  const issuer = `http://127.0.0.1:${await bind(silent, { port: 0, host: '127.0.0.1' })}`;
  onTestFinished(() => silent.closeAllConnections());
  onTestFinished(() => void silent.close());
  const limits = { ...unauthenticatedLimits, inFlightMax: 1, waitingMax: 0 };
  const otherGateway = await runGateway({
    hasConsole: true,
    openId: { ...provider.settings, issuer },
    unauthenticatedLimits: limits,
  });
  const providerRequested = once(silent, 'request');
  const started = request(`${otherGateway.url}/console/openid`);
  await providerRequested;
  expect((await request(`${otherGateway.url}/payment/${'x'.repeat(32)}`)).status).toBe(404);
  silent.closeAllConnections();
  expect((await started).status).toBe(503);
});

test('404 if no provider is configured', async () => {
  const otherGateway = await runGateway({ hasConsole: true });
  expect((await request(`${otherGateway.url}/console/openid`)).status).toBe(404);
  expect((await request(`${otherGateway.url}/console`)).text).not.toContain('openid');
});

await describeInBrowser('OpenID Connect', (browser) => {
  test('one click signs a person in, without JavaScript', async () => {
    provider.setClaims(ada());
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    page.setDefaultTimeout(0);
    await page.goto(`${gateway.baseUrl}/console`);
    await page.getByRole('link', { name: 'Sign in with your organization’s account' }).click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });
});
