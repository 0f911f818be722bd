import { expect, it } from 'vitest';
import type { AccountId } from '../../src/accounts/account.ts';
import type { AmountHundredths } from '../../src/money/money.ts';
import type { Order } from '../../src/orders/order.ts';
import type { RefundPosition } from '../../src/orders/order-store.ts';
import {
  decideRefund,
  decideReportedDispute,
  decideReportedRefund,
  type ReportedDispute,
  type ReportedRefund,
} from '../../src/orders/refund-decisions.ts';
import { refundableHundredths, refundedAtOf, refundedHundredths, statusOf } from '../../src/orders/reversals.ts';
import { sampleOrder } from '../sample-orders.ts';
import { checkoutOf, type OrderStoreSteps, paymentOf, timeoutMs } from './order-store-steps.ts';

const hundredths = (amount: number) => BigInt(amount) as AmountHundredths;

/** Tests refunds and disputes. */
export function describeRefunds(steps: OrderStoreSteps): void {
  const { opened, created, newMerchant, find, act, reverse, expectEvents } = steps;

  /** Returns an order of 10.00 that is paid, by default by `p-1`, and steps on it as the operations take them. */
  const paidOrder = async (order_id: string, merchantId?: AccountId, paidBy = 'p-1') => {
    const order = await created(
      sampleOrder(merchantId ?? (await newMerchant()), { order_id, order_amount: 10, order_currency: 'EUR' }),
    );
    expect(await act(order, paymentOf(order, paidBy))).toBe('changed');
    const checkoutId = checkoutOf(order.merchantId);
    return {
      order,
      refund: (refundId: string, amount?: number) =>
        reverse(order, paidBy, (found, _, nowMs) => {
          const requested = {
            refundId,
            amount: amount === undefined ? undefined : hundredths(amount),
            note: undefined,
          };
          return decideRefund(found, requested, true, nowMs);
        }),
      report: (report: Partial<ReportedRefund>, paymentId = 'p-1') =>
        reverse(order, paymentId, (found, refused, nowMs) => {
          const full = { amount: hundredths(1_000), status: 'SUCCEEDED', reason: null, refundedAtMs: nowMs } as const;
          const ids = { checkoutId, paymentId, refundId: null, providerRefundId: null };
          return decideReportedRefund(found, { ...full, ...ids, ...report }, refused, nowMs);
        }),
      dispute: (report: Pick<ReportedDispute, 'status'> & Partial<ReportedDispute>, paymentId = 'p-1') =>
        reverse(order, paymentId, (found, refused, nowMs) => {
          const full = { disputeId: 'd-1', amount: hundredths(1_000), currency: 'EUR', reason: null };
          return decideReportedDispute(found, { checkoutId, paymentId, ...full, ...report }, refused, nowMs);
        }),
      pending: async (after?: RefundPosition, limit = 100) => {
        const listed = await opened().store.listPendingRefunds(checkoutId, { after, limit }, timeoutMs);
        return listed.kind === 'found' ? listed.refunds : listed.kind;
      },
      statuses: async () => {
        const { reversals } = await find(order);
        return reversals.refunds.map((refund) => `${refund.refundId} ${refund.amount} ${statusOf(refund).status}`);
      },
    };
  };

  it('changeReversals stores a refund with its events, and lists it while it is pending', async () => {
    const { order, refund, report, pending, statuses } = await paidOrder('refunded');
    expect(await refund('r-1', 400)).toBe('changed');
    expect(await refund('r-1', 400)).toBe('replayed');
    expect(await refund('r-1', 401)).toBe('refund_id_conflict');
    expect(await refund('r-2', 601)).toBe('refund_exceeds_payment');
    expect(await refund('r-2')).toBe('changed');
    const [first, second] = await pending().then((refunds) => (typeof refunds === 'string' ? [] : refunds));
    expect(first).toMatchObject({
      orderId: 'refunded',
      orderToken: order.orderToken,
      paymentId: 'p-1',
      refundId: 'r-1',
      providerRefundId: null,
      amount: 400n,
      currency: 'EUR',
      serviceOrderId: order.serviceOrderId,
    });
    expect(second).toMatchObject({ refundId: 'r-2', amount: 600n });
    expect(await pending(first, 1)).toStrictEqual([second]);

    const succeeded = { refundId: 'r-1', providerRefundId: 're_1', amount: hundredths(400) };
    expect(await report({ ...succeeded, status: 'PENDING' })).toBe('changed');
    expect(await pending()).toMatchObject([{ providerRefundId: 're_1' }, { providerRefundId: null }]);
    expect(await report(succeeded)).toBe('changed');
    expect(await report(succeeded)).toBe('replayed');
    expect(await report({ refundId: 'r-2', status: 'FAILED', amount: hundredths(600), reason: 'declined' })).toBe(
      'changed',
    );
    expect(await pending()).toStrictEqual([]);
    expect(await statuses()).toStrictEqual(['r-1 400 SUCCEEDED', 'r-2 600 FAILED']);
    expect(refundedHundredths(await find(order))).toBe(400n);
    expect(await report({ ...succeeded, status: 'FAILED', reason: 'returned' })).toBe('changed');
    expect(await report(succeeded)).toBe('replayed');
    expect(await statuses()).toStrictEqual(['r-2 600 FAILED', 'r-1 400 FAILED']);
    await expectEvents(order, [
      ...['order.paid refunded', 'order.refunded refunded', 'order.refund_failed refunded'],
      'order.refund_failed refunded',
    ]);
  });

  it('a list of pending refunds continues after each of them, even if a later order is refunded first', async () => {
    const first = await paidOrder('first');
    const second = await paidOrder('second', first.order.merchantId, 'p-2');
    for (const { refund } of [second, first]) expect(await refund('r-1', 400)).toBe('changed');
    const all = await first.pending();
    if (typeof all === 'string') throw new Error(all);
    expect(all).toHaveLength(2);
    for (const [index, after] of all.entries()) expect(await first.pending(after)).toStrictEqual(all.slice(index + 1));
  });

  it('changeReversals stores refunds that the provider made, and fails pending refunds that no longer fit', async () => {
    const { order, refund, report, dispute, statuses, pending } = await paidOrder('facts');
    expect(await refund('r-1', 300)).toBe('changed');
    expect(await refund('r-2', 300)).toBe('changed');
    // After a refund that was made at the provider, the rest is enough for only one of the two.
    expect(await report({ providerRefundId: 're_1', amount: hundredths(500) })).toBe('changed');
    expect(await statuses()).toStrictEqual(['r-1 300 PENDING', 're_1 500 SUCCEEDED', 'r-2 300 FAILED']);
    expect(await dispute({ status: 'INQUIRY' })).toBe('changed');
    expect(await statuses()).toContain('r-1 300 PENDING');
    expect(await dispute({ status: 'OPEN' })).toBe('changed');
    expect(await dispute({ status: 'OPEN' })).toBe('replayed');
    expect(await pending()).toStrictEqual([]);
    expect(refundableHundredths(await find(order))).toBe(-500n);
    expect(await dispute({ status: 'WON' })).toBe('changed');
    expect(await dispute({ status: 'OPEN' })).toBe('replayed');
    expect(await refund('r-3')).toBe('changed');
    expect(await statuses()).toContain('r-3 500 PENDING');
    // The provider made r-1 although it failed here: the money went back, but a failed refund never succeeds.
    expect(await report({ refundId: 'r-1', providerRefundId: 're_2', amount: hundredths(300) })).toBe('changed');
    expect(await statuses()).toStrictEqual([
      ...['re_1 500 SUCCEEDED', 'r-2 300 FAILED', 'r-1 300 FAILED', 're_2 300 SUCCEEDED', 'r-3 500 FAILED'],
    ]);
    await expectEvents(
      order,
      [
        ...['order.paid', 'order.refunded', 'order.refund_failed', 'order.disputed', 'order.disputed'],
        ...['order.refund_failed', 'order.dispute_closed', 'order.refunded', 'order.refund_failed'],
      ].map((type) => `${type} facts`),
    );
  });

  it('changeReversals stores that a refused payment was refunded, or that its dispute was lost', async () => {
    const { order, report, dispute } = await paidOrder('owed');
    expect(await act(order, paymentOf(order, 'p-2'))).toBe('order_already_paid');
    const refundedAt = async () => {
      const found = await find(order);
      return found.refusedPayments.map((payment) => refundedAtOf(found, payment) !== null);
    };
    expect(await refundedAt()).toStrictEqual([false]);
    expect(await report({ providerRefundId: 're_2', amount: hundredths(400) }, 'p-2')).toBe('changed');
    expect(await refundedAt()).toStrictEqual([false]);
    expect(await report({ providerRefundId: 're_3', amount: hundredths(600) }, 'p-2')).toBe('changed');
    expect(await refundedAt()).toStrictEqual([true]);
    expect(refundableHundredths(await find(order))).toBe(1_000n);
    expect(await act(order, paymentOf(order, 'p-4'))).toBe('order_already_paid');
    for (const [status, isReturned] of [
      ['OPEN', false],
      ['LOST', true],
      ['WON', false],
    ] as const) {
      expect(await dispute({ status }, 'p-4')).toBe('changed');
      expect(await refundedAt()).toStrictEqual([true, isReturned]);
    }
    expect(await report({ providerRefundId: 're_4', amount: hundredths(600) }, 'p-3')).toBe('not_found');
  });

  it('changeReversals stores no failure of a refund of another payment', async () => {
    const { order, refund, report, statuses } = await paidOrder('another-payment');
    expect(await act(order, paymentOf(order, 'p-2'))).toBe('order_already_paid');
    expect(await refund('r-1', 400)).toBe('changed');
    const failure = { refundId: 'r-1', status: 'FAILED', amount: hundredths(400) } as const;
    expect(await report(failure, 'p-2')).toBe('refund_id_conflict');
    expect(await statuses()).toStrictEqual(['r-1 400 PENDING']);
    expect(await report({ ...failure, providerRefundId: 're_1' }, 'p-2')).toBe('changed');
    expect(await statuses()).toStrictEqual(['r-1 400 PENDING', 're_1 400 FAILED']);
  });

  it('no read shows more refunds than the payment while many callers refund one order', async () => {
    const { order, refund, report } = await paidOrder('contended');
    const sums: bigint[] = [];
    const held = (found: Order) => (found.fields.order_amount as bigint) - refundableHundredths(found);
    const call = async (caller: number) => {
      for (let part = 1; part <= 6; part += 1) {
        const [refundId, amount] = [`r-${caller}-${part}`, 37 * caller + 11 * part];
        const outcome = await refund(refundId, amount);
        expect(['changed', 'refund_exceeds_payment']).toContain(outcome);
        if (outcome !== 'changed') continue;
        const status = (caller + part) % 2 === 0 ? ('SUCCEEDED' as const) : ('FAILED' as const);
        const reported = { refundId, providerRefundId: `re-${refundId}`, amount: hundredths(amount), status };
        expect(await report(reported)).toBe('changed');
        expect(await report(reported)).toBe('replayed');
        sums.push(held(await find(order)));
      }
    };
    await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(call));
    // The largest refund is 3.62 of 10.00, so at least two succeed in any order.
    expect(sums.length).toBeGreaterThan(1);
    expect(sums.filter((sum) => sum > 1_000n)).toStrictEqual([]);
    const page = await opened().store.listEvents(order.merchantId, { limit: 100 }, timeoutMs);
    const { reversals } = await find(order);
    // Each refund that ended has one event.
    expect(page.kind === 'found' && page.events).toHaveLength(1 + reversals.refunds.length);
    expect(new Set(reversals.refunds.map(({ refundId }) => refundId)).size).toBe(reversals.refunds.length);
  });
}
