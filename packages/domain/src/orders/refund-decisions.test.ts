import { expect, test } from 'vitest';
import { sampleOrder } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import type { AmountHundredths } from '../money/money.ts';
import type { Order, RefusedPayment } from './order.ts';
import {
  decideFailure,
  decideRefund,
  decideReportedDispute,
  decideReportedRefund,
  type ReportedDispute,
  type ReportedRefund,
  refundsMax,
} from './refund-decisions.ts';
import { refundableHundredths, refundedAtOf, refundedHundredths, reversalsAt, statusOf } from './reversals.ts';

const [merchantId, checkoutId] = [1 as AccountId, 2 as AccountId];
const nowMs = 1_795_300_000_000;
const amountOf = (hundredths: number) => BigInt(hundredths) as AmountHundredths;

/** Returns steps on an order of 10.00 EUR that is paid, by default by a checkout system. */
function paidOrder(payer: AccountId | null = checkoutId) {
  const payment = { checkoutId: payer, paymentId: 'p-1', paidAtMs: nowMs };
  const sample = sampleOrder(merchantId, { order_amount: 10, order_currency: 'EUR' });
  let order: Order = { ...sample, serviceOrderId: 1, createdAtMs: nowMs, orderStatus: 'PAID', payment };
  const events: string[] = [];
  const store = (decided: ReturnType<typeof decideRefund>) => {
    if (!decided.ok) return decided.failure.kind;
    if (decided.value.kind === 'reverse') {
      order = decided.value.change.order;
      events.push(...decided.value.change.events.map(({ type }) => type));
    }
    return decided.value.kind;
  };
  return {
    order: () => order,
    events,
    erase: () => {
      order = { ...order, erasedDigest: new Uint8Array(32) };
    },
    refund: (refundId: string, hundredths?: number, note?: string, makesRefunds = true) => {
      const amount = hundredths === undefined ? undefined : amountOf(hundredths);
      return store(decideRefund(order, { refundId, amount, note }, makesRefunds, nowMs));
    },
    report: (changes: Partial<ReportedRefund>, refused: RefusedPayment | null = null) => {
      const ids = { checkoutId, paymentId: 'p-1', refundId: null, providerRefundId: null };
      const full = { ...ids, amount: amountOf(400), status: 'SUCCEEDED', reason: null, refundedAtMs: null } as const;
      return store(decideReportedRefund(order, { ...full, ...changes }, refused, nowMs));
    },
    dispute: (
      status: ReportedDispute['status'],
      changes: Partial<ReportedDispute> = {},
      refused: RefusedPayment | null = null,
    ) => {
      const full = { checkoutId, paymentId: 'p-1', disputeId: 'd-1', amount: amountOf(400), currency: 'EUR' };
      return store(decideReportedDispute(order, { ...full, reason: null, status, ...changes }, refused, nowMs));
    },
    end: (refundId: string) => {
      const decided = decideFailure(order, refundId, 'ended_by_operator', nowMs);
      return decided.kind === 'reverse' ? store({ ok: true, value: decided }) : decided.kind;
    },
    refunds: () =>
      order.reversals.refunds.map((refund) =>
        [refund.refundId, statusOf(refund).status, statusOf(refund).reason].join(' '),
      ),
  };
}

test('a merchant can request 100 refunds of an order, and the provider can make more', () => {
  const { refund, report } = paidOrder();
  for (let number = 1; number <= refundsMax; number += 1) expect(refund(`r-${number}`, 1)).toBe('reverse');
  expect(refund('r-101', 1)).toBe('refund_exceeds_payment');
  expect(refund('r-1', 1)).toBe('replayed');
  expect(report({ providerRefundId: 're_1' })).toBe('reverse');
});

test('an account that refunds no payments gets no new refund', () => {
  const { refund } = paidOrder();
  expect(refund('r-1', 400)).toBe('reverse');
  expect(['r-1', 'r-2'].map((refundId) => refund(refundId, 400, '', false))).toEqual([
    'replayed',
    'refunds_not_supported',
  ]);
});

test('the note of a refund is stored, unless the customer’s data was erased', () => {
  const { refund, erase, order } = paidOrder();
  refund('r-1', 100, 'Torn');
  refund('r-2', 100);
  erase();
  refund('r-3', 100, 'Torn');
  expect(order().reversals.refunds.map(({ refundId, note }) => [refundId, note])).toEqual([
    ['r-1', 'Torn'],
    ['r-2', null],
    ['r-3', null],
  ]);
});

test('a reported refund that names an unknown refund of the merchant is the merchant’s', () => {
  const { report, order } = paidOrder();
  expect(report({ refundId: 'r-1', providerRefundId: 're_1' })).toBe('reverse');
  expect(report({ providerRefundId: 're_2' })).toBe('reverse');
  expect(order().reversals.refunds).toMatchObject([
    { reporterId: merchantId, refundId: 'r-1' },
    { reporterId: checkoutId, refundId: 're_2' },
  ]);
});

