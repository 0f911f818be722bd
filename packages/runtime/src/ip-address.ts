import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The addresses to which webhooks may be sent: `public` allows https to public addresses, `loopback` also allows this
 * machine, even over http, and `any` allows every address. The last two are for development.
 */
export type AllowedAddresses = 'public' | 'loopback' | 'any';

/**
 * All public IPv6 unicast addresses are allocated from this block (IANA, "IPv6 Global Unicast Address Assignments").
 */
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an IP address belongs to the public internet: not to this machine, a private or link-local network (such as a
 * cloud's metadata service), carrier-grade NAT, multicast or a reserved range. An IPv6 address that embeds an IPv4
 * address is not public, because a translator or tunnel would deliver to the IPv4 address. A network's own NAT64 prefix
 * can't be recognized.
 */
export function isPublicAddress(address: string): boolean {
  const parsed = ipaddr.parse(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed instanceof ipaddr.IPv4 || (parsed.match(globalUnicast) && !isIsatap(parsed));
}

/**
 * Whether an address is an ISATAP address, which embeds an IPv4 address below any prefix and marks it with 32 bits, two
 * of which may have either value (RFC 5214, 6.1).
 */
function isIsatap({ parts }: ipaddr.IPv6): boolean {
  const [, , , , high = 0, low] = parts;
  return (high & 0xfcff) === 0 && low === 0x5efe;
}

/** Whether an IP address belongs to this machine. */
export function isLoopbackAddress(address: string): boolean {
  return ipaddr.process(address).range() === 'loopback';
}

/** Whether the host of a URL is this machine. */
export function isLoopbackUrl(url: URL): boolean {
  const address = literalAddressOf(url);
  // These names belong to this machine (RFC 6761, 6.3).
  return address === undefined ? /^(?:.+\.)?localhost\.?$/.test(url.hostname) : isLoopbackAddress(address);
}

/** Returns the IP address in the host of a URL; `undefined` if the host is a name. */
export function literalAddressOf({ hostname }: URL): string | undefined {
  const host = hostname.replace(/^\[(.+)\]$/, '$1');
  return isIP(host) === 0 ? undefined : host;
}

/**
 * Returns the network to which a client's limits apply: an IPv4 address, or the /64 of an IPv6 address, because one
 * customer gets at least a /64 (RFC 6177). IPv4 mapped to IPv6, as on a dual-stack socket, counts as IPv4. The result
 * is only a key: the groups of an IPv6 network are decimal.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return '';
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv4 ? parsed.toString() : parsed.parts.slice(0, 4).join(':');
}

/** Returns why webhooks can't be sent to a URL, as the end of a sentence; `undefined` if the URL is allowed. */
export function urlProblem(url: URL, allowed: AllowedAddresses): string | undefined {
  if (allowed === 'any') return undefined;
  const address = literalAddressOf(url);
  const isLoopback = isLoopbackUrl(url);
  if (allowed === 'loopback' && isLoopback) return undefined;
  if (url.protocol !== 'https:') return 'must begin with https://';
  const isPublic = address === undefined ? !isLoopback : isPublicAddress(address);
  return isPublic ? undefined : 'must be a public address';
}
