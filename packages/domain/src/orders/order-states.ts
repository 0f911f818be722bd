import { lateDays } from '../accounts/account.ts';
import type { Failure } from '../failure.ts';
import type { AmountHundredths } from '../money/money.ts';
import type { FieldError } from '../requests/field-rules.ts';
import { failed, type Result, success } from '../result.ts';
import type {
  Order,
  OrderPayment,
  OrderStatus,
  PaymentAttempt,
  PaymentIdentity,
  PaymentLease,
  RefusalCode,
  RefusedPayment,
} from './order.ts';
import { isOfPayment } from './reversals.ts';

/** The types of events: one per state change, one for a refused payment, and those of refunds and disputes. */
export const eventTypes = [
  'order.paid',
  'order.expired',
  'order.cancelled',
  'order.payment_refused',
  'order.refunded',
  'order.refund_failed',
  'order.disputed',
  'order.dispute_closed',
] as const;

/** One of {@link eventTypes}. */
export type EventType = (typeof eventTypes)[number];

const dayMs = 86_400_000;

/** For how many days from now a date of payment can be ahead: banks book a payment of Saturday on Monday. */
const paidOnAheadDays = 4;

/** A payment as a checkout system reports it. */
export interface ReportedPayment extends OrderPayment {
  /**
   * The date of the payment, if no time was reported: `2026-11-20`. Then `paidAtMs` is the beginning of that date in
   * UTC, and the time of the payment follows from it.
   */
  readonly paidOn?: string | undefined;
  /** The date with which this payment was reported before; `null` if there is none. */
  readonly storedPaidOn?: string | null;
  /** For how many days after the order's expiry the account can report a payment that was made in time. */
  readonly lateDays?: number;
  readonly amount: AmountHundredths;
  readonly currency: string;
  /** Whether the checkout system has reported its payment_id before, for any order. */
  readonly isKnown: boolean;
  /** The earlier refused payment of this order with the same payment_id; `null` if there is none. */
  readonly refused: RefusedPayment | null;
}

/** A payment to be stored as refused, but only if the order still has the state that `order` shows. */
export interface PaymentRefusal {
  readonly order: Order;
  readonly payment: Pick<RefusedPayment, 'checkoutId' | 'paymentId' | 'paidAtMs' | 'amount' | 'currency' | 'code'> &
    Pick<ReportedPayment, 'paidOn'>;
}

/** How far the clocks of checkout systems may differ from the gateway's: 5 minutes. */
export const paidAtToleranceMs = 300_000;

/** An action requested by an account. Expiry needs no action: see {@link statusAsOf}. */
export type OrderAction = { readonly kind: 'pay'; readonly payment: ReportedPayment } | { readonly kind: 'cancel' };

/** One entry of {@link transitions}. */
export interface Transition {
  readonly from: OrderStatus;
  readonly to: OrderStatus;
  readonly event: EventType;
}

/** Every possible state change. `PAID` and `CANCELLED` are final. */
export const transitions = {
  pay: { from: 'UN_PAID', to: 'PAID', event: 'order.paid' },
  /** The customer paid before the expiry, but the report arrived after it. The time of the payment decides. */
  payLate: { from: 'EXPIRED', to: 'PAID', event: 'order.paid' },
  cancel: { from: 'UN_PAID', to: 'CANCELLED', event: 'order.cancelled' },
  expire: { from: 'UN_PAID', to: 'EXPIRED', event: 'order.expired' },
} as const satisfies Record<string, Transition>;

/** A change that was decided. It is stored only if the order is still in the state `transition.from`. */
export interface OrderChange {
  readonly transition: (typeof transitions)[Exclude<keyof typeof transitions, 'expire'>];
  /** The order after the change. */
  readonly order: Order;
  /** The date that was reported instead of the time of the payment. */
  readonly paidOn?: string | undefined;
  /** The merchant's note about a payment that it recorded itself. */
  readonly note?: string | undefined;
}

