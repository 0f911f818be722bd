import { setTimeout as sleep } from 'node:timers/promises';
import { JsonNumber } from '@order-gateway/fixtures';
import { type Seeded, seededAt } from '../../src/workload/seeded.ts';
import { type KilledRunResult, type KillPlan, type RunOrder, startKilledRun } from './killed-run.ts';

export interface PaymentPlan extends KillPlan {
  /** Whether to wait until the last leases have ended and their orders have expired. */
  readonly waitsForLeases: boolean;
}

const setup = {
  merchants: [{ name: 'Lasting' }, { name: 'Expiring', defaultLifetimeSeconds: 1 }],
  checkouts: ['One', 'Two'].map((name) => ({ name, kind: 'checkout' as const })),
  concurrentOrders: 120,
};

/** All attempts to pay an order begin within this time after its creation. */
const attemptsWithinMs = 2_000;

/** The shortest lease: 60 s. */
const leaseSeconds = 60;

/**
 * Two checkout systems each make two attempts to pay every order, at random times: they start an attempt, pay with or
 * without an attempt, end the attempt, or stop calling. Merchants cancel some orders, and some orders expire. Gateways
 * and the server are killed during the run, and every call is repeated until its outcome is known. Everything stops
 * when the test ends.
 */
export async function runPayments(plan: PaymentPlan): Promise<KilledRunResult> {
  const { checkoutAt, orderOf, send, create, runAll, finish } = await startKilledRun(plan, setup);
  const { seed } = plan;
  let leases = 0;

  async function attempt(order: RunOrder, orderToken: string, checkout: number, index: number, random: Seeded) {
    const caller = { account: checkoutAt(checkout), order, random };
    const { fields } = orderOf(order.number);
    const attemptId = `${order.orderId}-${checkout}-${index}`;
    const attemptKey = { order_token: orderToken, attempt_id: attemptId };
    await sleep(random.below(attemptsWithinMs));
    let hasLease = false;
    if (random.fraction() < 0.8) {
      const request = { ...attemptKey, lease_seconds: new JsonNumber(String(leaseSeconds)) };
      hasLease = (await send('StartPayment', request, caller)).leaseEndsAt !== undefined;
      if (hasLease) leases += 1;
      await sleep(random.below(attemptsWithinMs / 4));
      const [isAbandoned, isDeclined] = [random.fraction() < 0.3, random.fraction() < 0.5];
      if (hasLease && isAbandoned && !isDeclined) return;
      if (hasLease && isAbandoned) {
        await send('EndPayment', attemptKey, caller);
        return;
      }
      // Some customers pay although their attempt could not start.
      if (!hasLease && random.fraction() < 0.7) return;
    }
    const payment = {
      ...(hasLease ? attemptKey : { order_token: orderToken }),
      payment_id: `payment-${attemptId}`,
      paid_at: new Date().toISOString(),
      order_amount: new JsonNumber(random.fraction() < 0.05 ? '9999.99' : (fields.order_amount ?? '')),
      order_currency: fields.order_currency,
    };
    await send('RecordPayment', payment, caller);
  }

  const seconds = await runAll(async (number) => {
    const random = seededAt(seed, 10 * number);
    const { order, orderToken, caller } = await create(number, random);
    const attempts = [0, 1, 2, 3].map((index) =>
      attempt(order, orderToken, index % 2, index >> 1, seededAt(seed, 10 * number + 1 + index)),
    );
    const cancel = async () => {
      if (random.fraction() >= 0.4) return;
      await sleep(random.below(attemptsWithinMs));
      await send('CancelOrder', { order_id: order.orderId }, caller);
    };
    // Awaits all of them at once: if the run ends early, no call fails while nothing awaits it.
    await Promise.all([...attempts, cancel()]);
  });
  if (plan.waitsForLeases) await sleep(1_000 * (leaseSeconds + 1));
  const { audit, violations, figures, countOf } = await finish();
  const counted = {
    seconds,
    leases,
    paid: countOf('order.paid'),
    cancelled: countOf('order.cancelled'),
    expired: countOf('order.expired'),
    refused: countOf('order.payment_refused'),
  };
  return { audit, violations, figures: { ...figures, ...counted } };
}
