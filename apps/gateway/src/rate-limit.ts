import type { Failure } from '@gateway/domain/failure';
import type { MerchantId } from '@gateway/domain/merchant';
import { failed } from '@gateway/domain/result';
import type { Authenticate } from './authenticate.ts';

export interface RateLimitOptions {
  /** Calls that a merchant may make a second, on average, in this process. */
  readonly callsPerSecond: number;
  /** Milliseconds since any fixed moment, by a clock that nobody sets. */
  readonly monotonicNow: () => number;
}

/** Whose calls are too many. Of no other call that is refused before its message is read it is known whose it is. */
export function limitedMerchant(failure: Failure): MerchantId | undefined {
  return failure.kind === 'rate_limited' ? failure.merchantId : undefined;
}

interface Bucket {
  /** Calls that the merchant may make at once; grows back with time, up to a second's worth. */
  calls: number;
  filledAtMs: number;
}

/** Buckets that were full again long ago are dropped when there are this many. */
const bucketsMax = 10_000;

/**
 * Gives every merchant its share: a token bucket that holds one second's worth of calls. Counted after the credentials were
 * checked, so that nobody can use up another's share.
 */
export function withRateLimit(
  authenticate: Authenticate,
  { callsPerSecond, monotonicNow }: RateLimitOptions,
): Authenticate {
  const buckets = new Map<MerchantId, Bucket>();

  const refill = (merchantId: MerchantId): Bucket => {
    const nowMs = monotonicNow();
    const bucket = buckets.get(merchantId) ?? { calls: callsPerSecond, filledAtMs: nowMs };
    const grown = ((nowMs - bucket.filledAtMs) * callsPerSecond) / 1_000;
    bucket.calls = Math.min(callsPerSecond, bucket.calls + grown);
    bucket.filledAtMs = nowMs;
    buckets.set(merchantId, bucket);
    if (buckets.size > bucketsMax) dropFull(nowMs);
    return bucket;
  };

  const dropFull = (nowMs: number) => {
    for (const [merchantId, { filledAtMs }] of buckets) if (nowMs - filledAtMs >= 1_000) buckets.delete(merchantId);
  };

  return async (credentials, timeoutMs) => {
    const merchant = await authenticate(credentials, timeoutMs);
    if (!merchant.ok) return merchant;
    const merchantId = merchant.value.id;
    const bucket = refill(merchantId);
    if (bucket.calls < 1)
      return failed({ kind: 'rate_limited', retryAfterSeconds: retryAfterSeconds(bucket, callsPerSecond), merchantId });
    bucket.calls -= 1;
    return merchant;
  };
}

/** Whole seconds, as the header Retry-After has them. */
function retryAfterSeconds({ calls }: Bucket, callsPerSecond: number): number {
  return Math.max(1, Math.ceil((1 - calls) / callsPerSecond));
}
