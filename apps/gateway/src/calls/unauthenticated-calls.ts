import type { Failure } from '@order-gateway/domain/failure';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { createNetworkLimit } from '@order-gateway/runtime/network-limit';
import { createTokenBuckets } from '@order-gateway/runtime/token-buckets';
import type { unauthenticatedLimits } from '../limits.ts';
import { createPause } from './pause.ts';
import type { Peer } from './peers/connection-limit.ts';
import { retryAfter } from './store-failure.ts';

export type UnauthenticatedCalls = ReturnType<typeof createUnauthenticatedCalls>;

/** How long a rejected client is asked to wait, before random jitter is added. */
const retryAfterMs = 1_000;

const rateLimited = (): Failure => ({ kind: 'rate_limited', retryAfterMs: retryAfter(retryAfterMs) });

/** The key of the one bucket that counts all calls. */
const allNetworks = '';

/**
 * Limits the work of calls without valid credentials (docs/decisions/047-unauthenticated-callers.md). `monotonicNow`
 * returns the milliseconds of a monotonic clock.
 */
export function createUnauthenticatedCalls(limits: typeof unauthenticatedLimits, monotonicNow: () => number) {
  const admitsTooMuch = createNetworkLimit(limits.perNetwork, monotonicNow);
  const rejectsTooMuch = createNetworkLimit(limits.perNetwork, monotonicNow);
  const allRejected = createTokenBuckets<string>(monotonicNow);
  const waiting = new Set<() => void>();
  const pause = createPause(limits);
  let inFlight = 0;

  const rejectLate = async (peer: Peer): Promise<Failure> => {
    await pause(peer);
    return rateLimited();
  };

  /** Resolves to whether a slot became free in time. */
  const waitForSlot = (peer: Peer): Promise<boolean> => {
    peer.markIdle();
    return new Promise((resolve) => {
      const start = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        waiting.delete(start);
        resolve(false);
      }, limits.waitingTimeoutMs);
      waiting.add(start);
    });
  };

  const releaseSlot = () => {
    const [next] = waiting;
    if (next === undefined) {
      inFlight -= 1;
    } else {
      waiting.delete(next);
      next();
    }
  };

  return {
    /**
     * Waits for a slot for a call that needs no credentials. Returns the function that releases the slot, or
     * `rate_limited`. Calling the function again does nothing.
     */
    async admit(peer: Peer): Promise<Result<() => void, Failure>> {
      if (admitsTooMuch(peer.address)) return failed(await rejectLate(peer));
      if (inFlight < limits.inFlightMax) inFlight += 1;
      else if (waiting.size >= limits.waitingMax) return failed(await rejectLate(peer));
      else if (!(await waitForSlot(peer))) return failed(rateLimited());
      let isReleased = false;
      return success(() => {
        if (!isReleased) releaseSlot();
        isReleased = true;
      });
    },
    /** Counts a call without valid credentials. Returns its failure: `unauthenticated` or `rate_limited`. */
    async reject(peer: Peer): Promise<Failure> {
      const isAbove = rejectsTooMuch(peer.address) || allRejected(allNetworks, limits.rejectedPerSecond) !== undefined;
      return isAbove ? rejectLate(peer) : { kind: 'unauthenticated' };
    },
  };
}
