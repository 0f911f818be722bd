import { setImmediate as nextTurn } from 'node:timers/promises';

/** The time of a run: milliseconds since its start, which may lie ahead. */
export interface RunClock {
  now(): number;
  /** Waits until a moment, or until the signal aborts, and is late by a fraction of a millisecond at most. */
  until(atMs: number, signal: AbortSignal): Promise<void>;
}

/** Node's timers come up to this much late, so the end of every wait is spent turning the event loop instead. */
const timerSlackMs = 2;

/** `startAtMs` is on the clock of `Date.now()`, which all processes of a machine share. */
export function startClock(startAtMs: number): RunClock {
  const offset = performance.timeOrigin - startAtMs;
  const now = () => performance.now() + offset;
  return {
    now,
    async until(atMs, signal) {
      for (;;) {
        const left = atMs - now();
        if (left <= 0 || signal.aborted) return;
        if (left > timerSlackMs) await pause(left - timerSlackMs, signal);
        else await nextTurn();
      }
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
    resolve();
  };
  const timer = setTimeout(end, ms);
  signal.addEventListener('abort', end, { once: true });
  return promise;
}
