import type { AccountId } from '../accounts/account.ts';
import type { Failure } from '../failure.ts';
import type { AmountHundredths } from '../money/money.ts';
import { checkPrecision, errorsIn } from '../requests/check-field.ts';
import { failed, type Result, success } from '../result.ts';
import type { Dispute, DisputeStatus, Order, PaymentIdentity, Refund, RefundStatus, RefusedPayment } from './order.ts';
import { type EventType, type ReversalChange, type ReversalDecision, reportedRangeError } from './order-states.ts';
import { isOfPayment, isSameDispute, refundableHundredths, refundedAtOf, refundNamed, statusOf } from './reversals.ts';

/** A refund that a merchant requests. */
export interface RequestedRefund {
  readonly refundId: string;
  /** Absent: all that can be refunded. */
  readonly amount: AmountHundredths | undefined;
  readonly note: string | undefined;
}

/** A refund as a checkout system reports it, because it made the refund or found it at its provider. */
export interface ReportedRefund extends Pick<Refund, 'amount' | 'paymentId'> {
  readonly checkoutId: AccountId;
  /** The merchant's refund; `null` for a refund that was made at the provider. */
  readonly refundId: string | null;
  /** Required unless the merchant's refund failed. */
  readonly providerRefundId: string | null;
  readonly status: RefundStatus;
  readonly reason: string | null;
  /** `null`: now, if it succeeded. */
  readonly refundedAtMs: number | null;
}

/** A dispute as a checkout system reports it. */
export interface ReportedDispute extends Pick<Dispute, 'amount' | 'currency' | 'disputeId' | 'paymentId'> {
  readonly checkoutId: AccountId;
  readonly status: DisputeStatus;
  readonly reason: string | null;
}

/** The result of a decision on a refund or dispute: a change, or a replay of an earlier one. */
export type ReversalOutcome = Result<ReversalDecision | { readonly kind: 'replayed' }, Failure>;

/** The maximum number of refunds that a merchant can request for an order. They are stored together with it. */
export const refundsMax = 100;

/**
 * The notes by which a refund of a simulated payment ends differently, so that merchants can see how refunds fail.
 * Every other note, or none, makes it succeed.
 */
const simulatedRefunds: ReadonlyMap<string, readonly RefundStatus[]> = new Map([
  ['fail', ['FAILED']],
  ['fail later', ['SUCCEEDED', 'FAILED']],
]);

const eventOfRefund = { PENDING: undefined, SUCCEEDED: 'order.refunded', FAILED: 'order.refund_failed' } as const;

const eventOfDispute = {
  INQUIRY: 'order.disputed',
  OPEN: 'order.disputed',
  WON: 'order.dispute_closed',
  LOST: 'order.dispute_closed',
} as const;

/**
 * Decides on a refund that a merchant requests. A checkout system then makes it; a payment that the merchant recorded
 * itself, or that was simulated, is refunded immediately. `makesRefunds` says whether the account of the payment
 * refunds payments.
 */
export function decideRefund(
  order: Order,
  { refundId, amount, note = '' }: RequestedRefund,
  makesRefunds: boolean,
  nowMs: number,
): ReversalOutcome {
  const { merchantId, payment, fields, reversals } = order;
  if (payment === null) return failed({ kind: 'order_not_paid' });
  const existing = refundNamed(order, merchantId, refundId);
  if (existing !== undefined) {
    const isSame = amount === undefined || amount === existing.amount;
    return isSame ? success({ kind: 'replayed' }) : failed({ kind: 'refund_id_conflict' });
  }
  if (!makesRefunds) return failed({ kind: 'refunds_not_supported' });
  const errors = errorsIn({ refund_amount: checkPrecision(amount, fields.order_currency) });
  if (errors.length > 0) return failed({ kind: 'invalid_request', errors });
  const refundable = refundableHundredths(order);
  const own = reversals.refunds.filter(({ reporterId }) => reporterId === merchantId);
  if ((amount ?? 1n) > refundable || own.length >= refundsMax) return failed({ kind: 'refund_exceeds_payment' });
  const { checkoutId, paymentId } = payment;
  const isSimulated = checkoutId === null;
  const statuses: readonly RefundStatus[] = isSimulated
    ? (simulatedRefunds.get(note) ?? ['SUCCEEDED'])
    : [checkoutId === merchantId ? 'SUCCEEDED' : 'PENDING'];
  const fromMs = nextTime(order, nowMs);
  const history = statuses.map((status, index) => ({
    status,
    atMs: fromMs + index,
    reason: status === 'FAILED' ? 'simulated' : null,
  }));
  const refund: Refund = {
    reporterId: merchantId,
    refundId,
    checkoutId,
    paymentId,
    providerRefundId: null,
    amount: amount ?? (refundable as AmountHundredths),
    currency: fields.order_currency,
    history,
    refundedAtMs: statuses.includes('SUCCEEDED') ? fromMs : null,
    note: order.erasedDigest === null ? note || null : null,
  };
  return success(changeTo(order, { refunds: [refund] }));
}

