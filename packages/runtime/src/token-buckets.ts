/** The number of buckets of each limit. Above it, the least recently used bucket is dropped. */
export const bucketsMax = 10_000;

/** Counts a call under a key. Returns `undefined`, or the milliseconds to wait if the key exceeds its average rate. */
export type TokenBuckets<Key> = (key: Key, callsPerSecond: number) => number | undefined;

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
    if (buckets.size > bucketsMax) buckets.delete(buckets.keys().next().value as Key);
    if (bucket.calls < 1) return ((1 - bucket.calls) * 1_000) / callsPerSecond;
    bucket.calls -= 1;
    return undefined;
  };
}
