import { inBackground } from '../providers/paced.ts';
import type { Connection } from '../store/store.ts';
import type { Advance, AdvanceDeps } from './advance.ts';
import { comparePayments } from './compare.ts';

/** How often due attempts are looked up, and how many are continued at the same time. */
const sweepEveryMs = 1_000;
const atOnce = 10;

/** A list is read again from this long before its last read, because providers add events late. */
export const overlapMs = 3_600_000;

/** How far the daily comparison of payments goes back. */
const comparedMs = 180 * 86_400_000;

/**
 * Continues due attempts, and those that the providers' lists mention, until it is stopped. Without any webhook, every
 * payment is recorded within about a minute.
 */
export function startSweep(deps: AdvanceDeps & { readonly advance: Advance }) {
  const { store, gateway, providers, accountOf, advance, logger, metrics } = deps;
  let comparing: Promise<void> = Promise.resolve();
  let running: Promise<void> = Promise.resolve();
  const readList = async ({ connectionId, listedUntil }: { connectionId: string; listedUntil: Date }) => {
    try {
      const connection = await store.findConnection(connectionId);
      const recent = connection && providers.get(connection.provider)?.recent;
      if (recent === undefined) return;
      const ids = new Set<string>();
      const since = new Date(listedUntil.getTime() - overlapMs);
      for await (const id of recent(await accountOf(connectionId), since)) ids.add(id);
      const noticed = await store.findNoticed(connectionId, [...ids]);
      for (const { attemptId, dueAt } of noticed) if (dueAt !== null) await advance(attemptId);
    } catch (err) {
      logger.warn({ err, connection_id: connectionId }, 'the list of a provider could not be read');
      await store.resetListing(connectionId, listedUntil);
    }
  };
  /** Compares all payments of a connection of the last months, and continues those that were not recorded. */
  const compare = async (connection: Pick<Connection, 'connectionId' | 'provider'>) => {
    const since = new Date(Date.now() - comparedMs);
    for await (const { attemptId, ...found } of comparePayments(deps, connection, since, () => isStopped)) {
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
  const sweep = async () => {
    try {
      const comparison = await store.takeComparison();
      if (comparison !== undefined)
        comparing = comparing
          .then(() => compare(comparison))
          .catch((err: unknown) => {
            logger.warn(
              { err, connection_id: comparison.connectionId },
              'the payments of a provider could not be compared',
            );
          });
      await Promise.all((await store.takeListings()).map(readList));
      const due = await store.due(atOnce);
      await Promise.all(due.map(({ attemptId }) => advance(attemptId)));
    } catch (err) {
      logger.warn({ err }, 'the sweep failed');
    }
  };
  let timer: NodeJS.Timeout;
  let isStopped = false;
  const next = () => {
    if (isStopped) return;
    running = inBackground(sweep).then(() => {
      if (!isStopped) timer = setTimeout(next, sweepEveryMs);
    });
  };
  timer = setTimeout(next, sweepEveryMs);
  return {
    /** Reads all lists that are due, and continues all due attempts. */
    sweep,
    /** Stops it, after the attempts that it is working on. */
    async stop(): Promise<void> {
      isStopped = true;
      clearTimeout(timer);
      await running;
      await comparing;
    },
  };
}
