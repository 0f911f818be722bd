import { createHmac, timingSafeEqual } from 'node:crypto';
import { consoleLimits, consoleTokenForm } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { type CookieOptions, parse, serialize } from 'hono/utils/cookie';
import { isLoopbackUrl } from '../network/ip-address.ts';

/** The names of two cookies: of a session, and of a sign-in with OpenID Connect until the provider's redirect. */
const sessionName = 'order-gateway';
const openIdName = 'order-gateway-openid';

/** How long a person has to sign in at the provider. */
const openIdSeconds = 600;

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

/** Returns the secret of a sign-in from a Cookie header; empty if there is none. */
export function openIdSecretIn(header: string | undefined, baseUrl: BaseUrl): string {
  return valueIn(header, openIdName, baseUrl) ?? '';
}

/**
 * Returns the Set-Cookie header of the secret of a sign-in; without a secret, the header that removes the cookie.
 * Browsers send the cookie with the provider's redirect.
 */
export function openIdCookie(secret: string | undefined, baseUrl: BaseUrl): string {
  return setCookie(openIdName, secret, { sameSite: 'Lax', maxAge: openIdSeconds }, baseUrl);
}

/** Returns the token that each form of a session contains. Other sites can't know the token. */
export function formTokenOf(sessionToken: string): string {
  return createHmac('sha256', sessionToken).update('form').digest('base64url');
}

export function isFormToken(sent: string | null, sessionToken: string): boolean {
  return areEqual(sent ?? '', formTokenOf(sessionToken));
}

/** Whether a sent text equals a secret one. Takes a time that does not depend on the content of the secret. */
export function areEqual(sent: string, expected: string): boolean {
  const [sentBytes, expectedBytes] = [Buffer.from(sent), Buffer.from(expected)];
  return sentBytes.length === expectedBytes.length && timingSafeEqual(sentBytes, expectedBytes);
}
