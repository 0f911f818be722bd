import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventPosition } from '@order-gateway/domain/events';
import type { PostgresOrderStore } from '@order-gateway/postgres/order-store';
import type { Logger } from '@order-gateway/runtime/logger';
import { eventWatchLimits } from '../limits.ts';
import { createWatch } from './watch.ts';

/** Notifies calls that wait for events. */
export type EventWatch = ReturnType<typeof createEventWatch>;

/**
 * Creates the watch for new events; a process needs only one. Every half second, and whenever this process has stored
 * an event, a single statement looks for new events of all merchants with waiting calls. `findNewEvents` takes a
 * position in the feed of each merchant, and returns the merchants that have events after their positions.
 */
export function createEventWatch(findNewEvents: PostgresOrderStore['findNewEvents'], logger: Logger) {
  const { waiters, wait, wake, close, isClosed } = createWatch<
    { readonly merchantId: AccountId; readonly after: EventPosition },
    true
  >({
    ...eventWatchLimits,
    logger,
    async look(waiters) {
      const after = new Map<AccountId, number>();
      for (const { subject } of waiters) {
        // If calls of a merchant wait at several positions, the lowest one is looked up. A call at a higher position
        // may then find nothing new, and waits again.
        const position = Math.min(subject.after.position, after.get(subject.merchantId) ?? Number.POSITIVE_INFINITY);
        after.set(subject.merchantId, position);
      }
      const found = await findNewEvents(after);
      for (const { subject, finish } of waiters) if (found.has(subject.merchantId)) finish(true);
    },
  });
  return {
    /** Whether another call of the merchant may wait. False at the limits, and while the process is stopping. */
    hasCapacity(merchantId: AccountId): boolean {
      if (isClosed() || waiters.size >= eventWatchLimits.waitersMax) return false;
      const ofMerchant = waiters.values().filter(({ subject }) => subject.merchantId === merchantId);
      return (
        ofMerchant.take(eventWatchLimits.waitersPerMerchant).toArray().length < eventWatchLimits.waitersPerMerchant
      );
    },
    /**
     * Resolves with true once the merchant's feed may have an event after the position, and with false if the wait ends
     * first. With true, the caller reads the feed and, if there is nothing new, waits again.
     */
    async hasEventsAfter(
      merchantId: AccountId,
      after: EventPosition,
      limits: Parameters<typeof wait>[1],
    ): Promise<boolean> {
      return (await wait({ merchantId, after }, limits)) ?? false;
    },
    wake,
    close,
    isClosed,
  };
}
