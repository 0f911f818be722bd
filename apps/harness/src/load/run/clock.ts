import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

export type RunClock = ReturnType<typeof startClock>;

/** Node.js timers can fire this late, so the last part of each wait spins the event loop instead. */
const timerSlackMs = 2;

export function startClock() {
  const start = performance.now();
  /** Milliseconds since the run's start. */
  const now = () => performance.now() - start;
  return {
    now,
    /** Waits until a time or until the signal aborts; at most a fraction of a millisecond late. */
    async until(atMs: number, signal: AbortSignal): Promise<void> {
      for (;;) {
        const remainingMs = atMs - now();
        if (remainingMs <= 0 || signal.aborted) return;
        if (remainingMs > timerSlackMs) await sleep(remainingMs - timerSlackMs, undefined, { signal }).catch(() => {});
        else await nextTurn();
      }
    },
  };
}