test('a refund that the provider has fails only by the provider’s id, and no operator ends it', () => {
  const { refund, report, end, refunds } = paidOrder();
  refund('r-1', 400);
  expect(report({ refundId: 'r-1', providerRefundId: 're_1', status: 'PENDING' })).toBe('reverse');
  expect(report({ refundId: 'r-1', status: 'FAILED' })).toBe('replayed');
  expect(end('r-1')).toBe('known_to_provider');
  expect(refunds()).toEqual(['r-1 PENDING ']);
  expect(report({ providerRefundId: 're_1', status: 'FAILED', reason: 'closed_account' })).toBe('reverse');
  expect(refunds()).toEqual(['r-1 FAILED closed_account']);
  expect(end('r-1')).toBe('not_pending');
});

test('a report gives no refund the provider’s id of another one', () => {
  const { refund, report, refunds } = paidOrder();
  for (const refundId of ['r-1', 'r-2']) refund(refundId, 400);
  expect(report({ refundId: 'r-1', providerRefundId: 're_1' })).toBe('reverse');
  expect(report({ refundId: 'r-2', providerRefundId: 're_1' })).toBe('refund_id_conflict');
  const payment = { checkoutId, paymentId: 'p-2', paidAtMs: nowMs, amount: amountOf(400), currency: 'EUR' };
  const refused = { ...payment, refusedAtMs: nowMs, code: 'order_already_paid' } as const;
  expect(report({ paymentId: 'p-2', providerRefundId: 're_1' }, refused)).toBe('refund_id_conflict');
  expect(refunds()).toEqual(['r-2 PENDING ', 'r-1 SUCCEEDED ']);
  // A provider's list need not repeat the refund_id.
  expect(report({ providerRefundId: 're_1' })).toBe('replayed');
});

test('a refund shows when it succeeded, even if the bank returned the money, and each event shows what was known by then', () => {
  const { refund, report, order } = paidOrder();
  refund('r-1', 400);
  const succeeded = { refundId: 'r-1', providerRefundId: 're_1', refundedAtMs: nowMs - 7_000 };
  expect(report(succeeded)).toBe('reverse');
  expect(report({ ...succeeded, status: 'FAILED', reason: 'returned' })).toBe('reverse');
  const [{ history = [] } = {}] = order().reversals.refunds;
  const known = history.flatMap(({ atMs }) => reversalsAt(order().reversals, atMs).refunds);
  expect(known.map((each) => [each.refundedAtMs, statusOf(each).reason])).toEqual([
    [null, null],
    [nowMs - 7_000, null],
    [nowMs - 7_000, 'returned'],
  ]);
});

test('an event shows a pending refund in the same way before and after the provider knows it', () => {
  const { refund, report, order } = paidOrder();
  refund('r-1', 400);
  const before = order().reversals;
  expect(report({ refundId: 'r-1', providerRefundId: 're_1', status: 'PENDING' })).toBe('reverse');
  const { reversals } = order();
  expect(reversals.refunds).toEqual(before.refunds.map((each) => ({ ...each, providerRefundId: 're_1' })));
  expect(reversalsAt(reversals, nowMs + 60_000).refunds).toEqual(before.refunds);
});

test('each event shows why its dispute had its status then', () => {
  const { dispute, order } = paidOrder();
  dispute('OPEN', { reason: 'fraudulent' });
  dispute('LOST');
  const [{ history = [] } = {}] = order().reversals.disputes;
  const known = history.flatMap(({ atMs }) => reversalsAt(order().reversals, atMs).disputes);
  expect(known.map(statusOf)).toMatchObject([
    { status: 'OPEN', reason: 'fraudulent' },
    { status: 'LOST', reason: null },
  ]);
});

test('pending refunds that no longer fit fail, the latest first, unless the provider has them', () => {
  const { refund, report, dispute, refunds } = paidOrder();
  for (const refundId of ['r-1', 'r-2', 'r-3']) refund(refundId, 300);
  expect(report({ refundId: 'r-3', providerRefundId: 're_3', amount: amountOf(300), status: 'PENDING' })).toBe(
    'reverse',
  );
  expect(dispute('OPEN')).toBe('reverse');
  expect(refunds()).toEqual(['r-1 PENDING ', 'r-3 PENDING ', 'r-2 FAILED exceeds_payment']);
});

