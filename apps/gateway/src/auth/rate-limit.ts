import type { MerchantId } from '@gateway/domain/merchant';

export interface RateLimitOptions {
  /** Calls that a merchant may make a second, on average, in this process. */
  readonly callsPerSecond: number;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicNow: () => number;
}

/** Counts a call. Returns the whole seconds to wait (RFC 9110, Retry-After) where the merchant is over its limit. */
export type RateLimit = (merchantId: MerchantId) => number | undefined;

interface Bucket {
  /** Calls that the merchant may make at once; refilled over time, up to one second's calls. */
  calls: number;
  filledAtMs: number;
}

/** With more buckets than this, those that are full again are dropped. */
const bucketsMax = 10_000;

/** A token bucket for each merchant, which holds one second's calls. Counts authenticated calls only. */
export function createRateLimit({ callsPerSecond, monotonicNow }: RateLimitOptions): RateLimit {
  const buckets = new Map<MerchantId, Bucket>();

  const refill = (merchantId: MerchantId, nowMs: number): Bucket => {
    const bucket = buckets.get(merchantId) ?? { calls: callsPerSecond, filledAtMs: nowMs };
    const grown = ((nowMs - bucket.filledAtMs) * callsPerSecond) / 1_000;
    bucket.calls = Math.min(callsPerSecond, bucket.calls + grown);
    bucket.filledAtMs = nowMs;
    buckets.set(merchantId, bucket);
    return bucket;
  };

  const dropFull = (nowMs: number) => {
    for (const [merchantId, { filledAtMs }] of buckets) if (nowMs - filledAtMs >= 1_000) buckets.delete(merchantId);
  };

  return (merchantId) => {
    const nowMs = monotonicNow();
    const bucket = refill(merchantId, nowMs);
    if (buckets.size > bucketsMax) dropFull(nowMs);
    if (bucket.calls < 1) return Math.max(1, Math.ceil((1 - bucket.calls) / callsPerSecond));
    bucket.calls -= 1;
    return undefined;
  };
}
