import { fitsMinorUnit } from '@order-gateway/domain/money';
import { type AdvanceDeps, errorCode, providerOf, sendCall } from '../attempts/advance.ts';
import { unlessRefused } from '../attempts/life.ts';
import { readLists } from '../attempts/lists.ts';
import { amountOfNumber, type PendingRefund } from '../gateway/gateway.ts';
import type { SeenReversals } from '../providers/provider.ts';
import type { Attempt } from '../store/store.ts';
import { traced } from '../tracing.ts';

type RefundDeps = Pick<AdvanceDeps, 'store' | 'gateway' | 'providers' | 'accountOf' | 'logger'>;

/** The pause after the first error of a refund. */
const pauseMsMin = 5_000;

/** How often a refund is looked at that the provider has not completed. */
const lookEveryMs = 60_000;

/** The pauses after errors double up to this one. */
const pauseMsMax = 600_000;

/**
 * Returns the jobs that make the refunds that merchants request, and report refunds and disputes of the providers. A
 * refund whose response was lost is found by its metadata before it is sent again, and one process works on a payment
 * at a time.
 */
export function createRefunds(deps: RefundDeps) {
  const { store, gateway, logger } = deps;
  const pauses = new Map<string, { readonly untilMs: number; readonly pauseMs: number }>();

  /** Reports the refunds and disputes of a payment. The gateway ignores those that it already has. */
  const report = async ({ orderToken, paymentId }: Attempt, { refunds, disputes }: SeenReversals) => {
    const payment = { orderToken, paymentId: paymentId ?? '' };
    const refusals = [
      ...(await Promise.all(refunds.map((refund) => gateway.recordRefund({ ...payment, ...refund })))),
      ...(await Promise.all(disputes.map((dispute) => gateway.recordDispute({ ...payment, ...dispute })))),
    ].filter((refusal) => refusal !== undefined);
    for (const refusal of refusals) logger.error({ payment_id: paymentId, refusal }, 'a refund was not recorded');
  };

  /** Reports the results of the refunds and disputes of a payment. */
  const look = async (attempt: Attempt) => {
    const { provider, account } = await providerOf(deps, attempt);
    await report(attempt, await provider.reversals(account, attempt));
  };

  /** Makes a refund unless the provider has it, and reports the result. */
  const make = async (attempt: Attempt, { refundId = '', amount, currency }: PendingRefund) => {
    const { provider, account } = await providerOf(deps, attempt);
    const seen = await provider.reversals(account, attempt);
    if (seen.refunds.some((refund) => refund.refundId === refundId)) {
      await report(attempt, seen);
      return;
    }
    const input = { refundId, amount: amountOfNumber(amount), currency };
    const purpose = `refund ${refundId}`;
    const method = provider.methods.find(({ name }) => name === attempt.method);
    // The provider may count the currency in larger units than the order. It would refund another amount.
    const isPossible = fitsMinorUnit(input.amount, method?.decimals(currency) ?? 0);
    const made = isPossible
      ? await unlessRefused(sendCall(store, { attempt, account, purpose }, provider.refundPart, input))
      : { refused: 'amount_too_precise' };
    const failed = { refundId, status: 'FAILED', amount: input.amount, reason: made.refused } as const;
    await report(attempt, { refunds: [made.value ?? failed], disputes: [] });
  };

  /** Runs work on a recorded payment, unless another process works on it. */
  const withLease = async (attemptId: string, work: (attempt: Attempt) => Promise<void>) => {
    const leased = await store.lease(attemptId);
    if (leased === undefined) return;
    try {
      await work(leased);
    } finally {
      await store.release(leased, { seconds: null, failed: false });
    }
  };

  const makePending = async () => {
    for await (const refund of gateway.pendingRefunds()) {
      const { orderToken, paymentId, refundId, providerRefundId } = refund;
      const key = `${orderToken} ${refundId ?? providerRefundId}`;
      const pause = pauses.get(key);
      if ((pause?.untilMs ?? 0) > Date.now()) continue;
      // A transfer has no attempt: a person returns it.
      const attempt = await store.recorded(orderToken, paymentId);
      if (attempt === undefined) continue;
      try {
        const isMade = refundId === undefined || providerRefundId !== undefined;
        await traced('refund', { attributes: { attempt_id: attempt.attemptId } }, () =>
          withLease(attempt.attemptId, (leased) => (isMade ? look(leased) : make(leased, refund))),
        );
        pauses.set(key, { pauseMs: pauseMsMin / 2, untilMs: Date.now() + (isMade ? lookEveryMs : 0) });
      } catch (error) {
        const pauseMs = Math.min((pause?.pauseMs ?? pauseMsMin / 2) * 2, pauseMsMax);
        pauses.set(key, { pauseMs, untilMs: Date.now() + pauseMs });
        logger.warn({ attempt_id: attempt.attemptId, error: errorCode(error) }, 'a refund waits');
      }
    }
  };

  /** Reports the refunds and disputes of payments. One that fails does not keep the others from being reported. */
  const lookAt = async (connectionId: string, paymentIds: readonly string[]) => {
    const failures: unknown[] = [];
    for (const attempt of await store.findNoticed(connectionId, paymentIds))
      if (attempt.paymentId !== null) await look(attempt).catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  };

  return {
    /** Makes the refunds that merchants requested, and reports the results. */
    makePending,
    /** Reports the refunds and disputes that the providers list, such as those that were made at the provider. */
    reportListed: () => readLists(deps, 'reversed', lookAt),
  };
}
