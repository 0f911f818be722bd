import type { AccountId } from '../accounts/account.ts';
import type { AmountHundredths } from '../money/money.ts';
import type {
  Dispute,
  DisputeStatus,
  Order,
  PaymentIdentity,
  Refund,
  RefusedPayment,
  Reversal,
  Reversals,
} from './order.ts';

/** Returns the current status of a refund or dispute, when it began, and why. */
export function statusOf<Status>({ history }: Pick<Reversal<Status>, 'history'>) {
  return history.at(-1) as Reversal<Status>['history'][number];
}

/**
 * Returns the refunds and disputes as they were at a time. When the provider's id of a pending refund became known is
 * not stored, so it has none.
 */
export function reversalsAt(reversals: Reversals, atMs: number): Reversals {
  if (reversals.version === 0) return reversals;
  return {
    ...reversals,
    refunds: listAt(reversals.refunds, atMs).map((refund) =>
      statusOf(refund).status === 'PENDING' ? { ...refund, refundedAtMs: null, providerRefundId: null } : refund,
    ),
    disputes: listAt(reversals.disputes, atMs),
  };
}

function listAt<Item extends Reversal<unknown>>(items: readonly Item[], atMs: number): readonly Item[] {
  return items
    .map((item) => ({ ...item, history: item.history.filter((change) => change.atMs <= atMs) }))
    .filter(({ history }) => history.length > 0)
    .toSorted((a, b) => statusOf(a).atMs - statusOf(b).atMs);
}

/** Whether a refund or dispute is of this payment. */
export function isOfPayment({ checkoutId, paymentId }: PaymentIdentity, payment: PaymentIdentity | null): boolean {
  return payment !== null && paymentId === payment.paymentId && checkoutId === payment.checkoutId;
}

type DisputeIdentity = PaymentIdentity & Pick<Dispute, 'disputeId'>;

/** Whether two disputes are the same: of the same payment, with the same id. */
export function isSameDispute(one: DisputeIdentity, other: DisputeIdentity): boolean {
  return isOfPayment(one, other) && one.disputeId === other.disputeId;
}

/** Returns the refund that an account requested or reported under an id. An account has one refund of each id. */
export function refundNamed({ reversals }: Order, reporterId: AccountId, refundId: string): Refund | undefined {
  return reversals.refunds.find((refund) => refund.reporterId === reporterId && refund.refundId === refundId);
}

/** Returns how much of the order's payment was refunded, by refunds that succeeded. */
export function refundedHundredths({ payment, reversals }: Order): bigint {
  return reversals.refunds
    .filter((refund) => isOfPayment(refund, payment) && statusOf(refund).status === 'SUCCEEDED')
    .reduce((sum, { amount }) => sum + amount, 0n);
}

/**
 * Returns how much of the order's payment can still be refunded. Pending refunds, and disputes that are open or lost,
 * hold their amounts. Negative if more money went back than was paid.
 */
export function refundableHundredths({ fields, payment, reversals }: Order): bigint {
  if (payment === null) return 0n;
  const held = [
    ...reversals.refunds.filter((refund) => statusOf(refund).status !== 'FAILED'),
    ...reversals.disputes.filter((dispute) => holdsMoney(statusOf(dispute).status)),
  ].filter((reversal) => isOfPayment(reversal, payment));
  const { order_currency, order_amount } = fields;
  return held.reduce(
    (left, reversal) => left - amountIn(order_currency, order_amount, reversal),
    order_amount as bigint,
  );
}

function holdsMoney(status: DisputeStatus): boolean {
  return status === 'OPEN' || status === 'LOST';
}

/**
 * Returns when the last part of a refused payment went back to the customer, by refunds that succeeded and disputes
 * that were lost; `null` while some of it is still owed.
 */
export function refundedAtOf({ reversals }: Pick<Order, 'reversals'>, payment: RefusedPayment): number | null {
  const returned = [
    ...reversals.refunds.filter((refund) => statusOf(refund).status === 'SUCCEEDED'),
    ...reversals.disputes.filter((dispute) => statusOf(dispute).status === 'LOST'),
  ].filter((reversal) => isOfPayment(reversal, payment));
  const returnedAt = (reversal: Refund | Dispute) =>
    ('refundedAtMs' in reversal ? reversal.refundedAtMs : null) ?? statusOf<unknown>(reversal).atMs;
  let left: bigint = payment.amount;
  for (const reversal of returned.toSorted((a, b) => returnedAt(a) - returnedAt(b))) {
    left -= amountIn(payment.currency, payment.amount, reversal);
    if (left <= 0n) return returnedAt(reversal);
  }
  return null;
}

/** How much a dispute in another currency than the payment takes is unknown, so it counts as all of the payment. */
function amountIn(paid: string, all: AmountHundredths, { amount, currency }: Reversal<unknown>): AmountHundredths {
  return currency === paid ? amount : all;
}

/** Returns the pending refunds of an order that a checkout system has to make, or has made and must watch. */
export function pendingRefundsOf({ merchantId, serviceOrderId, orderToken, fields, reversals }: Order) {
  return reversals.refunds.flatMap((refund) => {
    const { checkoutId, paymentId, reporterId, refundId, providerRefundId, amount, currency, history } = refund;
    const [first] = history;
    if (statusOf(refund).status !== 'PENDING' || checkoutId === null || first === undefined) return [];
    return {
      serviceOrderId,
      orderId: fields.order_id,
      orderToken,
      checkoutId,
      paymentId,
      refundId: reporterId === merchantId ? refundId : null,
      providerRefundId,
      amount,
      currency,
      createdAtMs: first.atMs,
    };
  });
}
