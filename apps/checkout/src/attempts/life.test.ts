import type { AmountHundredths } from '@order-gateway/domain/money';
import { expect, test } from 'vitest';
import type { SeenPayment, SeenReversals } from '../providers/provider.ts';
import { refundedByHand } from '../store/schema.ts';
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

/** Continues a refused payment with these refunds and disputes. Returns the step, and the refunds that were made. */
async function reversed(state: 'OWED' | 'REFUNDED', seen: Partial<SeenReversals>, reason: string | null = null) {
  const refunds: unknown[] = [];
  const act = {
    report: async () => ({ refunds: [], disputes: [], ...seen }),
    refund: async (input: unknown) => refunds.push(input),
  } as unknown as Actions;
  const paid = { paidHundredths: payment.amount, paidCurrency: payment.currency };
  const refused = { ...attempt, ...paid, state, reason, dueAt: new Date(0) };
  const situation = { attempt: refused, act, nowMs: 0, isNew: false, isUnwanted: false, isListed: false };
  const rules = life[state];
  const step =
    'unseen' in rules
      ? await rules.unseen({ ...situation, seen: undefined })
      : await rules.captured({ ...situation, seen: { is: 'captured', ...payment } });
  return { step, refunds };
}

const refundOf = (status: 'SUCCEEDED' | 'FAILED', amount: bigint = payment.amount) => ({
  providerRefundId: 're_1',
  status,
  amount: amount as AmountHundredths,
});

const disputeOf = (status: 'WON' | 'LOST', amount: bigint = payment.amount) => ({
  disputeId: 'dp_1',
  status,
  amount: amount as AmountHundredths,
  currency: 'EUR',
  reason: '',
});

test('a payment whose refund failed is not refunded again, unless its dispute is won', async () => {
  const refunds = [refundOf('FAILED')];
  expect(await reversed('OWED', { refunds })).toEqual({ step: { waitSeconds: 3_600 }, refunds: [] });
  expect(await reversed('OWED', { refunds, disputes: [disputeOf('WON')] })).toEqual({
    step: { next: 'OWED' },
    refunds: [{ amount: payment.amount, currency: 'EUR' }],
  });
});

test('a payment whose refund failed again after its dispute was won is for a person', async () => {
  const seen = { refunds: [refundOf('FAILED'), refundOf('FAILED')], disputes: [disputeOf('WON')] };
  expect(await reversed('OWED', seen)).toEqual({ step: { waitSeconds: 3_600 }, refunds: [] });
});

test('a payment of which a dispute returned a part and a refund the rest is no longer owed', async () => {
  const seen = { refunds: [refundOf('SUCCEEDED', 400n)], disputes: [disputeOf('LOST', 600n)] };
  expect(await reversed('OWED', seen)).toEqual({ step: { next: 'REFUNDED' }, refunds: [] });
});

test('what a lost dispute had returned is owed again once the dispute is won', async () => {
  const refunds = [refundOf('SUCCEEDED', 400n)];
  const disputes = [disputeOf('WON', 600n)];
  expect((await reversed('REFUNDED', { refunds, disputes })).step).toEqual({ next: 'OWED' });
  expect(await reversed('OWED', { refunds, disputes })).toEqual({
    step: { next: 'OWED' },
    refunds: [{ amount: 600n, currency: 'EUR' }],
  });
});

test('a payment whose refund failed later is owed again', async () => {
  expect((await reversed('REFUNDED', { refunds: [refundOf('FAILED')] })).step).toEqual({ next: 'OWED' });
});

test('a payment that a person refunded is not refunded again when its dispute is won', async () => {
  const seen = { refunds: [refundOf('FAILED')], disputes: [disputeOf('WON')] };
  expect((await reversed('REFUNDED', seen, refundedByHand)).step).toEqual({ waitSeconds: null });
});

test('if the claim can no longer be extended, the money is released instead of captured', async () => {
  const { step, calls } = await authorised('CLAIMED', {}, 'order_cancelled');
  expect(step).toEqual({ next: 'VOIDING', change: { reason: 'order_cancelled' } });
  expect(calls).toEqual([extension]);
});