/** A change of an order's refunds and disputes. It is stored only if they still have the previous version. */
export interface ReversalChange {
  /** The order after the change. */
  readonly order: Order;
  /** The events of the change, oldest first. */
  readonly events: readonly { readonly type: EventType; readonly atMs: number }[];
  /**
   * The refused payment that the change may have refunded completely. Absent if the change concerns the order's
   * payment.
   */
  readonly refused?: PaymentIdentity & { readonly refundedAtMs: number | null };
}

/** A decision that changes the refunds and disputes of an order. */
export interface ReversalDecision {
  readonly kind: 'reverse';
  readonly change: ReversalChange;
}

/**
 * The result of a decision: a change, a replay of an earlier change, or a refused payment. The caller gets the code of
 * a refused payment once the payment is stored.
 */
export type Decision =
  | { readonly kind: 'change'; readonly change: OrderChange }
  | { readonly kind: 'replayed' }
  | { readonly kind: 'refuse'; readonly refusal: PaymentRefusal };

/**
 * Returns the time at which an order expires if it stays unpaid. It does not expire before its lease ends. `null`:
 * never.
 */
export function expiryOf({ expiresAtMs, lease }: Pick<Order, 'expiresAtMs' | 'lease'>): number | null {
  return expiresAtMs !== null && lease !== null && lease.endsAtMs > expiresAtMs ? lease.endsAtMs : expiresAtMs;
}

/**
 * Returns the status at a time. An unpaid order is `EXPIRED` once it reaches its expiry, even if the expiry is not
 * stored yet. PostgreSQL applies the same rule by its own clock: see `isExpired` in its schema.
 */
export function statusAsOf(stored: Pick<Order, 'orderStatus' | 'expiresAtMs' | 'lease'>, nowMs: number): OrderStatus {
  const expiryMs = expiryOf(stored);
  return stored.orderStatus === 'UN_PAID' && expiryMs !== null && expiryMs <= nowMs ? 'EXPIRED' : stored.orderStatus;
}

/**
 * Whether an order can still change, given its status at `nowMs`. An expired order can, because a payment made in time
 * can be reported after the expiry.
 */
export function mayChange(order: Order, nowMs: number): boolean {
  return (
    order.orderStatus === 'UN_PAID' || (order.orderStatus === 'EXPIRED' && isReportedInTime(order, lateDays.max, nowMs))
  );
}

/** Whether a payment made before an order expired may still be reported. */
function isReportedInTime(order: Order, days: number, nowMs: number): boolean {
  const untilMs = reportableUntil(order, days);
  return untilMs !== null && nowMs <= untilMs;
}

/**
 * Returns until when a payment made before an order expired can be reported, if it may be reported for `days` after the
 * expiry. `null`: the order never expires.
 */
export function reportableUntil(order: Pick<Order, 'expiresAtMs' | 'lease'>, days: number): number | null {
  const expiryMs = expiryOf(order);
  return expiryMs === null ? null : expiryMs + days * dayMs;
}

/** Decides what an action does with an order, given its status at `nowMs`. */
export function decide(order: Order, action: OrderAction, nowMs: number): Result<Decision, Failure> {
  return action.kind === 'pay' ? decidePayment(order, action.payment, nowMs) : decideCancellation(order, nowMs);
}

/**
 * Returns the failure if an attempt may not claim an order, given its status at `nowMs`. An attempt that holds the
 * lease may extend it. `null` stands for a simulated payment, which holds no lease.
 */
export function startFailure(order: Order, attempt: PaymentAttempt | null, nowMs: number): Failure | undefined {
  if (order.orderStatus !== 'UN_PAID') return { kind: closedCodes[order.orderStatus] };
  if (attempt === null) return inProgress(order, nowMs);
  if (hasEnded(order, attempt)) return { kind: 'payment_attempt_ended' };
  return isHeldBy(order.lease, attempt) ? undefined : inProgress(order, nowMs);
}

/** The code of an action that requires an unpaid order, by the status of any other order. */
const closedCodes = { PAID: 'order_already_paid', CANCELLED: 'order_cancelled', EXPIRED: 'order_expired' } as const;

/** Whether the merchant recorded the order's payment itself. */
export function isManual({ merchantId, payment }: Order): boolean {
  return payment?.checkoutId === merchantId;
}

