export interface RateLimitOptions {
  /** Calls of one key a second, on average, in this process. */
  readonly callsPerSecond: number;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicNow: () => number;
}

/** Counts a call under its key, such as a merchant's id. Returns the whole seconds to wait (RFC 9110, Retry-After) above the limit. */
export type RateLimit<Key> = (key: Key) => number | undefined;

interface Bucket {
  /** Calls that may be made at once; refilled over time, up to one second's calls. */
  calls: number;
  filledAtMs: number;
}

/** With more buckets than this, the one used longest ago is dropped. */
const bucketsMax = 10_000;

/** A token bucket for each key, which holds one second's calls. */
export function createRateLimit<Key>({ callsPerSecond, monotonicNow }: RateLimitOptions): RateLimit<Key> {
  const buckets = new Map<Key, Bucket>();

  const refill = (key: Key, nowMs: number): Bucket => {
    const bucket = buckets.get(key) ?? { calls: callsPerSecond, filledAtMs: nowMs };
    const grown = ((nowMs - bucket.filledAtMs) * callsPerSecond) / 1_000;
    bucket.calls = Math.min(callsPerSecond, bucket.calls + grown);
    bucket.filledAtMs = nowMs;
    buckets.delete(key);
    buckets.set(key, bucket);
    return bucket;
  };

  const dropOldest = () => {
    for (const key of buckets.keys()) return buckets.delete(key);
  };

  return (key) => {
    const bucket = refill(key, monotonicNow());
    if (buckets.size > bucketsMax) dropOldest();
    if (bucket.calls < 1) return Math.max(1, Math.ceil((1 - bucket.calls) / callsPerSecond));
    bucket.calls -= 1;
    return undefined;
  };
}
