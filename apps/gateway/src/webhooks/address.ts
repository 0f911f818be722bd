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
