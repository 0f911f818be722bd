import type { Account, MerchantId } from '@gateway/domain/merchant';

export interface RateLimitOptions {
  /** Calls that a client without a limit of its own may make a second, on average; absent: any number. */
  readonly callsPerSecond: number | undefined;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicNow: () => number;
}

/** Counts a call. Returns the milliseconds to wait where the client is over its limit in this process. */
export type RateLimit = (client: Account) => number | undefined;

interface Bucket {
  /** Calls that the merchant may make at once; refilled over time, up to one second's calls. */
  calls: number;
  filledAtMs: number;
}

/** With more buckets than this, those that are full again are dropped. */
const bucketsMax = 10_000;

/** A token bucket for each client, which holds one second's calls. Counts authenticated calls only. */
export function createRateLimit({ callsPerSecond: callsOfAll, monotonicNow }: RateLimitOptions): RateLimit {
  const buckets = new Map<MerchantId, Bucket>();

  const refill = (merchantId: MerchantId, callsPerSecond: number, nowMs: number): Bucket => {
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

  return (client) => {
    const callsPerSecond = (client.kind === 'merchant' ? client.rateLimit : null) ?? callsOfAll;
    if (callsPerSecond === undefined) return undefined;
    const nowMs = monotonicNow();
    const bucket = refill(client.id, callsPerSecond, nowMs);
    if (buckets.size > bucketsMax) dropFull(nowMs);
    if (bucket.calls < 1) return ((1 - bucket.calls) * 1_000) / callsPerSecond;
    bucket.calls -= 1;
    return undefined;
  };
}
