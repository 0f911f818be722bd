import type { Account, AccountId } from '@order-gateway/domain/accounts';
import { createTokenBuckets } from '@order-gateway/runtime/token-buckets';
import type { admissionLimits } from '../limits.ts';

/** Decides whether there is capacity for a call, and then when the work of the call starts. */
export type Admission = ReturnType<typeof createAdmission>;

/** The right of a call to be handled. */
export type Permit = NonNullable<ReturnType<Admission['acquire']>>;

interface AccountCalls {
  inFlight: number;
  active: number;
  /** The functions that start the work of the waiting calls, oldest first. */
  readonly waiting: Set<() => void>;
}

/**
 * Admits calls up to a limit, which is lower while orders take too long to store. At the limit, each account has an
 * equal share of it. An account below its share still gets permits, even above the limit. The total does not stay above
 * the limit, because an account that has used up its share gets no new permits until it is below the share again. The
 * number of active calls is limited too, so that the turns of the event loop stay short. `oldestOrderMs` returns the
 * age in milliseconds of the oldest order that is not stored yet.
 */
export function createAdmission(limits: typeof admissionLimits, oldestOrderMs: () => number) {
  const accounts = new Map<AccountId, AccountCalls>();
  /** The accounts with waiting calls, in the order in which they get the next slot. */
  const queue = new Set<AccountCalls>();
  let inFlight = 0;
  let active = 0;

  const hasCapacity = (ofAccount: number) => {
    if (inFlight < limits.callsMaxWhenSlow) return true;
    const limit = oldestOrderMs() > limits.orderAgeMaxMs ? limits.callsMaxWhenSlow : limits.callsMax;
    if (inFlight < limit) return true;
    // Every account gets at least one call. The total is limited too, because many accounts that start one after
    // another could fill their shares before the calls of earlier accounts end.
    return ofAccount < Math.max(1, limit / accounts.size) && inFlight < 2 * limits.callsMax;
  };

  /**
   * Passes a released slot to the next call of the same account if that account has few active calls. Otherwise, passes
   * it to the next account in the queue, unless too many calls are still active.
   */
  const startNext = (released: AccountCalls) => {
    const isLow = released.active < limits.activeMin && released.waiting.size > 0;
    const [account] = isLow ? [released] : active < limits.activeMax ? queue : [];
    const [startWork] = account?.waiting ?? [];
    if (account === undefined || startWork === undefined) return;
    account.waiting.delete(startWork);
    queue.delete(account);
    if (account.waiting.size > 0) queue.add(account);
    startWork();
  };

  return {
    /** Acquires a permit for a call of this account; `undefined` if there is no capacity. */
    acquire(id: AccountId) {
      const account = accounts.get(id) ?? { inFlight: 0, active: 0, waiting: new Set() };
      if (!hasCapacity(account.inFlight)) return undefined;
      accounts.set(id, account);
      account.inFlight += 1;
      inFlight += 1;
      let isActive = false;
      let onStart: (() => void) | undefined;
      const startWork = () => {
        isActive = true;
        account.active += 1;
        active += 1;
        onStart?.();
      };
      return {
        /**
         * Requests a slot once the body has arrived. Returns a promise that resolves when the work may start, or
         * `undefined` if it may start immediately. Called once.
         */
        start(): Promise<void> | undefined {
          if (active < limits.activeMax || account.active < limits.activeMin) {
            startWork();
            return undefined;
          }
          account.waiting.add(startWork);
          queue.add(account);
          return new Promise((resolve) => {
            onStart = resolve;
          });
        },
        /** Ends the call, which may still be waiting for its slot. Called once. */
        release() {
          account.inFlight -= 1;
          inFlight -= 1;
          if (account.inFlight === 0) accounts.delete(id);
          account.waiting.delete(startWork);
          if (account.waiting.size === 0) queue.delete(account);
          if (!isActive) return;
          account.active -= 1;
          active -= 1;
          startNext(account);
        },
      };
    },
  };
}

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
