import type { Account, MerchantId } from '@gateway/domain/merchant';

/** Counts a call under a key. Returns the milliseconds to wait where the key is over its calls a second, on average. */
export type TokenBuckets<Key> = (key: Key, callsPerSecond: number) => number | undefined;

/** Counts a call. Returns the milliseconds to wait where the client is over its limit in this process. */
export type RateLimit = (client: Account) => number | undefined;

export interface RateLimitOptions {
  /** Calls that a client without a limit of its own may make a second, on average; absent: any number. */
  readonly callsPerSecond: number | undefined;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicNow: () => number;
}

interface Bucket {
  /** Calls that may be made at once; refilled over time, up to one second's calls. */
  calls: number;
  filledAtMs: number;
}

/** With more buckets than this, the one used longest ago is dropped. */
const bucketsMax = 10_000;

/** A token bucket for each key, which holds one second's calls. */
export function createTokenBuckets<Key>(monotonicNow: () => number): TokenBuckets<Key> {
  const buckets = new Map<Key, Bucket>();

  const dropOldest = () => {
    for (const key of buckets.keys()) return buckets.delete(key);
  };

  return (key, callsPerSecond) => {
    const nowMs = monotonicNow();
    const bucket = buckets.get(key) ?? { calls: callsPerSecond, filledAtMs: nowMs };
    const grown = ((nowMs - bucket.filledAtMs) * callsPerSecond) / 1_000;
    bucket.calls = Math.min(callsPerSecond, bucket.calls + grown);
    bucket.filledAtMs = nowMs;
    buckets.delete(key);
    buckets.set(key, bucket);
    if (buckets.size > bucketsMax) dropOldest();
    if (bucket.calls < 1) return ((1 - bucket.calls) * 1_000) / callsPerSecond;
    bucket.calls -= 1;
    return undefined;
  };
}

/** The limit of authenticated clients: a merchant's own, or else that of all. */
export function createRateLimit({ callsPerSecond: callsOfAll, monotonicNow }: RateLimitOptions): RateLimit {
  const count = createTokenBuckets<MerchantId>(monotonicNow);
  return (client) => {
    const callsPerSecond = (client.kind === 'merchant' ? client.rateLimit : null) ?? callsOfAll;
    return callsPerSecond === undefined ? undefined : count(client.id, callsPerSecond);
  };
}
