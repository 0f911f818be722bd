import type { AmountHundredths } from '@order-gateway/domain/money';
import { expect, test } from 'vitest';
import type { SeenPayment } from '../providers/provider.ts';
import type { Attempt } from '../store/store.ts';
import { type Actions, life } from './life.ts';

// The rules that the interleavings can't break, because in them a payment has the amount of its order, and a claim does
// not end while its money is captured.

const payment: SeenPayment = {
  paymentId: 'pi_1',
  paidAt: new Date(0),
  amount: 1_000n as AmountHundredths,
  currency: 'EUR',
};
const attempt = { amountHundredths: payment.amount, currency: payment.currency } as unknown as Attempt;

/** Applies the rule of a state for an authorised payment. Returns the step, and the calls that the rule made. */
async function authorised(state: 'OPEN' | 'CLAIMED', seen: Partial<SeenPayment> = {}, refused?: string) {
  const calls: unknown[] = [];
  const act = {
    async start(seconds: number) {
      calls.push(['start', seconds]);
      return refused === undefined ? {} : { refused };
    },
    async capture() {
      calls.push('capture');
    },
  } as unknown as Actions;
  const rules = life[state];
  if (!('authorised' in rules)) throw new Error(`${state} does not ask for the status`);
  const situation = { act, nowMs: 0, isNew: false, isUnwanted: false, isListed: false };
  const step = await rules.authorised({ ...situation, attempt, seen: { is: 'authorised', ...payment, ...seen } });
  return { step, calls };
}

const extension = ['start', 7 * 86_400];

test.each([
  ['amount', { amount: 999n as AmountHundredths }],
  ['currency', { currency: 'USD' }],
])('a payment of another %s claims nothing and is released', async (_, seen) => {
  const { step, calls } = await authorised('OPEN', seen);
  expect(step).toMatchObject({ next: 'VOIDING', change: { reason: 'payment_mismatch' } });
  expect(calls).toEqual([]);
});

test('the claim is extended to 7 days when the money is authorised, and again before it is captured', async () => {
  expect(await authorised('OPEN')).toMatchObject({ step: { next: 'CLAIMED' }, calls: [extension] });
  expect(await authorised('CLAIMED')).toMatchObject({ step: { next: 'CLAIMED' }, calls: [extension, 'capture'] });
});

test('a payment whose refund failed is not refunded again, unless its dispute is won', async () => {
  const { OWED } = life;
  if (!('captured' in OWED)) throw new Error('OWED does not ask for the status');
  const refunds: unknown[] = [];
  const failed = { status: 'FAILED', amount: payment.amount } as const;
  const won = { disputeId: 'dp_1', status: 'WON', amount: payment.amount, currency: 'EUR', reason: '' } as const;
  const situation = { attempt, seen: { is: 'captured', ...payment }, nowMs: 0 } as const;
  const rest = { isNew: false, isUnwanted: false, isListed: false };
  const steps = [[], [won]].map((disputes) => {
    const act = {
      report: async () => ({ refunds: [failed], disputes }),
      refund: async (input: unknown) => refunds.push(input),
    } as unknown as Actions;
    return OWED.captured({ ...situation, ...rest, act });
  });
  expect(await Promise.all(steps)).toEqual([{ waitSeconds: 3_600 }, { next: 'OWED' }]);
  expect(refunds).toEqual([{ amount: payment.amount, currency: 'EUR' }]);
});

test('if the claim can no longer be extended, the money is released instead of captured', async () => {
  const { step, calls } = await authorised('CLAIMED', {}, 'order_cancelled');
  expect(step).toEqual({ next: 'VOIDING', change: { reason: 'order_cancelled' } });
  expect(calls).toEqual([extension]);
});