/** Whether the attempt holds the lease and the lease has not ended. */
export function isHeldBy(lease: PaymentLease | null, attempt: PaymentAttempt): boolean {
  return lease?.isLive === true && isSameAttempt(lease, attempt);
}

/** Whether the two are the same attempt of the same checkout system. */
function isSameAttempt(one: PaymentAttempt, other: PaymentAttempt): boolean {
  return one.checkoutId === other.checkoutId && one.attemptId === other.attemptId;
}

/** Whether an attempt has ended, so that it can't claim the order again. */
export function hasEnded({ endedAttempts }: Order, attempt: PaymentAttempt): boolean {
  return endedAttempts.some((ended) => isSameAttempt(ended, attempt));
}

/**
 * Whether ending an attempt has an effect: it holds the unpaid order, or it was the last to hold it and was not ended.
 */
export function mayBeEnded(order: Order, attempt: PaymentAttempt): boolean {
  const { orderStatus, lease } = order;
  if (orderStatus !== 'UN_PAID' || lease === null || !isSameAttempt(lease, attempt)) return false;
  return lease.isLive || !hasEnded(order, attempt);
}

/** The minimum delay, because the clocks of the gateway and the store may differ. */
const retryAfterMinMs = 1_000;

/** The failure of an action that must wait for the end of a payment in progress; `undefined` if there is none. */
export function inProgress({ lease }: Order, nowMs: number): Failure | undefined {
  if (lease?.isLive !== true) return undefined;
  // biome-ignore lint/style/noRestrictedGlobals: no randomness
  return { kind: 'payment_in_progress', retryAfterMs: Math.max(retryAfterMinMs, lease.endsAtMs - nowMs) };
}

function decidePayment(order: Order, payment: ReportedPayment, nowMs: number): Result<Decision, Failure> {
  const { fields, createdAtMs } = order;
  const expiryMs = expiryOf(order);
  const { checkoutId, paymentId, paidOn, amount, currency, refused, lateDays: days = lateDays.byDefault } = payment;
  const isExact = payment.amount === fields.order_amount && payment.currency === fields.order_currency;
  if (order.payment !== null && isOfPayment(payment, order.payment)) {
    return isExact && isSameTime(payment, order.payment)
      ? success({ kind: 'replayed' })
      : failed({ kind: 'payment_id_conflict' });
  }
  if (refused !== null) {
    const isSame = amount === refused.amount && currency === refused.currency && isSameTime(payment, refused);
    return failed({ kind: isSame ? refused.code : 'payment_id_conflict' });
  }
  // Takes precedence over every error that requires a refund, because this payment was reported for another order.
  if (payment.isKnown) return failed({ kind: 'payment_id_conflict' });
  const rangeError = paidRangeError(payment, createdAtMs, nowMs);
  if (rangeError !== undefined) return failed({ kind: 'invalid_request', errors: [rangeError] });
  // A date says nothing about the time of the day. A payment can't be older than its order, nor be in the future.
  const paidAtMs = paidOn === undefined ? payment.paidAtMs : clamp(payment.paidAtMs, createdAtMs, nowMs);
  const date = paidOn === undefined ? {} : { paidOn };
  const refuse = (code: RefusalCode): Result<Decision, Failure> => {
    const refusal = { order, payment: { checkoutId, paymentId, paidAtMs, ...date, amount, currency, code } };
    return success({ kind: 'refuse', refusal });
  };
  const pay = (transition: OrderChange['transition']): Result<Decision, Failure> => {
    if (!isExact) return refuse('payment_mismatch');
    const changed = {
      ...order,
      ...withoutAttempts,
      orderStatus: transition.to,
      payment: { checkoutId, paymentId, paidAtMs },
    };
    return success({ kind: 'change', change: { transition, order: changed, ...date } });
  };
  const wasPaidInTime = expiryMs === null || paidAtMs < expiryMs;
  if (order.orderStatus === 'UN_PAID') return wasPaidInTime ? pay(transitions.pay) : refuse('order_expired');
  const isLate = order.orderStatus === 'EXPIRED' && wasPaidInTime && isReportedInTime(order, days, nowMs);
  return isLate ? pay(transitions.payLate) : refuse(closedCodes[order.orderStatus]);
}

