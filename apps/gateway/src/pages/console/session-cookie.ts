import { createHmac } from 'node:crypto';
import { consoleLimits, consoleTokenForm, hashSecret } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { equalsSecret } from '@order-gateway/domain/signing';
import { isLoopbackUrl } from '@order-gateway/runtime/ip-address';
import { type CookieOptions, parse, serialize } from 'hono/utils/cookie';
import type { OpenIdSecrets } from './openid.ts';

const sessionName = 'order-gateway';

/**
 * The start of the names of cookies that exist until the provider of OpenID Connect redirects the browser. Each sign-in
 * has its own, so that several tabs can sign in.
 */
const openIdPrefix = 'order-gateway-openid-';

/** How long a person has to sign in at the provider. */
const openIdSeconds = 600;

/** More unfinished sign-ins would make the header of later requests too large. */
const openIdCookiesMax = 8;

/**
 * Returns the prefix of cookie names. With `__Host-`, browsers accept a cookie only over TLS and from this host (RFC
 * 6265bis, 4.1.3.2). There is no prefix for a gateway at a loopback address without TLS.
 */
function prefixAt(baseUrl: BaseUrl): '__Host-' | '' {
  const url = new URL(baseUrl);
  return url.protocol === 'https:' || !isLoopbackUrl(url) ? '__Host-' : '';
}

function valueIn(header = '', cookie: string, baseUrl: BaseUrl): string | undefined {
  const name = `${prefixAt(baseUrl)}${cookie}`;
  return parse(header, name)[name];
}

function setCookie(cookie: string, value: string | undefined, options: CookieOptions, baseUrl: BaseUrl): string {
  const prefix = prefixAt(baseUrl);
  const sharedOptions = {
    path: '/',
    httpOnly: true,
    ...(prefix && { secure: true }),
    ...(value === undefined && { maxAge: 0 }),
  };
  return serialize(`${prefix}${cookie}`, value ?? '', { ...options, ...sharedOptions });
}

/** Returns the token in a Cookie header; `undefined` if there is none. */
export function sessionTokenIn(header: string | undefined, baseUrl: BaseUrl): string | undefined {
  const token = valueIn(header, sessionName, baseUrl) ?? '';
  return consoleTokenForm.test(token) ? token : undefined;
}

/**
 * Returns the Set-Cookie header of a session; without a token, the header that removes the cookie. Browsers never send
 * the cookie with requests from other sites.
 */
export function sessionCookie(token: string | undefined, baseUrl: BaseUrl): string {
  return setCookie(sessionName, token, { sameSite: 'Strict', maxAge: consoleLimits.sessionMs / 1_000 }, baseUrl);
}

/** Returns the secrets of the sign-in with this `state` from a Cookie header; `undefined` if there are none. */
export function openIdSecretsIn(header: string | undefined, state: string, baseUrl: BaseUrl) {
  const [nonce = '', verifier = '', replaced = ''] = valueIn(header, openIdPrefix + state, baseUrl)?.split('.') ?? [];
  if (nonce === '' || verifier === '') return undefined;
  return { state, nonce, verifier, replacedDigest: replaced ? Buffer.from(replaced, 'base64url') : undefined };
}

/**
 * Returns the Set-Cookie headers for a sign-in that begins. Browsers send the cookie with the provider's redirect. They
 * do not send the cookie of the session, so its digest is part of the secrets. Removes the cookies of earlier sign-ins
 * if there are too many.
 */
export function openIdCookies(
  header: string | undefined,
  { state, nonce, verifier }: OpenIdSecrets,
  baseUrl: BaseUrl,
): string[] {
  const token = sessionTokenIn(header, baseUrl);
  const replaced = token === undefined ? '' : Buffer.from(hashSecret(token)).toString('base64url');
  const options = { sameSite: 'Lax', maxAge: openIdSeconds } as const;
  const started = setCookie(openIdPrefix + state, [nonce, verifier, replaced].join('.'), options, baseUrl);
  const prefix = prefixAt(baseUrl);
  const earlier = Object.keys(parse(header ?? '')).filter((name) => name.startsWith(prefix + openIdPrefix));
  if (earlier.length < openIdCookiesMax) return [started];
  return [started, ...earlier.map((name) => endedOpenIdCookie(name.slice(`${prefix}${openIdPrefix}`.length), baseUrl))];
}

/** Returns the Set-Cookie header that removes the secrets of a sign-in. */
export function endedOpenIdCookie(state: string, baseUrl: BaseUrl): string {
  return setCookie(openIdPrefix + state, undefined, { sameSite: 'Lax' }, baseUrl);
}

/** Returns the token that each form of a session contains. Other sites can't know the token. */
export function formTokenOf(sessionToken: string): string {
  return createHmac('sha256', sessionToken).update('form').digest('base64url');
}

export function isFormToken(sent: string | null, sessionToken: string): boolean {
  return equalsSecret(sent ?? '', formTokenOf(sessionToken));
}
