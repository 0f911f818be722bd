import type { OrderToken } from './order-token.ts';

declare const baseUrlBrand: unique symbol;

/** The public address of the gateway: absolute, http or https, without a trailing slash. */
export type BaseUrl = string & { readonly [baseUrlBrand]: true };

/** Unreserved characters of RFC 3986 and slashes: they need no encoding and have no special meaning to a router. */
const pathForm = /^[A-Za-z0-9._~/-]*$/;

/**
 * Parses a base URL and drops trailing slashes. Returns `undefined` if it is not an http or https URL, if its path has
 * characters other than unreserved ones and slashes, or if it has a query, fragment, user or password.
 */
export function parseBaseUrl(text: string): BaseUrl | undefined {
  const url = URL.parse(text);
  // URL.parse repairs white space, backslashes and extra slashes. In a configuration, they are mistakes.
  if (url === null || !/^https?:\/\/[^/]/i.test(text) || /[\s\\?#@]/.test(text)) return undefined;
  if (!pathForm.test(url.pathname)) return undefined;
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}` as BaseUrl;
}

/** Returns the path prefix of every route: empty, or with a leading and without a trailing slash. */
export function pathPrefixOf(baseUrl: BaseUrl): string {
  return new URL(baseUrl).pathname.replace(/\/+$/, '');
}

/** Returns the address of an order's payment page: `{base_url}/payment/<order_token>`. */
export function paymentLink(baseUrl: BaseUrl, token: OrderToken): string {
  return `${baseUrl}/payment/${token}`;
}

/**
 * Returns what should be the token in a payment link as a browser shows it, for example with a query, and any other
 * text unchanged.
 */
export function tokenIn(text: string): string {
  return /^.*\/payment\/(\w+)/.exec(text)?.[1] ?? text;
}

/** Returns a one-time link to the console: `{base_url}/console/sign-in/<token>`. */
export function signInLink(baseUrl: BaseUrl, token: string): string {
  return `${baseUrl}/console/sign-in/${token}`;
}
