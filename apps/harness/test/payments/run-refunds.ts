import { JsonNumber } from '@order-gateway/fixtures';
import type { Reply } from '../../src/load/calls/sender.ts';
import { type Seeded, seededAt } from '../../src/workload/seeded.ts';
import { type KilledRunResult, type KillPlan, startKilledRun } from './killed-run.ts';

const setup = {
  merchants: [{ name: 'First' }, { name: 'Second' }],
  checkouts: [{ name: 'Checkout', kind: 'checkout' as const, makesRefunds: true as const }],
  concurrentOrders: 12,
};

/** How many callers refund one order at the same time, and how many refunds each of them requests. */
const [callers, refundsPerCaller] = [8, 2];

/**
 * Eight concurrent callers refund every order in random parts, which together exceed the payment. The checkout system
 * makes some of the refunds, fails others, and later reports that the bank returned some. It also reports refunds that
 * were made at the provider, each from two places as a webhook and a sweep do, and disputes. Gateways and the server
 * are killed during the run, and every call is repeated until its outcome is known. Everything stops when the test
 * ends.
 */
export async function runRefunds(plan: KillPlan): Promise<KilledRunResult> {
  const { checkoutAt, send, create, runAll, finish } = await startKilledRun(plan, setup);
  const checkout = checkoutAt(0);
  const counts = { reads: 0, created: 0, refunds_refused: 0 };
  const violations: string[] = [];

  /** Checks that the refunds which the merchant requested and which have not failed fit the payment. */
  const checkSum = ({ orders = [] }: Reply, orderAmount: string) => {
    const [{ order_id = 'no order', refunds = [] } = {}] = orders;
    const held = refunds.filter(({ refund_id, status }) => refund_id.startsWith('own-') && status !== 'FAILED');
    const hundredths = held.reduce((sum, { amount }) => sum + Math.round(100 * amount), 0);
    if (hundredths > Math.round(100 * Number(orderAmount))) violations.push(`${order_id}: refunds exceed the payment`);
    counts.reads += 1;
  };

  const seconds = await runAll(async (number) => {
    const { order, fields, orderToken, caller } = await create(number, seededAt(plan.seed, 10 * number));
    const { order_amount = '', order_currency } = fields;
    const payment = { order_token: orderToken, payment_id: `payment-of-${order.orderId}` };
    const paid = { paid_at: new Date().toISOString(), order_amount: new JsonNumber(order_amount), order_currency };
    await send('RecordPayment', { ...payment, ...paid }, { account: checkout, order, random: caller.random });
    const partOf = (share: number) =>
      new JsonNumber(Math.max(0.01, Math.floor(100 * Number(order_amount) * share) / 100).toFixed(2));
    const [providersPart, disputedPart] = [partOf(0.1), partOf(0.2)];

    const refund = async (refundId: string, random: Seeded) => {
      const amount = partOf(0.05 + 0.35 * random.fraction());
      const request = { order_id: order.orderId, refund_id: refundId, refund_amount: amount };
      const { outcome } = await send('CreateRefund', request, { ...caller, random });
      if (outcome === 'refund_exceeds_payment') counts.refunds_refused += 1;
      if (outcome !== 'created' && outcome !== 'replayed') return;
      counts.created += 1;
      const report = { ...payment, refund_id: refundId, provider_refund_id: `of-${refundId}-${order.orderId}`, amount };
      const fate = random.fraction();
      const statuses = fate < 0.4 ? ['SUCCEEDED'] : fate < 0.6 ? ['FAILED'] : fate < 0.8 ? ['SUCCEEDED', 'FAILED'] : [];
      for (const status of statuses)
        await send('RecordRefund', { ...report, status }, { account: checkout, order, random });
    };

    const call = async (index: number) => {
      const random = seededAt(plan.seed, 10 * number + 1 + index);
      for (let part = 0; part < refundsPerCaller; part += 1) {
        await refund(`own-${index}-${part}`, random);
        checkSum(await send('GetOrder', { order_id: order.orderId }, { ...caller, random }), order_amount);
      }
      const byCheckout = { account: checkout, order, random };
      if (index < 2) {
        const made = { provider_refund_id: `provider-${order.orderId}`, amount: providersPart, status: 'SUCCEEDED' };
        await send('RecordRefund', { ...payment, ...made }, byCheckout);
      }
      if (index === 2 && number % 3 === 0) {
        const dispute = { ...payment, dispute_id: `dispute-${order.orderId}`, amount: disputedPart };
        for (const status of ['OPEN', random.pick(['WON', 'LOST'])]) {
          await send('RecordDispute', { ...dispute, currency: order_currency, status }, byCheckout);
        }
      }
    };
    await Promise.all(Array.from({ length: callers }, (_, index) => call(index)));
  });
  const { audit, figures, countOf, ...feeds } = await finish();
  const counted = {
    ...counts,
    seconds,
    refunded: countOf('order.refunded'),
    refund_failed: countOf('order.refund_failed'),
    disputed: countOf('order.disputed'),
    dispute_closed: countOf('order.dispute_closed'),
  };
  return { audit, violations: [...violations, ...feeds.violations], figures: { ...figures, ...counted } };
}
