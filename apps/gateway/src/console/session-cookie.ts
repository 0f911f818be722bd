import { createHmac, timingSafeEqual } from 'node:crypto';
import { consoleLimits, consoleTokenForm } from '@order-gateway/domain/accounts';
import type { BaseUrl } from '@order-gateway/domain/links';
import { parse, serialize } from 'hono/utils/cookie';
import { isLoopbackUrl } from '../network/ip-address.ts';

/**
 * The prefix makes browsers accept the cookie only over TLS and from this host (RFC 6265bis, 4.1.3.2). On this machine,
 * there may be no TLS.
 */
const hostCookie = '__Host-order-gateway';
const loopbackCookie = 'order-gateway';

function hasTls(baseUrl: BaseUrl): boolean {
  const url = new URL(baseUrl);
  return url.protocol === 'https:' || !isLoopbackUrl(url);
}

/** Returns the token in a Cookie header; `undefined` if there is none. */
export function sessionTokenIn(header: string | undefined, baseUrl: BaseUrl): string | undefined {
  const name = hasTls(baseUrl) ? hostCookie : loopbackCookie;
  const { [name]: token = '' } = parse(header ?? '', name);
  return consoleTokenForm.test(token) ? token : undefined;
}

/** The Set-Cookie header of a session; without a token, the one that removes the cookie. Other sites never send it. */
export function sessionCookie(token: string | undefined, baseUrl: BaseUrl): string {
  const maxAge = token === undefined ? 0 : consoleLimits.sessionMs / 1_000;
  const options = { path: '/', httpOnly: true, sameSite: 'Strict', maxAge } as const;
  return hasTls(baseUrl)
    ? serialize(hostCookie, token ?? '', { ...options, secure: true })
    : serialize(loopbackCookie, token ?? '', options);
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