/**
 * Decides on a payment that the merchant recorded itself. It has the amount of the order, waits for the end of a
 * payment in progress, and is never stored as refused, because no money has to be refunded.
 */
export function decideManualPayment(
  order: Order,
  {
    note,
    ...payment
  }: Omit<ReportedPayment, 'amount' | 'currency' | 'lateDays' | 'refused'> & Pick<OrderChange, 'note'>,
  nowMs: number,
): Result<Exclude<Decision, { readonly kind: 'refuse' }>, Failure> {
  const { order_amount: amount, order_currency: currency } = order.fields;
  const reported = { ...payment, amount, currency, lateDays: lateDays.max, refused: null };
  const decided = decidePayment(order, reported, nowMs);
  if (!decided.ok) return decided;
  const decision = decided.value;
  if (decision.kind === 'refuse') return failed({ kind: decision.refusal.payment.code });
  if (decision.kind === 'replayed') return success(decision);
  const failure = inProgress(order, nowMs);
  if (failure !== undefined) return failed(failure);
  const keptNote = order.erasedDigest === null ? note : undefined;
  return success({ kind: 'change', change: { ...decision.change, note: keptNote } });
}

/** Returns the error of a time or date of payment that the order can't have. */
function paidRangeError(
  { paidAtMs, paidOn }: ReportedPayment,
  createdAtMs: number,
  nowMs: number,
): FieldError<'paid_at' | 'paid_on'> | undefined {
  if (paidOn !== undefined) {
    const [earliestMs, latestMs] = [startOfDay(createdAtMs) - dayMs, startOfDay(nowMs) + paidOnAheadDays * dayMs];
    if (paidAtMs >= earliestMs && paidAtMs <= latestMs) return undefined;
    const message = `must be from the day before the creation of the order to ${paidOnAheadDays} days from now`;
    return { field: 'paid_on', code: 'out_of_range', message };
  }
  return reportedRangeError('paid_at', paidAtMs, createdAtMs, nowMs);
}

/** Returns the error of a reported time that lies before the creation of its order, or in the future. */
export function reportedRangeError<Field extends string>(
  field: Field,
  reportedMs: number,
  createdAtMs: number,
  nowMs: number,
): FieldError<Field> | undefined {
  if (reportedMs >= createdAtMs - paidAtToleranceMs && reportedMs <= nowMs + paidAtToleranceMs) return undefined;
  const message =
    'must be at the earliest 5 minutes before the creation of the order and at the latest 5 minutes from now';
  return { field, code: 'out_of_range', message };
}

/** Whether a payment is reported again with the same date, or with the same time if it was reported with one. */
function isSameTime({ paidAtMs, paidOn, storedPaidOn = null }: ReportedPayment, stored: OrderPayment): boolean {
  return (paidOn ?? null) === storedPaidOn && (paidOn !== undefined || paidAtMs === stored.paidAtMs);
}

function startOfDay(ms: number): number {
  return ms - (ms % dayMs);
}

/** Returns the nearest value that is at least `min` and, unless that is less, at most `max`. */
function clamp(value: number, min: number, max: number): number {
  // biome-ignore lint/style/noRestrictedGlobals: no randomness
  return Math.max(min, Math.min(value, max));
}

/** The attempts of an order that has reached a final status. */
const withoutAttempts = { lease: null, endedAttempts: [] } as const;

function decideCancellation(order: Order, nowMs: number): Result<Decision, Failure> {
  if (order.orderStatus === 'CANCELLED') return success({ kind: 'replayed' });
  if (order.orderStatus !== 'UN_PAID') return failed({ kind: closedCodes[order.orderStatus] });
  const failure = inProgress(order, nowMs);
  if (failure !== undefined) return failed(failure);
  const transition = transitions.cancel;
  const cancelled = { ...order, ...withoutAttempts, orderStatus: transition.to, cancelledAtMs: nowMs };
  return success({ kind: 'change', change: { transition, order: cancelled } });
}
