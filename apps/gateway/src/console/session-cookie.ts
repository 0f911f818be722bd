import { createHmac, timingSafeEqual } from 'node:crypto';
import { consoleLimits, consoleTokenForm } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { type CookieOptions, parse, serialize } from 'hono/utils/cookie';
import { isLoopbackUrl } from '../network/ip-address.ts';

/** The cookies: of a session, and of a sign-in with OpenID Connect until the provider leads back to the gateway. */
const sessionName = 'order-gateway';
const openIdName = 'order-gateway-openid';

/** The time in which a person signs in at the provider. */
const openIdSeconds = 600;

/**
 * The prefix makes browsers accept a cookie only over TLS and from this host (RFC 6265bis, 4.1.3.2). On this machine,
 * there may be no TLS.
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
  const more = {
    path: '/',
    httpOnly: true,
    ...(prefix && { secure: true }),
    ...(value === undefined && { maxAge: 0 }),
  };
  return serialize(`${prefix}${cookie}`, value ?? '', { ...options, ...more });
}

/** Returns the token in a Cookie header; `undefined` if there is none. */
export function sessionTokenIn(header: string | undefined, baseUrl: BaseUrl): string | undefined {
  const token = valueIn(header, sessionName, baseUrl) ?? '';
  return consoleTokenForm.test(token) ? token : undefined;
}

/** The Set-Cookie header of a session; without a token, the one that removes the cookie. Other sites never send it. */
export function sessionCookie(token: string | undefined, baseUrl: BaseUrl): string {
  return setCookie(sessionName, token, { sameSite: 'Strict', maxAge: consoleLimits.sessionMs / 1_000 }, baseUrl);
}

/** Returns the secret of a sign-in in a Cookie header; empty if there is none. */
export function openIdSecretIn(header: string | undefined, baseUrl: BaseUrl): string {
  return valueIn(header, openIdName, baseUrl) ?? '';
}

/** The same for the secret of a sign-in. The provider's redirect sends it. */
export function openIdCookie(secret: string | undefined, baseUrl: BaseUrl): string {
  return setCookie(openIdName, secret, { sameSite: 'Lax', maxAge: openIdSeconds }, baseUrl);
}

/** Returns the text that each form of a session contains, which no other site can know. */
export function formTokenOf(sessionToken: string): string {
  return createHmac('sha256', sessionToken).update('form').digest('base64url');
}

export function isFormToken(sent: string | null, sessionToken: string): boolean {
  return areEqual(sent ?? '', formTokenOf(sessionToken));
}

/** Compares a text that was sent with a secret one, in a time that does not depend on the secret. */
export function areEqual(sent: string, expected: string): boolean {
  const [one, other] = [Buffer.from(sent), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
