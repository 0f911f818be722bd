import type { Connection } from '../store/store.ts';
import type { Advance, AdvanceDeps } from './advance.ts';
import { comparePayments } from './compare.ts';

/** How many due attempts are continued at once. */
const atOnce = 10;

/** How much of a list is read again, because providers add events late. */
export const overlapMs = 3_600_000;

/** How far the daily comparison of payments goes back. */
const comparedMs = 180 * 86_400_000;

/**
 * Returns the jobs that find what no request continues. Without any webhook, every payment is recorded within about a
 * minute.
 */
export function createSweep(deps: AdvanceDeps & { readonly advance: Advance }) {
  const { store, gateway, providers, accountOf, advance, logger, metrics } = deps;
  const readList = async ({ connectionId, listedUntil }: { connectionId: string; listedUntil: Date }) => {
    try {
      const connection = await store.findConnection(connectionId);
      const recent = connection && providers.get(connection.provider)?.recent;
      if (recent === undefined) return;
      const ids = new Set<string>();
      const since = new Date(listedUntil.getTime() - overlapMs);
      for await (const id of recent(await accountOf(connectionId), since)) ids.add(id);
      await store.makeDue(connectionId, [...ids]);
    } catch (err) {
      logger.warn({ err, connection_id: connectionId }, 'the list of a provider could not be read');
      await store.resetListing(connectionId, listedUntil);
    }
  };
  const compare = async (connection: Pick<Connection, 'connectionId' | 'provider'>, signal: AbortSignal) => {
    const since = new Date(Date.now() - comparedMs);
    for await (const { attemptId, ...found } of comparePayments(deps, connection, since, signal)) {
      logger.error(
        { attempt_id: attemptId, payment_id: found.paymentId, difference: found.difference },
        'a payment differs',
      );
      metrics.countDifference();
      if (found.difference === 'not_recorded') await advance(attemptId);
      const attempt = found.difference === 'not_paid_at_gateway' ? await store.find(attemptId) : undefined;
      // A gateway that was restored from a backup may have lost the payment.
      if (attempt !== undefined) await gateway.record(attempt);
    }
  };
  return {
    /** Continues due attempts, as many at once as one run may. */
    async continueDue(): Promise<{ readonly isDone: boolean }> {
      const due = await store.due(atOnce);
      await Promise.all(due.map(({ attemptId }) => advance(attemptId)));
      return { isDone: due.length < atOnce };
    },

    /** Makes the attempts due that the providers' lists mention. */
    async readLists(): Promise<void> {
      await Promise.all((await store.takeListings()).map(readList));
    },

    /** Compares all payments of a connection of the last months, and continues those that were not recorded. */
    async compareNext(signal: AbortSignal): Promise<void> {
      const connection = await store.takeComparison();
      if (connection !== undefined) await compare(connection, signal);
    },
  };
}