test('a dispute holds its amount while it is open or lost, and has one event per status', () => {
  const { dispute, events, order } = paidOrder();
  const held = (['INQUIRY', 'OPEN', 'WON', 'LOST', 'WON', 'LOST'] as const).map((status) => {
    expect(dispute(status)).toBe('reverse');
    return 1_000n - refundableHundredths(order());
  });
  expect(held).toEqual([0n, 400n, 0n, 400n, 0n, 400n]);
  expect(dispute('OPEN')).toBe('replayed');
  expect(events).toEqual(['order.disputed', 'order.disputed', 'order.dispute_closed', 'order.dispute_closed']);
});

test('two disputes of a payment, and disputes of two payments with the same id, are separate', () => {
  const { dispute, order } = paidOrder();
  expect(dispute('OPEN')).toBe('reverse');
  expect(dispute('LOST', { disputeId: 'd-2', amount: amountOf(100) })).toBe('reverse');
  expect(dispute('WON', refusedIds, refused)).toBe('reverse');
  const seen = order().reversals.disputes.map((each) => [
    each.paymentId,
    each.disputeId,
    ...each.history.map(({ status }) => status),
  ]);
  expect(seen.toSorted()).toEqual([
    ['p-1', 'd-1', 'OPEN'],
    ['p-1', 'd-2', 'LOST'],
    ['p-2', 'd-1', 'WON'],
  ]);
});

test('a dispute in another currency holds the whole payment', () => {
  const { dispute, refund } = paidOrder();
  dispute('OPEN', { amount: amountOf(1), currency: 'USD' });
  expect(refund('r-1', 1)).toBe('refund_exceeds_payment');
});

const refusedIds = { checkoutId, paymentId: 'p-2' };
const refused: RefusedPayment = {
  ...refusedIds,
  paidAtMs: nowMs,
  amount: amountOf(1_000),
  currency: 'JPY',
  refusedAtMs: nowMs,
  code: 'order_already_paid',
};

test('a refused payment is owed until refunds that succeeded cover it, and they are no part of the refunded amount', () => {
  const { report, order } = paidOrder();
  const refund = { ...refusedIds, providerRefundId: 're_1', amount: amountOf(1_000), refundedAtMs: nowMs } as const;
  // The amount has the decimals of the currency of the refused payment.
  expect(report({ ...refund, amount: amountOf(450) }, refused)).toBe('invalid_request');
  const refundedAt = (['PENDING', 'SUCCEEDED', 'FAILED'] as const).map((status) => {
    expect(report({ ...refund, status }, refused)).toBe('reverse');
    return refundedAtOf(order(), refused);
  });
  expect(refundedAt).toEqual([null, nowMs, null]);
  report({ ...refund, providerRefundId: 're_2' }, refused);
  report({ providerRefundId: 're_3', amount: amountOf(300) });
  expect(refundedHundredths(order())).toBe(300n);
  expect(refundableHundredths(order())).toBe(700n);
});

test.each([
  ['the whole amount', { amount: amountOf(1_000), currency: 'JPY' }, []],
  ['an unknown part of it', { amount: amountOf(1), currency: 'EUR' }, []],
  ['what was not refunded', { amount: amountOf(700), currency: 'JPY' }, [300]],
])('a refused payment is not owed while a dispute of %s is lost', (_, disputed, refunds) => {
  const { dispute, report, order } = paidOrder();
  for (const hundredths of refunds)
    report({ ...refusedIds, providerRefundId: 're_1', amount: amountOf(hundredths), refundedAtMs: nowMs }, refused);
  const refundedAt = (['INQUIRY', 'OPEN', 'LOST', 'WON', 'LOST'] as const).map((status) => {
    expect(dispute(status, { ...refusedIds, ...disputed }, refused)).toBe('reverse');
    const { history = [] } = order().reversals.disputes[0] ?? {};
    return refundedAtOf(order(), refused) === history.at(-1)?.atMs;
  });
  expect(refundedAt).toEqual([false, false, true, false, true]);
  expect(refundableHundredths(order())).toBe(1_000n);
});

test('a refused payment is owed if only a part of it was disputed', () => {
  const { dispute, order } = paidOrder();
  dispute('LOST', { ...refusedIds, amount: amountOf(999), currency: 'JPY' }, refused);
  expect(refundedAtOf(order(), refused)).toBeNull();
});

test('a note decides how the refund of a simulated payment ends, and of no other', () => {
  const ends = [null, checkoutId, merchantId].map((payer) => {
    const { refund, refunds } = paidOrder(payer);
    for (const note of ['fail', 'fail later', 'another', 'constructor']) refund(note, 100, note);
    return refunds();
  });
  expect(ends).toEqual([
    ['fail FAILED simulated', 'fail later FAILED simulated', 'another SUCCEEDED ', 'constructor SUCCEEDED '],
    ['fail PENDING ', 'fail later PENDING ', 'another PENDING ', 'constructor PENDING '],
    ['fail SUCCEEDED ', 'fail later SUCCEEDED ', 'another SUCCEEDED ', 'constructor SUCCEEDED '],
  ]);
});
