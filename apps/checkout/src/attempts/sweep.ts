import type { Attempt, DueKind, Store } from '../store/store.ts';
import type { Advance, AdvanceDeps } from './advance.ts';
import { comparePayments } from './compare.ts';
import { createListReader } from './lists.ts';

/** The number of due attempts that are continued at the same time. */
const atOnce = 10;

/** Continues due attempts, as many at once as one run may. */
export async function continueAttempts(
  { store, advance }: { readonly store: Pick<Store, 'due'>; readonly advance: Advance },
  kind: DueKind,
): Promise<{ readonly isDone: boolean }> {
  const due = await store.due(atOnce, kind);
  await Promise.all(due.map(({ attemptId }) => advance(attemptId)));
  return { isDone: due.length < atOnce };
}

/**
 * Records a payment again that a gateway may have lost, because it was restored from a backup, and then its refunds and
 * disputes. If the gateway refuses the payment now, it is refunded.
 */
export async function recordAgain(
  { store, advance }: { readonly store: Pick<Store, 'change' | 'makeReversalsDue'>; readonly advance: Advance },
  recorded: Attempt,
): Promise<Attempt | undefined> {
  await store.change(recorded, { state: 'CAPTURED' });
  const attempt = await advance(recorded.attemptId);
  if (recorded.connectionId !== null) await store.makeReversalsDue(recorded.connectionId, [recorded.attemptId]);
  return attempt;
}

/** How many days the daily comparison of payments, and the daily reading of refunds and disputes, goes back. */
export const comparedDays = 180;

/**
 * Returns the jobs that find what no request continues. Without any webhook, every payment is recorded within about a
 * minute.
 */
export function createSweep(deps: AdvanceDeps & { readonly advance: Advance }) {
  const { store, gateway, advance, logger, metrics } = deps;
  return {
    /** Continues due attempts, as many at once as one run may. */
    continueDue: () => continueAttempts(deps, 'payments'),

    /** Makes the attempts due that the providers' lists mention. */
    readLists: createListReader(deps, 'recent', store.makeDue),

    /** Compares all payments of a connection of the last months, and continues those that were not recorded. */
    async compareNext(signal: AbortSignal): Promise<void> {
      const connection = await store.takeComparison(comparedDays);
      if (connection === undefined) return;
      const since = new Date(Date.now() - comparedDays * 86_400_000);
      for await (const { attemptId, paymentId, difference } of comparePayments(deps, connection, since, signal)) {
        logger.error({ attempt_id: attemptId, payment_id: paymentId, difference }, 'a payment differs');
        metrics.countDifference();
        if (difference === 'not_recorded') await advance(attemptId);
        const attempt = difference === 'not_paid_at_gateway' ? await store.find(attemptId) : undefined;
        // An order that the gateway no longer has can't be paid.
        if (attempt?.state === 'RECORDED' && (await gateway.resolve(attempt.orderToken)))
          await recordAgain(deps, attempt);
      }
      if (!signal.aborted) await store.endComparison(connection.connectionId);
    },
  };
}
