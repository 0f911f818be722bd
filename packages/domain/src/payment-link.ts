import type { OrderToken } from './order-token.ts';

declare const baseUrlBrand: unique symbol;

/** The address at which the gateway is reached from outside: absolute, http or https, without a trailing slash. */
export type BaseUrl = string & { readonly [baseUrlBrand]: true };

/** RFC 3986's unreserved characters and slashes: what a router takes as it stands, and nobody encodes in another way. */
const plainPath = /^[A-Za-z0-9._~/-]*$/;

/**
 * Reads a base URL. A path of unreserved characters is kept and trailing slashes are dropped; a query, a fragment, a user or a
 * password have no meaning in front of a path. What is no such URL is refused with `undefined`.
 */
export function parseBaseUrl(text: string): BaseUrl | undefined {
  const url = URL.parse(text);
  // The parser repairs white space, backslashes and needless slashes; a configuration is better told of them.
  if (url === null || !/^https?:\/\/[^/]/i.test(text) || /[\s\\?#@]/.test(text)) return undefined;
  if (!plainPath.test(url.pathname)) return undefined;
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}` as BaseUrl;
}

/** The path in front of every route: empty, or with a leading and without a trailing slash. */
export function pathPrefixOf(baseUrl: BaseUrl): string {
  return new URL(baseUrl).pathname.replace(/\/+$/, '');
}

/** Where the customer pays: `{base_url}/payment/<order_token>`. */
export function paymentLink(baseUrl: BaseUrl, token: OrderToken): string {
  return `${baseUrl}/payment/${token}`;
}
