import type { Failure } from './failure.ts';
import type { AmountHundredths } from './money.ts';
import type { Order, OrderStatus } from './order.ts';
import { failed, type Result, success } from './result.ts';

/** The types of the events that a change of state causes. */
export const eventTypes = ['order.paid', 'order.expired', 'order.cancelled'] as const;

/** One of {@link eventTypes}. */
export type EventType = (typeof eventTypes)[number];

/** How long after an order's end a payment that was made in time can be reported: 24 hours. */
export const latePaymentMaxMs = 86_400_000;

/** A payment as a checkout system reports it. */
export interface ReportedPayment {
  readonly paymentId: string;
  /** When the customer paid, in milliseconds since 1970-01-01 UTC. */
  readonly paidAtMs: number;
  /** `undefined` for an amount that no order can have. */
  readonly amount: AmountHundredths | undefined;
  readonly currency: string;
}

/** What a client wants to do with an order. Time does the rest: see {@link statusAsOf}. */
export type OrderAction = { readonly kind: 'pay'; readonly payment: ReportedPayment } | { readonly kind: 'cancel' };

/** One line of {@link transitions}. */
export interface Transition {
  readonly from: OrderStatus;
  readonly action: OrderAction['kind'] | 'expire';
  readonly to: OrderStatus;
  readonly event: EventType;
}

/** Every change of state that there is. `PAID` and `CANCELLED` are final. */
export const transitions = {
  pay: { from: 'UN_PAID', action: 'pay', to: 'PAID', event: 'order.paid' },
  /** The customer paid before the end, and the report came after it: what counts is when the customer paid. */
  payLate: { from: 'EXPIRED', action: 'pay', to: 'PAID', event: 'order.paid' },
  cancel: { from: 'UN_PAID', action: 'cancel', to: 'CANCELLED', event: 'order.cancelled' },
  expire: { from: 'UN_PAID', action: 'expire', to: 'EXPIRED', event: 'order.expired' },
} as const satisfies Record<string, Transition>;

/** A change that was decided, to be stored only if the order is still in the state `transition.from`. */
export interface OrderChange {
  readonly transition: (typeof transitions)[Exclude<keyof typeof transitions, 'expire'>];
  /** The order after the change. */
  readonly order: Order;
}

/** The result of a decision: a change, or that it was made before. */
export type Decision = { readonly kind: 'change'; readonly change: OrderChange } | { readonly kind: 'replayed' };

/** The status at a time: an open order is `EXPIRED` from its end on, whether this is stored yet or not. */
export function statusAsOf(stored: OrderStatus, expiresAtMs: number | null, nowMs: number): OrderStatus {
  return stored === 'UN_PAID' && expiresAtMs !== null && expiresAtMs <= nowMs ? 'EXPIRED' : stored;
}

/** The order as it was after the change of an event: an order that was expired may be paid by now. */
export function orderAfter(event: EventType, order: Order): Order {
  return event === transitions.expire.event ? { ...order, orderStatus: transitions.expire.to, payment: null } : order;
}

/** Decides what an action does with an order whose status is as of `nowMs`. */
export function decide(order: Order, action: OrderAction, nowMs: number): Result<Decision, Failure> {
  return action.kind === 'pay' ? decidePayment(order, action.payment, nowMs) : decideCancellation(order, nowMs);
}

function decidePayment(order: Order, payment: ReportedPayment, nowMs: number): Result<Decision, Failure> {
  const { fields, expiresAtMs } = order;
  if (payment.amount !== fields.order_amount || payment.currency !== fields.order_currency) {
    return failed({ kind: 'payment_mismatch' });
  }
  const { paymentId, paidAtMs } = payment;
  const paid = (transition: OrderChange['transition']): Result<Decision, Failure> =>
    success({
      kind: 'change',
      change: { transition, order: { ...order, orderStatus: transition.to, payment: { paymentId, paidAtMs } } },
    });
  const wasPaidInTime = expiresAtMs === null || paidAtMs < expiresAtMs;
  switch (order.orderStatus) {
    case 'UN_PAID':
      return wasPaidInTime ? paid(transitions.pay) : failed({ kind: 'order_expired' });
    case 'EXPIRED': {
      const isReportedInTime = expiresAtMs !== null && nowMs <= expiresAtMs + latePaymentMaxMs;
      return wasPaidInTime && isReportedInTime ? paid(transitions.payLate) : failed({ kind: 'order_expired' });
    }
    case 'PAID':
      return order.payment?.paymentId === paymentId
        ? success({ kind: 'replayed' })
        : failed({ kind: 'order_already_paid' });
    case 'CANCELLED':
      return failed({ kind: 'order_cancelled' });
  }
}

function decideCancellation(order: Order, nowMs: number): Result<Decision, Failure> {
  switch (order.orderStatus) {
    case 'UN_PAID': {
      const transition = transitions.cancel;
      const cancelled = { ...order, orderStatus: transition.to, cancelledAtMs: nowMs };
      return success({ kind: 'change', change: { transition, order: cancelled } });
    }
    case 'CANCELLED':
      return success({ kind: 'replayed' });
    case 'PAID':
      return failed({ kind: 'order_already_paid' });
    case 'EXPIRED':
      return failed({ kind: 'order_expired' });
  }
}
