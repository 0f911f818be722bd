import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a form was sent by a page at one of these addresses. Browsers that hide the origin of the page say that it is
 * of the same site.
 */
export function isFormOf(urls: readonly string[], headers: IncomingHttpHeaders): boolean {
  const { origin, 'sec-fetch-site': site } = headers;
  if (origin !== undefined && origin !== 'null') return urls.some((url) => new URL(url).origin === origin);
  return site === undefined ? origin === undefined : site === 'same-origin' || site === 'same-site';
}
