import { hash } from 'node:crypto';
import { type AmountHundredths, formatAmount, parseAmount } from '@order-gateway/domain/money';
import { displayTime, startList } from '@order-gateway/runtime/output';
import { messageOf, StartError } from '@order-gateway/runtime/process';
import type { Command } from 'commander';
import { providerOf } from '../attempts/advance.ts';
import { isDisputed, isForPerson, owedOf } from '../attempts/life.ts';
import { comparedDays } from '../attempts/sweep.ts';
import { amountOfNumber } from '../gateway/gateway.ts';
import { hasKey } from '../providers/accounts.ts';
import { readReversals } from '../providers/provider.ts';
import { openCredits } from '../statements/credits.ts';
import { paymentOfAttempt } from '../store/schema.ts';
import { type GatewayDeps, jsonHelp, type Output, parseToken, type With } from './commands.ts';

/** Adds the commands for refunds that a person makes, such as those of transfers, to `payments`. */
export function addRefundCommands(program: Command, withRefunds: With<GatewayDeps>, { print, actor }: Output): void {
  program
    .command('refunds')
    .description("Lists what a person must refund: transfers, and refused payments that the checkout can't refund.")
    .option('--json', jsonHelp)
    .action(({ json }: { json?: true }) =>
      withRefunds(async (deps) => {
        const columns = { SINCE: 23, AMOUNT: 16, REFUND: 20, 'ORDER TOKEN': 32, ORDER: 20, PAYMENT: 0 };
        const { printRow, end } = startList(columns, json, print);
        for await (const { kind: _, currency, ...refund } of refundsByHand(deps)) {
          const { createdAt, refundId, paymentId, orderToken, orderId } = refund;
          const amount = `${formatAmount(refund.amount)} ${currency}`;
          const since = displayTime(new Date(createdAt));
          printRow({ ...refund, amount }, since, amount, refundId, orderToken, orderId, paymentId);
        }
        end('There is no refund for a person to make.');
      }),
    );

  program
    .command('refunded')
    .description('Records that a person refunded what `payments refunds` lists.')
    .argument('<ORDER_TOKEN>', 'the payment link of the order, or its order_token', parseToken)
    .argument('<REFUND>', 'its identifier')
    .option('--failed', 'it failed: the bank returned the money, even if the refund was recorded as made')
    .action((orderToken: string, refundId: string, { failed }: { failed?: true }) =>
      withRefunds(async (deps) => {
        const found = await findRefund(deps, orderToken, refundId);
        const refund = found ?? (failed && (await findMade(deps, orderToken, refundId)));
        if (refund === undefined) throw new StartError(`No refund ${refundId} of this order is for a person to make.`);
        const { kind, paymentId, amount, orderId, merchantId, madeAs } = refund;
        const isRequested = kind === 'requested';
        if (failed && !isRequested && madeAs === undefined) throw new StartError(`${refundId} is still owed.`);
        const key = { order_id: orderId, refund_id: refundId };
        const earlier = await deps.store.findAction('refund_failed', merchantId, key);
        // A refund that failed keeps its id, so the next transfer of the same money needs another one.
        const content = `${orderToken} ${refundId} ${earlier?.provider_refund_id ?? ''}`;
        const providerRefundId = madeAs ?? `manual_${hash('sha256', content).slice(0, 32)}`;
        const payment = { payment_id: paymentId, amount: formatAmount(amount) };
        const details = { ...key, ...payment, provider_refund_id: providerRefundId };
        await deps.store.log(actor, failed ? 'refund_failed' : actions[kind], merchantId, details);
        const refused = await deps.gateway.recordRefund({
          orderToken,
          paymentId,
          amount,
          ...(isRequested && { refundId }),
          ...(failed ? { status: 'FAILED', reason: 'returned_by_bank' } : { status: 'SUCCEEDED' }),
          providerRefundId,
        });
        // A gateway that was restored from a backup may have lost the payment that it refused.
        if (refused !== undefined && (isRequested || refused !== 'not_found'))
          throw new StartError(`The gateway did not record the refund: ${refused}.`);
        if (kind === 'transfer') await openCredits(deps.store).setRefunded(creditIdOf(refundId), !failed);
        if (kind === 'payment') await deps.store.setRefundedByHand(refundId, !failed);
        print(
          `Recorded ${failed ? 'the failure of ' : ''}the refund ${refundId} of the order ${orderId || orderToken}.`,
        );
      }),
    );
}

/** The action in the audit log for each kind of refund that was made. */
const actions = { requested: 'refunded', transfer: 'transfer_refunded', payment: 'payment_refunded' } as const;

/** Precedes the number of an entry that is owed. */
const entryPrefix = 'entry-';

const creditIdOf = (refundId: string) => Number(refundId.replace(entryPrefix, ''));

