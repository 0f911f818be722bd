import { hash } from 'node:crypto';
import { formatAmount } from '@order-gateway/domain/money';
import { startList } from '@order-gateway/runtime/output';
import { StartError } from '@order-gateway/runtime/process';
import type { Command } from 'commander';
import type { AdvanceDeps } from '../attempts/advance.ts';
import { amountOfNumber, type PendingRefund } from '../gateway/gateway.ts';

/** What the refunds of persons need. */
type RefundDeps = Pick<AdvanceDeps, 'store' | 'gateway'>;

/** Opens what the refunds need for a command, and closes it afterwards. */
export type WithRefunds = (work: (deps: RefundDeps) => Promise<void>) => Promise<void>;

/** Adds the commands for refunds that a person makes, such as those of transfers, to `payments`. */
export function addRefundCommands(
  program: Command,
  withRefunds: WithRefunds,
  { print, actor }: { readonly print: (line: string) => void; readonly actor: string },
): void {
  program
    .command('refunds')
    .description('Lists the refunds that a person must make, because the payment was a transfer, oldest first.')
    .option('--json', 'print JSON, one object per line')
    .action(({ json }: { json?: true }) =>
      withRefunds(async (deps) => {
        const columns = { REQUESTED: 29, AMOUNT: 16, REFUND: 20, PAYMENT: 30, 'ORDER TOKEN': 32, ORDER: 0 };
        const { printRow, end } = startList(columns, json, print);
        for await (const refund of refundsByHand(deps)) {
          const { createdAt, refundId, paymentId, orderToken, orderId, merchantId, currency } = refund;
          const amount = `${formatAmount(amountOfNumber(refund.amount))} ${currency}`;
          const fields = { createdAt, amount, refundId, paymentId, orderToken, orderId, merchantId };
          printRow(fields, createdAt, amount, refundId, paymentId, orderToken, orderId);
        }
        end('No refund waits for a person.');
      }),
    );

  program
    .command('refunded')
    .description('Records that a person made a refund that `payments refunds` lists.')
    .argument('<ORDER_TOKEN>', 'its order token')
    .argument('<REFUND>', 'its identifier')
    .action((orderToken: string, refundId: string) =>
      withRefunds(async (deps) => {
        const refund = await findRefund(deps, orderToken, refundId);
        if (refund === undefined) throw new StartError(`No refund ${refundId} of this order waits for a person.`);
        const { paymentId, amount, orderId, merchantId } = refund;
        await deps.store.log(actor, 'refunded', merchantId, { order_id: orderId, refund_id: refundId });
        const refused = await deps.gateway.recordRefund({
          orderToken,
          paymentId,
          refundId,
          amount: amountOfNumber(amount),
          status: 'SUCCEEDED',
          providerRefundId: `manual_${hash('sha256', `${orderToken} ${refundId}`).slice(0, 32)}`,
        });
        if (refused !== undefined) throw new StartError(`The gateway did not record the refund: ${refused}.`);
        print(`Recorded the refund ${refundId} of the order ${orderId}.`);
      }),
    );
}

/** Yields the pending refunds whose payment no attempt took. */
async function* refundsByHand({ gateway, store }: RefundDeps): AsyncGenerator<PendingRefund & { refundId: string }> {
  for await (const refund of gateway.pendingRefunds()) {
    const { orderToken, paymentId, refundId } = refund;
    if (refundId !== undefined && (await store.recorded(orderToken, paymentId)) === undefined)
      yield { ...refund, refundId };
  }
}

async function findRefund(deps: RefundDeps, orderToken: string, refundId: string) {
  for await (const refund of refundsByHand(deps))
    if (refund.orderToken === orderToken && refund.refundId === refundId) return refund;
  return undefined;
}
