import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * Whether an IP address belongs to the public internet: not to this machine, a private or link-local network (a cloud's metadata
 * service), carrier-grade NAT, multicast, a reserved range, or IPv6 that carries IPv4 (mapped, NAT64, 6to4, Teredo).
 */
export function isPublicAddress(address: string): boolean {
  return ipaddr.process(address).range() === 'unicast';
}

/** The IP address that is the host of a URL; `undefined` where that is a name. */
export function literalAddressOf({ hostname }: URL): string | undefined {
  const host = hostname.replace(/^\[(.+)\]$/, '$1');
  return isIP(host) === 0 ? undefined : host;
}

/**
 * The network that a client's limits count for: an IPv4 address, or the /64 of an IPv6 address, as one customer gets at least that
 * (RFC 6177). IPv4 mapped to IPv6, as on a socket that takes both, is IPv4. The text is a key: the parts are decimal.
 */
export function networkOf(address: string | undefined): string {
  if (address === undefined) return '';
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv4 ? parsed.toString() : parsed.parts.slice(0, 4).join(':');
}
