import type { Failure } from '@gateway/domain/failure';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Peer } from '../connection-limit.ts';
import { isPublicAddress, networkOf } from '../ip-address.ts';
import type { anonymousLimits } from '../limits.ts';
import { retryAfter } from '../storage-outcome.ts';
import { createTokenBuckets, type TokenBuckets } from './rate-limit.ts';

export type AnonymousCalls = ReturnType<typeof createAnonymousCalls>;

/** The wait that a rejected client is asked for, before what chance adds. */
const retryAfterMs = 1_000;

const rateLimited = (): Failure => ({ kind: 'rate_limited', retryAfterMs: retryAfter(retryAfterMs) });

/** The key of the one bucket that counts all calls. */
const everybody = '';

/** Bounds the work that clients without valid credentials cause (decision 028). */
export function createAnonymousCalls({
  limits,
  monotonicNow,
}: {
  readonly limits: typeof anonymousLimits;
  /** Milliseconds of a clock that nobody sets. */
  readonly monotonicNow: () => number;
}) {
  const admitted = createTokenBuckets<string>(monotonicNow);
  const rejected = createTokenBuckets<string>(monotonicNow);
  const allRejected = createTokenBuckets<string>(monotonicNow);
  const waiting = new Set<() => void>();
  let inFlight = 0;
  let paused = 0;

  /** A peer in a private network may be a proxy, through which many clients come: what limits those together limits it. */
  const isOverLimit = (buckets: TokenBuckets<string>, { address }: Peer) =>
    (address === undefined || isPublicAddress(address)) && buckets(networkOf(address), limits.perNetwork) !== undefined;

  /** Answers late, so that a client that waits for its responses sends less; a flood of quick ones would only speed it up. */
  const rejectLate = async (peer: Peer): Promise<Failure> => {
    peer.waits();
    if (paused >= limits.pausedMax) return rateLimited();
    paused += 1;
    await new Promise((resolve) => setTimeout(resolve, limits.pauseMs));
    paused -= 1;
    return rateLimited();
  };

  /** Whether the call's turn came in time. */
  const turnOf = (peer: Peer): Promise<boolean> => {
    peer.waits();
    return new Promise((resolve) => {
      const begin = () => {
        clearTimeout(timer);
        resolve(true);
      };
      const timer = setTimeout(() => {
        waiting.delete(begin);
        resolve(false);
      }, limits.waitingTimeoutMs);
      waiting.add(begin);
    });
  };

  const passTurnOn = () => {
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
     * Waits until a call that needs no credentials may be handled. Returns what ends the call's work, or `rate_limited`. That
     * function does nothing when it is called again.
     */
    async admit(peer: Peer): Promise<Result<() => void, Failure>> {
      if (isOverLimit(admitted, peer)) return failed(await rejectLate(peer));
      if (inFlight < limits.inFlightMax) inFlight += 1;
      else if (waiting.size >= limits.waitingMax) return failed(await rejectLate(peer));
      else if (!(await turnOf(peer))) return failed(rateLimited());
      let isOver = false;
      return success(() => {
        if (!isOver) passTurnOn();
        isOver = true;
      });
    },
    /** Counts a call whose credentials are not valid. Returns its failure: `unauthenticated` or `rate_limited`. */
    async reject(peer: Peer): Promise<Failure> {
      const isOver = isOverLimit(rejected, peer) || allRejected(everybody, limits.rejectedPerSecond) !== undefined;
      return isOver ? rejectLate(peer) : { kind: 'unauthenticated' };
    },
  };
}
