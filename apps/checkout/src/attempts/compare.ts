import { OrderStatus } from '../gateway/gateway.ts';
import { readStatus, type Seen } from '../providers/provider.ts';
import { refundedByHand } from '../store/schema.ts';
import type { Attempt, Connection } from '../store/store.ts';
import type { AdvanceDeps } from './advance.ts';
import { owedOf, unlessProviderRefuses } from './life.ts';

/** A payment on which the provider, the checkout and the gateway do not agree. */
export interface Difference {
  readonly attemptId: string;
  readonly orderId: string | undefined;
  readonly paymentId: string | undefined;
  /**
   * `unknown_attempt`: the provider took money for an attempt that is not stored. `not_recorded`: it took money that is
   * not recorded. `amount_differs`: it took another amount than the recorded one. `not_captured` and
   * `missing_at_provider`: it does not have the money of a recorded payment. `not_paid_at_gateway`: the order of a
   * recorded payment, which is not refunded, is not paid, or the gateway no longer has it.
   */
  readonly difference:
    | 'unknown_attempt'
    | 'not_recorded'
    | 'amount_differs'
    | 'not_captured'
    | 'missing_at_provider'
    | 'not_paid_at_gateway';
}

/** A payment of an attempt that changed within this time may not be recorded yet. */
const settledMs = 600_000;

/**
 * Compares the payments of a connection since a time, in both directions: those of the provider with the stored
 * attempts, and the recorded ones with the provider and with the gateway. Changes nothing.
 */
export async function* comparePayments(
  { store, gateway, providers, accountOf }: Pick<AdvanceDeps, 'store' | 'gateway' | 'providers' | 'accountOf'>,
  { connectionId, provider: name }: Pick<Connection, 'connectionId' | 'provider'>,
  since: Date,
  signal?: AbortSignal,
): AsyncGenerator<Difference> {
  const provider = providers.get(name);
  if (provider?.history === undefined) return;
  const account = await accountOf(connectionId);
  const known = new Set<string>();
  const refunded = new Set<string>();
  // The provider's clock may differ.
  const listedSince = new Date(since.getTime() - settledMs);
  for await (const { attemptId, seen } of provider.history(account, listedSince)) {
    if (signal?.aborted) return;
    known.add(attemptId);
    if (seen.is === 'refunded') refunded.add(attemptId);
    const attempt = await store.find(attemptId);
    // An account can have several connections: earlier ones, or those of other merchants.
    if (attempt !== undefined && attempt.connectionId !== connectionId) continue;
    // Providers don't show the money of a lost dispute as refunded.
    const isReturned =
      attempt?.state === 'REFUNDED' &&
      seen.is === 'captured' &&
      (attempt.reason === refundedByHand || owedOf(seen, await provider.reversals(account, attempt)) <= 0n);
    const difference = isReturned ? undefined : differenceOf(attempt, seen);
    const paymentId = 'paymentId' in seen ? seen.paymentId : (attempt?.paymentId ?? undefined);
    if (difference !== undefined) yield { attemptId, orderId: attempt?.orderId, paymentId, difference };
  }
  for await (const attempt of store.recordedSince(connectionId, since)) {
    if (signal?.aborted) return;
    const { attemptId, orderId, paymentId } = attempt;
    const order = await gateway.resolve(attempt.orderToken);
    // Reading a long list takes minutes, so it lacks the payments that customers made in that time.
    const isMissing =
      !known.has(attemptId) &&
      (await unlessProviderRefuses(readStatus({ provider, account }, attempt))).value === undefined;
    const difference = isMissing
      ? 'missing_at_provider'
      : order?.orderStatus !== OrderStatus.PAID && !refunded.has(attemptId)
        ? 'not_paid_at_gateway'
        : undefined;
    if (difference !== undefined) yield { attemptId, orderId, paymentId: paymentId ?? undefined, difference };
  }
}

function differenceOf(attempt: Attempt | undefined, seen: Seen): Difference['difference'] | undefined {
  const isRecorded = attempt?.state === 'RECORDED';
  if (seen.is !== 'captured') return isRecorded && seen.is !== 'refunded' ? 'not_captured' : undefined;
  if (attempt === undefined) return 'unknown_attempt';
  if (isRecorded)
    return attempt.paidHundredths === seen.amount && attempt.paidCurrency === seen.currency
      ? undefined
      : 'amount_differs';
  return Date.now() - attempt.changedAt.getTime() > settledMs ? 'not_recorded' : undefined;
}