/**
 * Decides on a refund that a checkout system reports. It has been made, so it is stored even if more money went back
 * than was paid. `refused` is the refused payment that it refunds, or `null` for the order's own payment.
 */
export function decideReportedRefund(
  order: Order,
  report: ReportedRefund,
  refused: RefusedPayment | null,
  nowMs: number,
): ReversalOutcome {
  const { checkoutId, paymentId, refundId, providerRefundId, status, amount, reason } = report;
  const currency = currencyOf(order, report, refused);
  if (currency === undefined) return failed({ kind: 'not_found', unknown: 'payment_id' });
  const errors = errorsIn({ amount: checkPrecision(amount, currency) });
  if (errors.length > 0) return failed({ kind: 'invalid_request', errors });
  const rangeError =
    report.refundedAtMs === null
      ? undefined
      : reportedRangeError('refunded_at', report.refundedAtMs, order.createdAtMs, nowMs);
  if (rangeError !== undefined) return failed({ kind: 'invalid_request', errors: [rangeError] });
  const existing = findReported(order, report);
  // A refund that is unknown although it names one of the merchant's, for example after a restored backup, is the
  // merchant's.
  const key =
    refundId === null || refundNamed(order, order.merchantId, refundId) !== undefined
      ? { reporterId: checkoutId, refundId: providerRefundId ?? '' }
      : { reporterId: order.merchantId, refundId };
  // The id is empty if the report names a refund of another payment, and not by the provider's id.
  const isTaken =
    existing === undefined
      ? key.refundId === '' || refundNamed(order, key.reporterId, key.refundId) !== undefined
      : !isRefund(existing, order, report);
  if (isTaken || (existing ?? report).amount !== amount) return failed({ kind: 'refund_id_conflict' });
  const isIdNew = existing?.providerRefundId === null && providerRefundId !== null;
  // A refund that the provider knows fails only by the provider's id.
  const isOutdated = providerRefundId === null && existing !== undefined && existing.providerRefundId !== null;
  const isStatusNew = existing === undefined || (!isOutdated && mayFollow(statusOf(existing).status, status));
  if (!isIdNew && !isStatusNew) return success({ kind: 'replayed' });
  const atMs = nextTime(order, nowMs);
  const known = existing ?? {
    ...key,
    checkoutId,
    paymentId,
    amount,
    currency,
    providerRefundId,
    history: [],
    refundedAtMs: null,
    note: null,
  };
  const refund: Refund = {
    ...known,
    providerRefundId: known.providerRefundId ?? providerRefundId,
    ...(isStatusNew && {
      history: [...known.history, { status, atMs, reason }],
      refundedAtMs: status === 'SUCCEEDED' ? (report.refundedAtMs ?? atMs) : known.refundedAtMs,
    }),
  };
  return success(changeTo(order, { refunds: [refund] }, refused));
}

/**
 * Decides on a dispute that a checkout system reports. Its status never goes back to one before the bank's decision,
 * because an older report can arrive late.
 */
export function decideReportedDispute(
  order: Order,
  { status, reason, ...report }: ReportedDispute,
  refused: RefusedPayment | null,
  nowMs: number,
): ReversalOutcome {
  if (currencyOf(order, report, refused) === undefined) return failed({ kind: 'not_found', unknown: 'payment_id' });
  const existing = order.reversals.disputes.find((dispute) => isSameDispute(dispute, report));
  const current = existing && statusOf(existing).status;
  const isStale = current !== undefined && (current === status || rankOf(status) < rankOf(current));
  if (isStale) return success({ kind: 'replayed' });
  const history = [...(existing?.history ?? []), { status, atMs: nextTime(order, nowMs), reason }];
  return success(changeTo(order, { disputes: [{ ...report, history }] }, refused));
}

/**
 * Decides that a merchant's pending refund fails, because a person ended it. Returns `not_pending` if there is no such
 * refund, and `known_to_provider` if the provider has it and decides whether it succeeds.
 */
export function decideFailure(
  order: Order,
  refundId: string,
  reason: string,
  nowMs: number,
): ReversalDecision | { readonly kind: 'not_pending' | 'known_to_provider' } {
  const refund = refundNamed(order, order.merchantId, refundId);
  if (refund === undefined || statusOf(refund).status !== 'PENDING') return { kind: 'not_pending' };
  if (refund.providerRefundId !== null) return { kind: 'known_to_provider' };
  return changeTo(order, { refunds: [failedRefund(refund, nextTime(order, nowMs), reason)] });
}

/** Returns the currency of the payment that a checkout system refers to; `undefined` if it is none of the order's. */
function currencyOf(
  { payment, fields }: Order,
  reported: PaymentIdentity,
  refused: RefusedPayment | null,
): string | undefined {
  return isOfPayment(reported, payment) ? fields.order_currency : refused?.currency;
}

/**
 * Finds the refund that a checkout system reports, or another one with the provider's id. Once a refund has its
 * provider's id, a report with another id is another refund, even if it names the same refund of the merchant: the
 * money went back twice. A refund that failed here before it had the provider's id is another one too, because it can
 * never succeed.
 */
