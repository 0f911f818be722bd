import type { Account, AccountId } from '@order-gateway/domain/accounts';
import { createTokenBuckets } from '@order-gateway/runtime/token-buckets';

/** Counts a call. Returns `undefined`, or the milliseconds to wait if the account exceeds its limit in this process. */
export type RateLimit = ReturnType<typeof createRateLimit>;

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
