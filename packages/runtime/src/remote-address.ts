import type { IncomingHttpHeaders } from 'node:http';
import { isIP, isIPv6 } from 'node:net';
import { all, compile } from '@fastify/proxy-addr';
import ipaddr from 'ipaddr.js';
import { optional } from './variables.ts';

/**
 * Whether an address is a trusted proxy. Hop 0 is the address of the connection, and hops 1 and above are the addresses
 * in X-Forwarded-For, the last one first.
 */
export type TrustProxy = (address: string, hop: number) => boolean;

/**
 * Parses a number of proxies from 1 to 9, or their addresses and networks separated by commas. Returns `undefined` for
 * other text.
 */
export function parseTrustProxy(text: string): TrustProxy | undefined {
  const proxies = Number(text);
  // `compile` would accept one number as an IPv4 address.
  if (Number.isInteger(proxies)) return proxies >= 1 && proxies <= 9 ? (_address, hop) => hop < proxies : undefined;
  try {
    return compile(text.split(',').map((part) => part.trim()));
  } catch {
    return undefined;
  }
}

/**
 * Returns the address of the client: the address of the connection or, if a trusted proxy opened the connection, the
 * last address in X-Forwarded-For that is not a trusted proxy, or the first one if all are trusted. If that is not an
 * IP address, returns the address of the connection. Returns an IPv4-mapped IPv6 address as IPv4, and `undefined` if
 * the connection is already closed.
 */
export function remoteAddressOf(
  request: { readonly socket: { readonly remoteAddress?: string | undefined }; readonly headers: IncomingHttpHeaders },
  trustProxy: TrustProxy | undefined,
): string | undefined {
  const { remoteAddress } = request.socket;
  if (remoteAddress === undefined) return undefined;
  if (trustProxy === undefined) return unmapped(remoteAddress);
  const forwarded = all(request as Parameters<typeof all>[0], trustProxy).at(-1);
  return unmapped(forwarded !== undefined && isIP(forwarded) > 0 ? forwarded : remoteAddress);
}

function unmapped(address: string): string {
  if (!isIPv6(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv4 ? parsed.toString() : address;
}

/**
 * The variable `TRUST_PROXY`. Validated but kept as text: {@link parseTrustProxy} returns a function, which can't be
 * sent to a worker.
 */
export const trustProxy = optional({
  name: 'TRUST_PROXY',
  help: 'the proxies whose X-Forwarded-For is used: addresses, networks, or the number of proxies',
  defaultText: 'none',
  rule: 'must be a number of proxies from 1 to 9, or addresses and networks separated by commas',
  parse: (text) => parseTrustProxy(text) && text,
});
