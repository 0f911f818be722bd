import type { Account, AccountId } from '@order-gateway/domain/accounts';
import { rateBucketsMax } from '../limits.ts';

/** Counts a call under a key. Returns `undefined`, or the milliseconds to wait if the key exceeds its average rate. */
export type TokenBuckets<Key> = (key: Key, callsPerSecond: number) => number | undefined;

/** Counts a call. Returns `undefined`, or the milliseconds to wait if the account exceeds its limit in this process. */
export type RateLimit = ReturnType<typeof createRateLimit>;

/** Creates a token bucket for each key. A bucket holds the calls of one second. */
export function createTokenBuckets<Key>(monotonicNow: () => number): TokenBuckets<Key> {
  /**
   * The buckets, least recently used first. `calls` is the number of calls that may be made immediately. It grows over
   * time.
   */
  const buckets = new Map<Key, { calls: number; filledAtMs: number }>();

  return (key, callsPerSecond) => {
    const nowMs = monotonicNow();
    const bucket = buckets.get(key) ?? { calls: callsPerSecond, filledAtMs: nowMs };
    const refill = ((nowMs - bucket.filledAtMs) * callsPerSecond) / 1_000;
    bucket.calls = Math.min(callsPerSecond, bucket.calls + refill);
    bucket.filledAtMs = nowMs;
    buckets.delete(key);
    buckets.set(key, bucket);
    if (buckets.size > rateBucketsMax) buckets.delete(buckets.keys().next().value as Key);
    if (bucket.calls < 1) return ((1 - bucket.calls) * 1_000) / callsPerSecond;
    bucket.calls -= 1;
    return undefined;
  };
}

/**
 * Creates the rate limit of authenticated accounts. On average, an account may make as many calls per second as its
 * separate limit allows or, if it has none, `defaultCallsPerSecond`. If both are absent, its calls are not limited.
 * `monotonicNow` returns the milliseconds of a monotonic clock.
 */
export function createRateLimit(defaultCallsPerSecond: number | undefined, monotonicNow: () => number) {
  const count = createTokenBuckets<AccountId>(monotonicNow);
  return (account: Account): number | undefined => {
    const callsPerSecond = (account.kind === 'merchant' ? account.rateLimit : null) ?? defaultCallsPerSecond;
    return callsPerSecond === undefined ? undefined : count(account.id, callsPerSecond);
  };
}