/** A refund that a person makes. */
interface RefundByHand {
  /** Whether the merchant requested it, the gateway refused a transfer, or the checkout can't refund a payment. */
  readonly kind: keyof typeof actions;
  readonly createdAt: string;
  /** The merchant's id, the entry of a statement that is owed, or the attempt with the payment. */
  readonly refundId: string;
  readonly paymentId: string;
  readonly orderToken: string;
  readonly orderId: string;
  readonly merchantId: string;
  readonly amount: AmountHundredths;
  readonly currency: string;
  /** The provider's id with which it was recorded as made; absent before that. */
  readonly madeAs?: string;
}

/** Yields the transfers that are owed, the pending refunds whose payment no attempt took, and those that failed. */
async function* refundsByHand(deps: GatewayDeps): AsyncGenerator<RefundByHand> {
  const { gateway, store } = deps;
  for (const { creditId, createdAt, orderToken, amountHundredths, ...credit } of await openCredits(store).owed()) {
    if (orderToken === null) continue;
    const { paymentId, currency } = credit;
    // A gateway that was restored from a backup may have lost the order. The money is owed all the same.
    const { orderId, merchantId } = (await gateway.resolve(orderToken)) ?? { orderId: '', merchantId: '' };
    yield {
      kind: 'transfer',
      createdAt: createdAt.toISOString(),
      refundId: `${entryPrefix}${creditId}`,
      paymentId,
      orderToken,
      orderId,
      merchantId,
      amount: amountHundredths as AmountHundredths,
      currency,
    };
  }
  for await (const { refundId, amount: double, ...refund } of gateway.pendingRefunds()) {
    const { createdAt, paymentId, orderToken, orderId, merchantId, currency } = refund;
    if (refundId === undefined || (await store.findByPayment(orderToken, paymentId)) !== undefined) continue;
    const amount = amountOfNumber(double);
    yield { kind: 'requested', createdAt, refundId, paymentId, orderToken, orderId, merchantId, amount, currency };
  }
  yield* paymentsByHand(deps);
}

/**
 * Yields what the customer has not got back of refused payments that a person has to refund. Finally rejects if some
 * could not be read.
 */
async function* paymentsByHand(deps: GatewayDeps): AsyncGenerator<RefundByHand> {
  const problems = new Map<string, string>();
  const withKey = (await deps.store.listConnections()).filter(hasKey).map(({ connectionId }) => connectionId);
  for (const attempt of await deps.store.refused(comparedDays)) {
    if (attempt.connectionId === null || !withKey.includes(attempt.connectionId)) continue;
    const reversals = await providerOf(deps, attempt)
      .then((found) => readReversals(found, attempt))
      .catch((error: unknown) => void problems.set(attempt.merchantId, messageOf(error)));
    if (reversals === undefined) continue;
    const payment = paymentOfAttempt(attempt);
    const amount = owedOf(payment, reversals);
    if (isDisputed(reversals) || !isForPerson(reversals) || amount <= 0n) continue;
    const { attemptId, createdAt, paymentId, orderToken, orderId, merchantId } = attempt;
    yield {
      kind: 'payment',
      createdAt: createdAt.toISOString(),
      refundId: attemptId,
      paymentId: `${paymentId}`,
      orderToken,
      orderId,
      merchantId,
      amount,
      currency: payment.currency,
    };
  }
  const lines = [...problems].map(
    ([merchantId, message]) => `The refused payments of ${merchantId} could not be read: ${message}.`,
  );
  if (lines.length > 0) throw new StartError(lines.join('\n'));
}

async function findRefund(deps: GatewayDeps, orderToken: string, refundId: string): Promise<RefundByHand | undefined> {
  for await (const refund of refundsByHand(deps))
    if (refund.orderToken === orderToken && refund.refundId === refundId) return refund;
  return undefined;
}

/** Finds a refund that a person recorded as made. It is no longer listed. */
async function findMade(
  { gateway, store }: GatewayDeps,
  orderToken: string,
  refundId: string,
): Promise<Omit<RefundByHand, 'createdAt' | 'currency'> | undefined> {
  const order = await gateway.resolve(orderToken);
  if (order === undefined) return undefined;
  const { orderId, merchantId } = order;
  for (const kind of ['requested', 'transfer', 'payment'] as const) {
    const made = await store.findAction(actions[kind], merchantId, { order_id: orderId, refund_id: refundId });
    const amount = parseAmount(made?.amount ?? '');
    if (!made?.payment_id || !made.provider_refund_id || !amount.ok) continue;
    const { payment_id: paymentId, provider_refund_id: madeAs } = made;
    return { kind, refundId, paymentId, madeAs, orderToken, orderId, merchantId, amount: amount.value };
  }
  return undefined;
}
