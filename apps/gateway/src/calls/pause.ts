import { createTokenBuckets } from '@order-gateway/runtime/token-buckets';
import type { rejectionLimits } from '../limits.ts';
import type { Peer } from './peers/connection-limit.ts';

/** Resolves when a rejection may be sent. */
export type Pause = (peer: Peer) => Promise<void>;

type PauseLimits = Pick<typeof rejectionLimits, 'pauseMs' | 'pauseMaxMs' | 'pausedMax'>;

/**
 * Creates a pause that delays rejections. The more rejections wait, the longer the delay. Clients that wait for their
 * responses then send fewer calls, whereas fast responses would speed up a flood.
 */
export function createPause({ pauseMs, pauseMaxMs, pausedMax }: PauseLimits): Pause {
  let paused = 0;
  return async (peer) => {
    peer.markIdle();
    if (paused >= pausedMax) return;
    const delayMs = Math.min(pauseMs + paused, pauseMaxMs);
    paused += 1;
    await new Promise((resolve) => setTimeout(resolve, delayMs));
    paused -= 1;
  };
}

/**
 * Creates the pause for `overloaded` and `rate_limited` calls. It delays only the rejections above
 * `immediatePerSecond`. `monotonicNow` returns the milliseconds of a monotonic clock.
 */
export function createRejectionPause(limits: typeof rejectionLimits, monotonicNow: () => number): Pause {
  const rejected = createTokenBuckets<'all'>(monotonicNow);
  const pause = createPause(limits);
  return async (peer) => {
    if (rejected('all', limits.immediatePerSecond) !== undefined) await pause(peer);
  };
}