function findReported({ merchantId, reversals }: Order, report: ReportedRefund): Refund | undefined {
  const { checkoutId, refundId, providerRefundId, status } = report;
  const byProvider = reversals.refunds.find(
    (refund) => refund.checkoutId === checkoutId && refund.providerRefundId === providerRefundId,
  );
  if (providerRefundId !== null && byProvider !== undefined) return byProvider;
  return reversals.refunds.find(
    (refund) =>
      isOfPayment(refund, report) &&
      refund.reporterId === merchantId &&
      refund.refundId === refundId &&
      (providerRefundId === null || refund.providerRefundId === null) &&
      (statusOf(refund).status !== 'FAILED' || status === 'FAILED'),
  );
}

/** Whether a refund with the reported provider's id is the reported one: of the same payment, and of the same name. */
function isRefund(refund: Refund, { merchantId }: Order, report: ReportedRefund): boolean {
  const isNamed = report.refundId === null || refund.reporterId !== merchantId || refund.refundId === report.refundId;
  return isNamed && isOfPayment(refund, report);
}

function mayFollow(current: RefundStatus, next: RefundStatus): boolean {
  return current === 'PENDING' ? next !== 'PENDING' : current === 'SUCCEEDED' && next === 'FAILED';
}

function rankOf(status: DisputeStatus): number {
  return { INQUIRY: 0, OPEN: 1, WON: 2, LOST: 2 }[status];
}

/** Returns a time after all earlier changes of the order, whose times have milliseconds. */
function nextTime({ reversals }: Order, nowMs: number): number {
  const changes = [...reversals.refunds, ...reversals.disputes].map((reversal) => statusOf<unknown>(reversal).atMs);
  // biome-ignore lint/style/noRestrictedGlobals: no randomness
  return Math.max(nowMs, ...changes) + 1;
}

/** Returns the change to an order in which these refunds and disputes are new or have changed. */
function changeTo(
  order: Order,
  changed: { readonly refunds?: readonly Refund[]; readonly disputes?: readonly Dispute[] },
  refused: RefusedPayment | null = null,
): ReversalDecision {
  const { version, refunds, disputes } = order.reversals;
  const isSameRefund = (a: Refund, b: Refund) => a.reporterId === b.reporterId && a.refundId === b.refundId;
  const reversals = {
    version: version + 1,
    refunds: replaced(refunds, changed.refunds ?? [], isSameRefund),
    disputes: replaced(disputes, changed.disputes ?? [], isSameDispute),
  };
  const after = withoutExcess({ ...order, reversals });
  const events = [
    ...eventsOf(after.reversals.refunds, refunds, eventOfRefund, isSameRefund),
    ...eventsOf(after.reversals.disputes, disputes, eventOfDispute, isSameDispute),
  ].toSorted((a, b) => a.atMs - b.atMs);
  const change: ReversalChange = { order: after, events };
  if (refused === null) return { kind: 'reverse', change };
  const { checkoutId, paymentId } = refused;
  const refundedAtMs = refundedAtOf(after, refused);
  return { kind: 'reverse', change: { ...change, refused: { checkoutId, paymentId, refundedAtMs } } };
}

/** Replaces items of a list. Changed and new items come last. */
function replaced<Item>(items: readonly Item[], changed: readonly Item[], isSame: (a: Item, b: Item) => boolean) {
  return [...items.filter((item) => !changed.some((other) => isSame(item, other))), ...changed];
}

/**
 * Fails pending refunds of the order's payment, the latest first, while more money would go back than was paid. A
 * refund with a provider's id stays: the provider decides whether it succeeds.
 */
function withoutExcess(order: Order): Order {
  if (refundableHundredths(order) >= 0n) return order;
  const refund = order.reversals.refunds.findLast(
    (candidate) =>
      isOfPayment(candidate, order.payment) &&
      candidate.providerRefundId === null &&
      statusOf(candidate).status === 'PENDING',
  );
  if (refund === undefined) return order;
  const refunds = [
    ...order.reversals.refunds.filter((other) => other !== refund),
    failedRefund(refund, nextTime(order, 0), 'exceeds_payment'),
  ];
  return withoutExcess({ ...order, reversals: { ...order.reversals, refunds } });
}

function failedRefund(refund: Refund, atMs: number, reason: string): Refund {
  return { ...refund, history: [...refund.history, { status: 'FAILED', atMs, reason }] };
}

/** Returns an event for each status that an item has for the first time. */
function eventsOf<
  Status extends string,
  Item extends { readonly history: readonly { status: Status; atMs: number }[] },
>(
  after: readonly Item[],
  before: readonly Item[],
  typeOf: Readonly<Record<Status, EventType | undefined>>,
  isSame: (a: Item, b: Item) => boolean,
) {
  return after.flatMap((item) => {
    const known = before.find((other) => isSame(item, other))?.history ?? [];
    return item.history.slice(known.length).flatMap(({ status, atMs }) => {
      const type = typeOf[status];
      return type === undefined || known.some((earlier) => earlier.status === status) ? [] : { type, atMs };
    });
  });
}
