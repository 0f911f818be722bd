import { fitsMinorUnit } from '@order-gateway/domain/money';
import {
  type Advance,
  type AdvanceDeps,
  errorCode,
  lookAtReversals,
  providerOf,
  sendCall,
} from '../attempts/advance.ts';
import { owedOf, unlessProviderRefuses } from '../attempts/life.ts';
import { createListReader } from '../attempts/lists.ts';
import { createPauses } from '../attempts/pauses.ts';
import { reportReversals } from '../attempts/report-reversals.ts';
import { continueAttempts } from '../attempts/sweep.ts';
import { amountOfNumber, type PendingRefund } from '../gateway/gateway.ts';
import { readReversals, withRefundId } from '../providers/provider.ts';
import { paymentOfAttempt } from '../store/schema.ts';
import type { Attempt } from '../store/store.ts';
import { traced } from '../tracing.ts';

interface RefundDeps extends Pick<AdvanceDeps, 'store' | 'gateway' | 'providers' | 'accountOf' | 'logger'> {
  readonly advance: Advance;
}

/** The pauses after errors of a refund double up to the maximum. */
const pausesMs = { msMin: 5_000, msMax: 600_000 };

/** How often a refund is looked at that the provider has not completed. */
const lookEveryMs = 60_000;

/**
 * Returns the jobs that make the refunds that merchants request, and report refunds and disputes of the providers. A
 * refund whose response was lost is found by its metadata before it is sent again, and one process works on a payment
 * at a time.
 */
export function createRefunds(deps: RefundDeps) {
  const { store, gateway, logger } = deps;
  const { paused, fail, succeed, keep } = createPauses(pausesMs);

  /** Makes a refund unless the provider has it, and reports the result. */
  const make = async (attempt: Attempt, { refundId = '', amount, currency }: PendingRefund) => {
    const { provider, account } = await providerOf(deps, attempt);
    const seen = await readReversals({ provider, account }, attempt);
    const input = { refundId, amount: amountOfNumber(amount), currency };
    const isMade = seen.refunds.some((refund) => refund.refundId === refundId);
    // The gateway may not know yet that another refund or a dispute has returned the money.
    const isLeft = owedOf(paymentOfAttempt(attempt), seen, ['OPEN', 'LOST']) >= input.amount;
    if (isMade || !isLeft) await reportReversals(deps, attempt, seen);
    if (isMade) return;
    const purpose = `refund ${refundId}`;
    const method = provider.methods.find(({ name }) => name === attempt.method);
    // The provider may count the currency in larger units than the order. It would refund another amount.
    const isPossible = fitsMinorUnit(input.amount, method?.decimals(currency) ?? 0);
    const made =
      isLeft && isPossible
        ? await unlessProviderRefuses(sendCall(store, { attempt, account, purpose }, provider.refund, input))
        : { refused: isLeft ? 'amount_too_precise' : 'exceeds_payment' };
    const failed = { refundId, status: 'FAILED', amount: input.amount, reason: made.refused } as const;
    await reportReversals(deps, attempt, {
      refunds: [made.value ? { ...withRefundId(made.value, attempt), refundId } : failed],
      disputes: [],
    });
  };

  /** Runs work on a payment, unless another process works on it. */
  const withLease = async (attemptId: string, work: (attempt: Attempt) => Promise<unknown>) => {
    const leased = await store.lease(attemptId);
    if (leased === undefined) return;
    try {
      await work(leased);
    } finally {
      await store.release(leased);
    }
  };

  /**
   * Makes a refund, or looks at one that was made, unless another one of the same account has just failed. A transfer
   * has no attempt: a person returns it.
   */
  const advanceRefund = async (key: string, refund: PendingRefund, failing: Set<string | null>) => {
    const { orderToken, paymentId, refundId, providerRefundId } = refund;
    const attempt = await store.findByPayment(orderToken, paymentId);
    if (attempt === undefined || failing.has(attempt.connectionId)) return;
    const isMade = refundId === undefined || providerRefundId !== undefined;
    try {
      await traced('refund', { attributes: { attempt_id: attempt.attemptId } }, () =>
        withLease(attempt.attemptId, (leased) => (isMade ? lookAtReversals(deps, leased) : make(leased, refund))),
      );
      succeed(key, isMade ? lookEveryMs : 0);
    } catch (error) {
      fail(key);
      failing.add(attempt.connectionId);
      logger.warn({ attempt_id: attempt.attemptId, error: errorCode(error) }, 'a refund waits');
    }
  };

  const makePending = async () => {
    const pending = new Set<string>();
    const pausedBefore = paused();
    const failing = new Set<string | null>();
    for await (const refund of gateway.pendingRefunds()) {
      const key = `${refund.orderToken} ${refund.refundId ?? refund.providerRefundId}`;
      pending.add(key);
      if (!pausedBefore.has(key)) await advanceRefund(key, refund, failing);
    }
    keep(pending);
  };

  /**
   * Erases the keys of disconnected accounts that no attempt and no pending refund needs. Rejects before that if the
   * gateway's list may lack a refund.
   */
  const eraseKeys = async () => {
    const connectionIds = new Set<string>();
    for await (const { orderToken, paymentId } of gateway.pendingRefunds()) {
      const attempt = await store.findByPayment(orderToken, paymentId);
      if (attempt?.connectionId) connectionIds.add(attempt.connectionId);
    }
    const count = await store.eraseKeys([...connectionIds]);
    if (count > 0) logger.info({ count }, 'erased the keys of disconnected accounts');
  };

  const readReversed = createListReader(deps, 'reversed', store.makeReversalsDue);

  return {
    /** Makes the refunds that merchants requested, and reports the results. */
    makePending,
    eraseKeys,
    /**
     * Reports the refunds and disputes of the payments that the providers' lists or webhooks mention, such as those
     * that were made at the provider.
     */
    async reportListed() {
      await readReversed();
      return continueAttempts(deps, 'reversals');
    },
  };
}
