import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { unauthenticatedLimits } from '../../../src/limits.ts';
import { createOpenId, type OpenIdSecrets } from '../../../src/pages/console/openid.ts';
import { bind } from '../../../src/runtime/network/listen.ts';
import { cookieOf, request } from '../../helpers/console-visitor.ts';
import { startIdentityProvider } from '../../helpers/identity-provider.ts';
import { type RunningGateway, runGateway, startGateway } from '../../helpers/running-gateway.ts';

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

type IdentityProvider = typeof provider;

/** Signs a person in at a provider. Returns the redirect to the gateway without following it. */
async function signInAt({ settings: { issuer } }: IdentityProvider, authorizationUrl: string): Promise<string> {
  const cookies = new Map<string, string>();
  let url = authorizationUrl;
  expect(new URL(url).origin).toBe(issuer);
  while (url.startsWith(issuer)) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const { status, headers, text } = await request(url, { headers: { cookie } });
    expect([status, text]).toEqual([303, text]);
    for (const cookieHeader of headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookieHeader) ?? [];
      cookies.set(name, value);
    }
    url = new URL(headers.get('location') ?? '', url).href;
  }
  return url;
}

/** Starts a sign-in, in a browser with these cookies, and returns with it to the gateway's address. */
async function signInAtProvider(claims: Readonly<Record<string, unknown>>, cookies = '') {
  provider.setClaims(claims);
  const started = await request(`${gateway.url}/console/openid`, { headers: { cookie: cookies } });
  expect(started.status).toBe(303);
  const url = await signInAt(provider, started.headers.get('location') ?? '');
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

const titleOf = ({ text }: { readonly text: string }) => /<h1>(.*?)<\/h1>/.exec(text)?.[1];

test('a person who signs in at the provider gets a session with the role in the claim', async () => {
  const response = await returnToGateway(await signInAtProvider(ada()));
  expect([response.status, response.headers.get('refresh')]).toEqual([200, '0; url=/console']);
  expect(response.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^order-gateway-openid-[\w-]{43}=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax$/),
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

test.each([
  ['an unverified email address', { email: 'ada@example.com' }],
  ['no email address', { email_verified: true }],
  ['an email address that is not a text', { email: { address: 'ada@example.com' }, email_verified: true }],
  ['the text "true" in place of a verification', { email: 'ada@example.com', email_verified: 'true' }],
])('with %s, the name of a person is the subject', async (_name, claims) => {
  const { session = '' } = await returnToGateway(await signInAtProvider({ ...claimOf('manage'), ...claims }));
  const { text } = await request(`${gateway.url}/console/secrets`, { headers: { cookie: session } });
  expect(text).toContain('<bdi>ada-1</bdi>');
});

test('several tabs sign in at the same time, and a sign-in ends the session that the browser had', async () => {
  const first = await signInAtProvider(ada());
  const second = await signInAtProvider(ada(), first.cookie);
  const cookie = `${first.cookie}; ${second.cookie}`;
  const [{ session = '' }, { status }] = [
    await returnToGateway({ ...first, cookie }),
    await returnToGateway({ ...second, cookie }),
  ];
  expect(status).toBe(200);
  const visit = () => request(`${gateway.url}/console/orders`, { headers: { cookie: session } });
  expect((await visit()).status).toBe(200);
  expect(await returnToGateway(await signInAtProvider(ada(), session))).toMatchObject({ status: 200 });
  expect((await visit()).status).toBe(401);
});

test('the cookies of sign-ins that are never completed do not add up', async () => {
  const jar = new Set<string>();
  for (let count = 0; count < 30; count += 1) {
    const { headers } = await request(`${gateway.url}/console/openid`, { headers: { cookie: [...jar].join('; ') } });
    for (const cookieHeader of headers.getSetCookie()) {
      const [pair = ''] = cookieHeader.split(';');
      const [name = ''] = pair.split('=');
      if (cookieHeader.includes('Max-Age=0')) for (const kept of jar) if (kept.startsWith(`${name}=`)) jar.delete(kept);
      if (!cookieHeader.includes('Max-Age=0')) jar.add(pair);
    }
  }
  expect(jar.size).toBeLessThan(10);
});

describe('the page and the log tell apart why a person is not signed in', () => {
  const personal = "The user 'Ada Lovelace' (ada@example.com) is not assigned to https://pay.example.com/";
  test.each<[string, Record<string, unknown>, Record<string, string>, [number, string], Record<string, unknown>]>([
    [
      'the account has no claim',
      {},
      {},
      [403, 'This account can’t use the console'],
      { kind: 'account', reason: 'the ID token has no claim order_gateway' },
    ],
    [
      'the provider denies access',
      {},
      { error: 'access_denied', error_description: personal },
      [403, 'This account can’t use the console'],
      {
        kind: 'account',
        error: 'access_denied',
        error_description: 'The user … … is not assigned to https://pay.example.com/',
      },
    ],
    [
      'the sign-in began in another browser',
      {},
      { state: 'x'.repeat(43) },
      [403, 'This sign-in has ended'],
      { kind: 'expired' },
    ],
    [
      'the code is used',
      {},
      { code: 'x' },
      [403, 'This sign-in has ended'],
      { kind: 'expired', error: 'invalid_grant' },
    ],
    [
      'the provider does not know the client',
      {},
      { error: 'unauthorized_client', error_description: "Check 'https://pay.example.com/'" },
      [403, 'The sign-in is not set up correctly'],
      {
        kind: 'configuration',
        error: 'unauthorized_client',
        error_description: "Check 'https://pay.example.com/'",
      },
    ],
    [
      'the provider has failed',
      {},
      { error: 'server_error' },
      [503, 'Your organization’s sign-in does not respond'],
      { kind: 'provider', error: 'server_error' },
    ],
  ])('%s', async (_why, claims, changes, page, line) => {
    const signIn = await signInAtProvider(claims);
    for (const [name, value] of Object.entries(changes)) signIn.callback.searchParams.set(name, value);
    const response = await returnToGateway(signIn);
    expect([response.status, titleOf(response)]).toEqual(page);
    const lines = [...gateway.warnings, ...gateway.errors].filter(({ msg }) => `${msg}`.startsWith('sign-in'));
    expect(lines).toContainEqual(expect.objectContaining(line));
    expect(JSON.stringify(lines)).not.toMatch(/Lovelace|@example/);
  });
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
    () => `order-gateway-openid-${state}=${nonce}.${verifier}.`,
    (cookie: string) => cookie.replace(/=[^.]+\./, `=${nonce}.`),
    (cookie: string) => cookie.replace(/\.[^.]+\./, `.${verifier}.`),
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

describe('a provider', () => {
  const redirectUri = 'http://127.0.0.1/console/openid/callback';
  const run = async (...options: Parameters<typeof startIdentityProvider>) => {
    const started = await startIdentityProvider(...options);
    onTestFinished(async () => void (await started.close()));
    started.serve('http://127.0.0.1');
    started.setClaims(ada());
    return started;
  };
  /** Signs in with these settings. With `closes`, the provider stops before the gateway completes the sign-in. */
  const signInWith = async (
    used: IdentityProvider,
    { closes = false, ...settings }: { closes?: boolean; clientSecret?: string } = {},
  ) => {
    const openId = createOpenId({ ...used.settings, ...settings }, () => redirectUri);
    const begun = await openId.begin();
    const { url = '', secrets = {} as OpenIdSecrets } = begun.ok ? begun.value : {};
    const { searchParams } = new URL(await signInAt(used, url));
    if (closes) await used.close();
    return openId.complete(`${searchParams}`, secrets);
  };

  test.each(['client_secret_basic', 'client_secret_post'] as const)(
    'that accepts the client secret only by %s signs people in',
    async (authMethod) => {
      expect(await signInWith(await run(authMethod))).toMatchObject({ ok: true, value: { name: 'ada@example.com' } });
    },
  );

  test.each(['client_secret_basic', 'client_secret_post'] as const)(
    'that rejects the client secret by %s is a problem of the configuration',
    async (authMethod) => {
      const failure = { kind: 'configuration', error: 'invalid_client', error_description: expect.any(String) };
      expect(await signInWith(await run(authMethod), { clientSecret: 'other' })).toMatchObject({ ok: false, failure });
    },
  );

  test('that stops during a sign-in is a problem of the provider', async () => {
    expect(await signInWith(await run(), { closes: true })).toMatchObject({ failure: { kind: 'provider' } });
  });

  test.each([
    ['a failure', 503, {}, 'provider'],
    ['no metadata', 404, {}, 'configuration'],
    ['the metadata of another issuer', 200, { issuer: 'https://other.example.com' }, 'configuration'],
  ])('that responds with %s at the address of the metadata', async (_name, status, metadata, kind) => {
    const server = createServer((_, response) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(metadata)),
    );
    onTestFinished(() => void server.close());
    const issuer = `http://127.0.0.1:${await bind(server, { port: 0, host: '127.0.0.1' })}`;
    const openId = createOpenId({ ...provider.settings, issuer }, () => redirectUri);
    expect(await openId.begin()).toMatchObject({ ok: false, failure: { kind } });
  });
});

test('503 with a page about the provider if it is unreachable', async () => {
  const unreachable = await startIdentityProvider();
  const otherGateway = await runGateway({ hasConsole: true, openId: unreachable.settings });
  await unreachable.close();
  const response = await request(`${otherGateway.url}/console/openid`);
  expect([response.status, titleOf(response)]).toEqual([503, 'Your organization’s sign-in does not respond']);
  expect(otherGateway.errors).toMatchObject([{ kind: 'provider', reason: expect.stringContaining('ECONNREFUSED') }]);
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
