import { isPublicAddress, networkOf } from './ip-address.ts';
import { createTokenBuckets } from './token-buckets.ts';

/**
 * Limits the calls of each network, which is an IPv4 address or an IPv6 /64. Returns the function that counts a call,
 * and returns whether its network exceeds `callsPerSecond` on average. A private address may belong to a proxy for many
 * clients, so it has no limit. `monotonicNow` returns the milliseconds of a monotonic clock.
 */
export function createNetworkLimit(callsPerSecond: number, monotonicNow: () => number) {
  const count = createTokenBuckets<string>(monotonicNow);
  return (address: string | undefined): boolean =>
    (address === undefined || isPublicAddress(address)) && count(networkOf(address), callsPerSecond) !== undefined;
}
