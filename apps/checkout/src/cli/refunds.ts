import { hash } from 'node:crypto';
import { type AmountHundredths, formatAmount, parseAmount } from '@order-gateway/domain/money';
import { displayTime, startList } from '@order-gateway/runtime/output';
import { StartError } from '@order-gateway/runtime/process';
import type { Command } from 'commander';
import type { AdvanceDeps } from '../attempts/advance.ts';
import { amountOfNumber } from '../gateway/gateway.ts';
import { openCredits } from '../statements/credits.ts';
import { jsonHelp, type Output, type With } from './commands.ts';

/** The dependencies of refunds that a person makes. */
export type RefundDeps = Pick<AdvanceDeps, 'store' | 'gateway'>;

/** Adds the commands for refunds that a person makes, such as those of transfers, to `payments`. */
export function addRefundCommands(program: Command, withRefunds: With<RefundDeps>, { print, actor }: Output): void {
  program
    .command('refunds')
    .description('Lists what a person must refund: refunds of transfers, and transfers that are owed.')
    .option('--json', jsonHelp)
    .action(({ json }: { json?: true }) =>
      withRefunds(async (deps) => {
        const columns = { SINCE: 23, AMOUNT: 16, REFUND: 20, 'ORDER TOKEN': 32, ORDER: 20, PAYMENT: 0 };
        const { printRow, end } = startList(columns, json, print);
        for await (const { creditId: _, currency, ...refund } of refundsByHand(deps)) {
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
    .argument('<ORDER_TOKEN>', 'its order token')
    .argument('<REFUND>', 'its identifier')
    .option('--failed', 'it failed: the bank returned the money, even if the refund was recorded as made')
    .action((orderToken: string, refundId: string, { failed }: { failed?: true }) =>
      withRefunds(async (deps) => {
        const refund =
          (await findRefund(deps, orderToken, refundId)) ??
          (failed && (await findMade(deps, orderToken, refundId))) ??
          undefined;
        if (refund === undefined) throw new StartError(`No refund ${refundId} of this order is for a person to make.`);
        const { paymentId, amount, orderId, merchantId, creditId, madeAs } = refund;
        const isTransfer = creditId !== undefined;
        if (failed && isTransfer && madeAs === undefined)
          throw new StartError(`The transfer ${refundId} is still owed.`);
        const key = { order_id: orderId, refund_id: refundId };
        const earlier = await deps.store.findAction('refund_failed', merchantId, key);
        // A refund that failed keeps its id, so the next transfer of the same money needs another one.
        const content = `${orderToken} ${refundId} ${earlier?.provider_refund_id ?? ''}`;
        const providerRefundId = madeAs ?? `manual_${hash('sha256', content).slice(0, 32)}`;
        const payment = { payment_id: paymentId, amount: formatAmount(amount) };
        const details = { ...key, ...payment, provider_refund_id: providerRefundId };
        const made = isTransfer ? 'transfer_refunded' : 'refunded';
        await deps.store.log(actor, failed ? 'refund_failed' : made, merchantId, details);
        const refused = await deps.gateway.recordRefund({
          orderToken,
          paymentId,
          amount,
          ...(!isTransfer && { refundId }),
          ...(failed ? { status: 'FAILED', reason: 'returned_by_bank' } : { status: 'SUCCEEDED' }),
          providerRefundId,
        });
        if (refused !== undefined) throw new StartError(`The gateway did not record the refund: ${refused}.`);
        if (isTransfer) await openCredits(deps.store).setRefunded(creditId, !failed);
        print(`Recorded ${failed ? 'the failure of ' : ''}the refund ${refundId} of the order ${orderId}.`);
      }),
    );
}

/** Precedes the number of an entry that is owed. */
const entryPrefix = 'entry-';

/** A refund that a person makes. */
interface RefundByHand {
  readonly createdAt: string;
  /** The merchant's id, or the entry of a statement that is owed. */
  readonly refundId: string;
  readonly paymentId: string;
  readonly orderToken: string;
  readonly orderId: string;
  readonly merchantId: string;
  readonly amount: AmountHundredths;
  readonly currency: string;
  /** Absent for a refund that the merchant requested. */
  readonly creditId?: number | undefined;
  /** The provider's id with which it was recorded as made; absent before that. */
  readonly madeAs?: string;
}

/** Yields the transfers that are owed, and the pending refunds whose payment no attempt took. */
async function* refundsByHand({ gateway, store }: RefundDeps): AsyncGenerator<RefundByHand> {
  for (const { creditId, createdAt, orderToken, amountHundredths, ...credit } of await openCredits(store).owed()) {
    const order = orderToken === null ? undefined : await gateway.resolve(orderToken);
    if (orderToken === null || order === undefined) continue;
    const { paymentId, currency } = credit;
    const { orderId, merchantId } = order;
    const amount = amountHundredths as AmountHundredths;
    const refundId = `${entryPrefix}${creditId}`;
    const since = createdAt.toISOString();
    yield { createdAt: since, refundId, creditId, paymentId, orderToken, orderId, merchantId, amount, currency };
  }
  for await (const { refundId, amount: double, ...refund } of gateway.pendingRefunds()) {
    const { createdAt, paymentId, orderToken, orderId, merchantId, currency } = refund;
    if (refundId === undefined || (await store.reported(orderToken, paymentId)) !== undefined) continue;
    const amount = amountOfNumber(double);
    yield { createdAt, refundId, paymentId, orderToken, orderId, merchantId, amount, currency };
  }
}

async function findRefund(deps: RefundDeps, orderToken: string, refundId: string): Promise<RefundByHand | undefined> {
  for await (const refund of refundsByHand(deps))
    if (refund.orderToken === orderToken && refund.refundId === refundId) return refund;
  return undefined;
}

/** Finds a refund, or a transfer that was owed, that a person recorded as made. It is no longer listed. */
async function findMade(
  { gateway, store }: RefundDeps,
  orderToken: string,
  refundId: string,
): Promise<Omit<RefundByHand, 'createdAt' | 'currency'> | undefined> {
  const order = await gateway.resolve(orderToken);
  if (order === undefined) return undefined;
  const { orderId, merchantId } = order;
  const key = { order_id: orderId, refund_id: refundId };
  const refund = await store.findAction('refunded', merchantId, key);
  const made = refund ?? (await store.findAction('transfer_refunded', merchantId, key));
  const amount = parseAmount(made?.amount ?? '');
  if (!made?.payment_id || !made.provider_refund_id || !amount.ok) return undefined;
  const creditId = refund === undefined ? Number(refundId.replace(entryPrefix, '')) : undefined;
  const { payment_id: paymentId, provider_refund_id: madeAs } = made;
  return { refundId, creditId, paymentId, madeAs, orderToken, orderId, merchantId, amount: amount.value };
}
