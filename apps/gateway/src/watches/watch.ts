import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@order-gateway/runtime/logger';

/** A call that waits for a change of its subject. */
export interface Waiter<Subject, Found> {
  readonly subject: Subject;
  /** Ends the wait with the change, or with `undefined` if there was none. */
  finish(found: Found | undefined): void;
}

interface WatchOptions<Subject, Found> {
  /** Looks for changes of the waiters' subjects, and finishes each waiter whose subject has changed. */
  readonly look: (waiters: ReadonlySet<Waiter<Subject, Found>>) => Promise<void>;
  /** How often to look, and the minimum pause between two lookups. */
  readonly pollEveryMs: number;
  readonly pollPauseMs: number;
  readonly logger: Logger;
}

/**
 * Creates a watch, which regularly looks for changes on behalf of all waiting calls. It is idle while no call waits.
 */
export function createWatch<Subject, Found>({ look, pollEveryMs, pollPauseMs, logger }: WatchOptions<Subject, Found>) {
  const waiters = new Set<Waiter<Subject, Found>>();
  const closing = new AbortController();
  // Each waiting call adds a listener, which is not a leak.
  setMaxListeners(0, closing.signal);
  let pause = new AbortController();
  let isRunning = false;

  const lookWhileWaiting = async () => {
    while (waiters.size > 0) {
      pause = new AbortController();
      await look(waiters).catch((error: unknown) => logger.error({ err: error }, 'could not look for changes'));
      // Pauses, so that under load each lookup finds several changes.
      await sleep(pollPauseMs);
      await sleep(pollEveryMs, undefined, { signal: pause.signal }).catch(() => {});
    }
    isRunning = false;
  };

  return {
    waiters: waiters as ReadonlySet<Waiter<Subject, Found>>,
    /** Resolves with the change, or with `undefined` after the timeout, when the signal aborts, or on `close`. */
    wait(
      subject: Subject,
      { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
    ): Promise<Found | undefined> {
      if (signal.aborted || closing.signal.aborted) return Promise.resolve(undefined);
      return new Promise((resolve) => {
        const stop = () => waiter.finish(undefined);
        // Uses a timer and two listeners, because signals of `AbortSignal.any` and `AbortSignal.timeout` can be
        // garbage-collected before they abort.
        const timer = setTimeout(stop, timeoutMs);
        signal.addEventListener('abort', stop);
        closing.signal.addEventListener('abort', stop);
        const waiter: Waiter<Subject, Found> = {
          subject,
          finish(found) {
            waiters.delete(waiter);
            clearTimeout(timer);
            signal.removeEventListener('abort', stop);
            closing.signal.removeEventListener('abort', stop);
            resolve(found);
          },
        };
        waiters.add(waiter);
        if (isRunning) return;
        isRunning = true;
        void lookWhileWaiting();
      });
    },
    /** Ends the wait of up to `pollEveryMs` for the next lookup. */
    wake: () => pause.abort(),
    /** Ends all waits, including later ones. */
    close: () => closing.abort(),
    /** Whether `close` was called. */
    isClosed: () => closing.signal.aborted,
  };
}
