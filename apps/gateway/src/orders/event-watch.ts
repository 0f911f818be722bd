import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { MerchantId } from '@gateway/domain/accounts/merchant';
import type { EventPosition } from '@gateway/domain/orders/order-store';
import { eventWatchLimits } from '../limits.ts';
import type { Logger } from '../process/logger.ts';

/** Notifies calls that wait for events. */
export type EventWatch = ReturnType<typeof createEventWatch>;

export interface EventWatchDeps {
  /** Returns those of the merchants whose feeds have events after these positions. */
  readonly findNewEvents: (after: ReadonlyMap<MerchantId, number>) => Promise<ReadonlySet<MerchantId>>;
  readonly logger: Logger;
}

interface Waiter {
  readonly merchantId: MerchantId;
  readonly after: EventPosition;
  readonly finish: (hasEvents: boolean) => void;
}

/**
 * Creates a watch for new events, one for each process. Every half second, and whenever this process has stored an event, a single
 * statement looks for events of all merchants whose calls wait. While no call waits, no statement is sent.
 */
export function createEventWatch({ findNewEvents, logger }: EventWatchDeps) {
  const waiters = new Set<Waiter>();
  const closing = new AbortController();
  // One listener per waiting call is not a leak.
  setMaxListeners(0, closing.signal);
  let pause = new AbortController();
  let isRunning = false;

  const look = async () => {
    const after = new Map<MerchantId, number>();
    for (const waiter of waiters) {
      // A call that waits behind a later position finds nothing, and waits again.
      const position = Math.min(waiter.after.position, after.get(waiter.merchantId) ?? Number.POSITIVE_INFINITY);
      after.set(waiter.merchantId, position);
    }
    const found = await findNewEvents(after);
    for (const { merchantId, finish } of waiters) if (found.has(merchantId)) finish(true);
  };

  const run = async () => {
    while (waiters.size > 0) {
      pause = new AbortController();
      await look().catch((error: unknown) => logger.error({ err: error }, 'could not look for new events'));
      // So that each look finds several events under load.
      await sleep(eventWatchLimits.pollPauseMs);
      await sleep(eventWatchLimits.pollEveryMs, undefined, { signal: pause.signal }).catch(() => {});
    }
    isRunning = false;
  };

  return {
    /** Whether a call of the merchant may wait: there are not too many yet, and the process is not stopping. */
    hasCapacity(merchantId: MerchantId): boolean {
      if (closing.signal.aborted || waiters.size >= eventWatchLimits.waitersMax) return false;
      const own = waiters.values().filter((waiter) => waiter.merchantId === merchantId);
      return own.take(eventWatchLimits.waitersPerMerchant).toArray().length < eventWatchLimits.waitersPerMerchant;
    },
    /**
     * Resolves with true once the merchant's feed has an event after the position, and with false after the timeout, on the
     * signal, or on close.
     */
    hasEventsAfter(
      merchantId: MerchantId,
      after: EventPosition,
      { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
    ): Promise<boolean> {
      if (signal.aborted || closing.signal.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        const stop = () => waiter.finish(false);
        // A timer and two listeners: signals of `AbortSignal.any` and `timeout` can be collected before they abort.
        const timer = setTimeout(stop, timeoutMs);
        signal.addEventListener('abort', stop);
        closing.signal.addEventListener('abort', stop);
        const waiter: Waiter = {
          ...{ merchantId, after },
          finish(hasEvents) {
            waiters.delete(waiter);
            clearTimeout(timer);
            signal.removeEventListener('abort', stop);
            closing.signal.removeEventListener('abort', stop);
            resolve(hasEvents);
          },
        };
        waiters.add(waiter);
        if (isRunning) return;
        isRunning = true;
        void run();
      });
    },
    /** Looks immediately, such as when this process has stored an event. */
    wake: () => pause.abort(),
    /** Ends all waits, which takes effect on later ones too. */
    close: () => closing.abort(),
    /** Whether the process is stopping. */
    isClosed: () => closing.signal.aborted,
  };
}
