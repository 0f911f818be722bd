import type { EventType } from '@order-gateway/domain/events';
import type { OrderStatus, RefusalCode } from '@order-gateway/domain/orders';
import {
  areStored,
  isOwedUntilReturned,
  mayBecome,
  type Reversal,
  type ReversalRequest,
  reversalEventsOf,
  reversalText,
  reversed,
  type StoredReversal,
} from './reversals.ts';

/**
 * What the gateway promises about one order, as a sequential specification: the effect and the response of each call if
 * the calls were made one after the other. The search in `search.ts` decides whether overlapping calls behaved as if
 * they had been made that way. The model shares types with the domain but none of its code, because it checks that
 * code.
 */

/** A payment as a checkout system reports it. The two ids together identify it. */
export interface Payment {
  readonly checkout: string;
  readonly paymentId: string;
  /** Milliseconds since 1970, like all times of the store. */
  readonly paidAtMs: number;
  readonly amount: string;
  readonly currency: string;
}

/** A payment that did not pay the order, and the reason. */
export interface RefusedPayment extends Payment {
  readonly code: RefusalCode;
}

/**
 * A requested operation. `attempt` names a checkout system and its attempt_id. Two creations request the same order if
 * their `content` is equal and the later one sends the same expiry or none.
 */
export type Request =
  | { readonly kind: 'create'; readonly content: string; readonly expiresAtMs?: number | null }
  | { readonly kind: 'read' }
  | PayRequest
  | { readonly kind: 'cancel' }
  | { readonly kind: 'start'; readonly attempt: string; readonly leaseMs: number }
  | { readonly kind: 'end'; readonly attempt: string }
  /** Makes a test order expire early. */
  | { readonly kind: 'expire' }
  | ReversalRequest;

/** The report of a payment. The merchant reports a manual one itself. `lateDays` is 1 by default. */
export interface PayRequest {
  readonly kind: 'pay';
  readonly payment: Payment;
  readonly attempt?: string | undefined;
  readonly isManual?: boolean;
  /** For how many days after the expiry the account can report a payment that was made before the expiry. */
  readonly lateDays?: number;
}

/** The values of the order that a response contains. */
export interface Shown {
  readonly status: OrderStatus;
  /** The service_order_id, token and creation time, which never change. */
  readonly identity?: string;
  /** The payment_id of the payment that paid the order, or `null` if there is none. */
  readonly paymentId?: string | null;
  readonly refusedIds?: readonly string[];
  /** The refunds and disputes, as `reversalText` describes them, in alphabetical order. */
  readonly reversals?: readonly string[];
}

/** A response. `outcome` is `created`, `replayed`, `ok`, or the code of an error. */
export interface Response {
  readonly outcome: string;
  readonly shown?: Shown | undefined;
  readonly leaseEndsAtMs?: number | undefined;
  /** The refund or dispute that the call is about, as `reversalText` describes it. */
  readonly reversal?: string | undefined;
}

/** A period on the store's clock. */
export interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * A call, and its response if it is known. A call without a known response may or may not have taken effect.
 */
export interface Call {
  readonly request: Request;
  /** Positions in real time: a call precedes another if its response arrived before the other was sent. */
  readonly sentAt: number;
  /** Infinite if the call may take effect at any later time, or never. */
  readonly receivedAt: number;
  /** The period in which it took effect, if it did. */
  readonly during: Period;
  readonly response: Response | undefined;
  /** The index of a call in the history that must take effect before this one. */
  readonly after?: number;
}

/** An order in the store after all calls, with its events in order. */
export interface StoredOrder {
  readonly identity: string;
  /** The merchant's account. */
  readonly merchant: string;
  readonly content: string;
  readonly amount: string;
  readonly currency: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly status: OrderStatus;
  readonly payment: Omit<Payment, 'amount' | 'currency'> | null;
  readonly lease: { readonly attempt: string; readonly endsAtMs: number } | null;
  /** With the time at which each was completely refunded; `null` while some of it is owed. */
  readonly refused: readonly (RefusedPayment & { readonly refundedAtMs: number | null })[];
  readonly reversals: readonly StoredReversal[];
  readonly events: readonly { readonly type: EventType; readonly atMs: number }[];
}

/** Everything known about an order. `stored` is `null` if the store has no such order. */
export interface History {
  readonly calls: readonly Call[];
  readonly stored: StoredOrder | null;
}

/** An order between two calls. `content` is `null` before its creation. */
export interface State {
  readonly content: string | null;
  readonly status: OrderStatus;
  readonly expiresAtMs: number | null;
  readonly payment: Payment | null;
  /** The latest lease. Its end is known only as a period unless a response named it. */
  readonly lease: { readonly attempt: string; readonly endsAt: Period; readonly isLive: boolean } | null;
  /** The attempts that ended. They can't claim the order again. */
  readonly ended: readonly string[];
  readonly refused: readonly RefusedPayment[];
  readonly reversals: readonly Reversal[];
  /** The events of state changes. Refused payments, refunds and disputes have events too, which are not listed here. */
  readonly events: readonly EventType[];
}

/** The state before the creation of the order. */
export const noOrder: State = {
  content: null,
  status: 'UN_PAID',
  expiresAtMs: null,
  payment: null,
  lease: null,
  ended: [],
  refused: [],
  reversals: [],
  events: [],
};

const dayMs = 86_400_000;

/** A new order expires at least a minute after its creation. */
const shortestLifetimeMs = 60_000;

/**
 * How far clocks may differ: 5 minutes. A payment's time may be this long before the creation of its order, or this far
 * in the future.
 */
const clockDifferenceMaxMs = 300_000;

/** One way in which a call can end. */
interface Ending {
  readonly state: State;
  readonly outcome: string;
  readonly leaseEndsAt?: Period;
  readonly reversal?: Reversal | undefined;
}

/**
 * Returns every state that can follow a call, given the state before it and its response. Returns no state if the
 * response contradicts the state.
 */
export function statesAfter(before: State, call: Call, stored: StoredOrder | null): State[] {
  // A command of an operator stores no expiry, so it may find an order as it was before its expiry.
  const during = call.request.kind === 'fail refund' ? { ...call.during, fromMs: 0 } : call.during;
  return overTime(before, during, stored).flatMap((state) =>
    endings(state, call, stored).flatMap((ending) =>
      agrees(ending, call, stored) ? [withLeaseEnd(ending, call)] : [],
    ),
  );
}

/**
 * Returns the calls as steps, each of which takes effect at one moment. An operation with two steps becomes two calls:
 * ending a payment changes the order and then reads it, and reporting a refused payment stores it and then ends its
 * attempt's lease. An early expiry becomes two calls too, because a payment can take effect between its steps.
 */
export function stepsOf(calls: readonly Call[]): Call[] {
  const steps: Call[] = [];
  for (const call of calls) {
    const { request, response } = call;
    const isEnd = request.kind === 'end' && (response?.outcome === 'ok' || response?.outcome === 'replayed');
    const isRefused = request.kind === 'pay' && (response === undefined || refusalCodes.has(response.outcome));
    if (request.kind === 'expire' && response !== undefined) {
      steps.push({ ...call, receivedAt: Number.POSITIVE_INFINITY, response: undefined });
    }
    steps.push(isEnd ? { ...call, response: { outcome: response.outcome } } : call);
    const after = steps.length - 1;
    if (isEnd) steps.push({ ...call, request: { kind: 'read' }, response: { ...response, outcome: 'ok' }, after });
    if (isRefused && request.attempt !== undefined) {
      steps.push({ ...call, request: { kind: 'end', attempt: request.attempt }, response: undefined, after });
    }
  }
  return steps;
}

const refusalCodes = new Set<string>([
  'order_already_paid',
  'order_cancelled',
  'order_expired',
  'payment_mismatch',
] satisfies RefusalCode[]);

/** Whether the store contains exactly what this state can become as time passes. */
export function isFinal(last: State, stored: StoredOrder | null): boolean {
  if (stored === null) return last.content === null;
  const changes = changeEventsOf(stored);
  const otherEvents = stored.events.filter((event) => !changes.includes(event)).map(({ type }) => type);
  const refusedEvents = stored.refused.map(() => 'order.payment_refused' as const);
  if (String(otherEvents.sort()) !== String([...refusedEvents, ...reversalEventsOf(last.reversals)].sort()))
    return false;
  if (!stored.refused.every((refused) => isOwedUntilReturned(refused, stored.reversals))) return false;
  return overTime(last, { fromMs: 0, toMs: Number.POSITIVE_INFINITY }, stored).some(
    ({ content, status, payment, lease, refused, reversals, events }) =>
      content === stored.content &&
      status === stored.status &&
      payment?.checkout === stored.payment?.checkout &&
      payment?.paymentId === stored.payment?.paymentId &&
      payment?.paidAtMs === stored.payment?.paidAtMs &&
      refused.length === stored.refused.length &&
      areStored(reversals, stored.reversals) &&
      events.length === changes.length &&
      lease?.attempt === stored.lease?.attempt &&
      (lease === null || contains(lease.endsAt, stored.lease?.endsAtMs)),
  );
}

/**
 * Returns the states that this state can have become by the passage of time alone, which may include itself: a lease
 * ends, or an unpaid order expires and gets an event.
 */
function overTime(state: State, { fromMs, toMs }: Period, stored: StoredOrder | null): State[] {
  const { status, lease } = state;
  if (state.content === null || stored === null) return [state];
  const states: State[] = [];
  const expiry = expiryOf(state);
  const mustHaveEnded = lease?.isLive === true && fromMs >= lease.endsAt.toMs;
  const mustHaveExpired = status === 'UN_PAID' && fromMs >= expiry.toMs;
  if (!mustHaveEnded && !mustHaveExpired) states.push(state);
  const event = nextChangeEvent(state, stored);
  if (status === 'UN_PAID' && event?.type === 'order.expired' && event.atMs >= expiry.fromMs && event.atMs <= toMs) {
    states.push(changed({ ...state, lease: lease && { ...lease, isLive: false } }, 'EXPIRED', 'order.expired'));
  }
  if (lease?.isLive === true && toMs >= lease.endsAt.fromMs) {
    const ended = { ...state, lease: { ...lease, isLive: false } };
    if (!mustHaveExpired) states.push(ended);
  }
  return states;
}

/** Returns when an unpaid order expires: at its expiry, but not before its latest lease ends. */
function expiryOf({ expiresAtMs, lease }: State): Period {
  const expiresAt = expiresAtMs ?? Number.POSITIVE_INFINITY;
  const { fromMs, toMs } = lease?.endsAt ?? { fromMs: 0, toMs: 0 };
  return { fromMs: Math.max(expiresAt, fromMs), toMs: Math.max(expiresAt, toMs) };
}

/** Returns how a call that finds this state can end if nothing else happens at the same time. */
function endings(state: State, { request, during }: Call, stored: StoredOrder | null): Ending[] {
  const { content, status, lease, ended } = state;
  if (request.kind === 'create') {
    // The expiry is compared only if it is sent.
    const isSame = content === request.content && (request.expiresAtMs ?? state.expiresAtMs) === state.expiresAtMs;
    if (content !== null) return [{ state, outcome: isSame ? 'replayed' : 'order_id_conflict' }];
    const { expiresAtMs = stored?.expiresAtMs ?? null } = request;
    const created = { state: { ...state, content: request.content, expiresAtMs }, outcome: 'created' };
    // The gateway's own clock decides whether there is enough time left.
    const latestMs = during.toMs + clockDifferenceMaxMs;
    const mayBeTooLate = typeof request.expiresAtMs === 'number' && request.expiresAtMs < latestMs + shortestLifetimeMs;
    return mayBeTooLate ? [created, { state, outcome: 'invalid_order' }] : [created];
  }
  if (content === null || stored === null) return [{ state, outcome: 'not_found' }];
  switch (request.kind) {
    case 'read':
      return [{ state, outcome: 'ok' }];
    case 'pay':
      return request.isManual ? paidManually(state, request, during, stored) : paid(state, request, during, stored);
    case 'cancel': {
      if (status === 'CANCELLED') return [{ state, outcome: 'replayed' }];
      if (status !== 'UN_PAID') return [{ state, outcome: closedCodes[status] }];
      if (lease?.isLive === true) return [{ state, outcome: 'payment_in_progress' }];
      return [{ state: changed({ ...state, lease: null, ended: [] }, 'CANCELLED', 'order.cancelled'), outcome: 'ok' }];
    }
    case 'start': {
      const { attempt, leaseMs } = request;
      if (status !== 'UN_PAID') return [{ state, outcome: closedCodes[status] }];
      if (ended.includes(attempt)) return [{ state, outcome: 'payment_attempt_ended' }];
      if (lease?.isLive === true && lease.attempt !== attempt) return [{ state, outcome: 'payment_in_progress' }];
      // Times are rounded down to whole milliseconds. A lease is never shortened.
      const endsAt = {
        fromMs: Math.max(during.fromMs + leaseMs, lease?.endsAt.fromMs ?? 0),
        toMs: Math.max(during.toMs + leaseMs, lease?.endsAt.toMs ?? 0),
      };
      return [{ state: { ...state, lease: { attempt, endsAt, isLive: true } }, outcome: 'ok', leaseEndsAt: endsAt }];
    }
    case 'end': {
      const { attempt } = request;
      if (status !== 'UN_PAID' || lease?.attempt !== attempt || ended.includes(attempt)) {
        return [{ state, outcome: 'replayed' }];
      }
      const after = { ...state, ended: [...ended, attempt] };
      if (!lease.isLive) return [{ state: after, outcome: 'replayed' }];
      return [{ state: { ...after, lease: { ...lease, endsAt: during, isLive: false } }, outcome: 'ok' }];
    }
    case 'expire': {
      if (status !== 'UN_PAID') return [{ state, outcome: status === 'EXPIRED' ? 'ok' : closedCodes[status] }];
      if (lease?.isLive === true) return [{ state, outcome: 'payment_in_progress' }];
      const expired = changed({ ...state, expiresAtMs: stored.expiresAtMs }, 'EXPIRED', 'order.expired');
      return [{ state: expired, outcome: 'ok' }];
    }
    default: {
      const { merchant, amount, currency } = stored;
      const { reversals, outcome, shown } = reversed({ ...state, merchant, amount, currency }, request);
      const after = reversals === state.reversals ? state : { ...state, reversals };
      return [{ state: after, outcome, reversal: shown }];
    }
  }
}

/** The outcome of a call that requires an unpaid order, by the order's status. */
const closedCodes = { PAID: 'order_already_paid', CANCELLED: 'order_cancelled', EXPIRED: 'order_expired' } as const;

/**
 * Returns how the report of a payment can end. One payment pays the order. Every other payment whose time is in range
 * is stored as refused and gets an event. A payment that is reported again gets the same response.
 */
function paid(
  state: State,
  { payment, lateDays = 1 }: PayRequest,
  { fromMs, toMs }: Period,
  stored: StoredOrder,
): Ending[] {
  const { status } = state;
  const lateReportMaxMs = lateDays * dayMs;
  const isReported = ({ checkout, paymentId }: Payment) =>
    checkout === payment.checkout && paymentId === payment.paymentId;
  const reported = state.payment && isReported(state.payment) ? state.payment : state.refused.find(isReported);
  if (reported !== undefined) {
    const isSame = (['paidAtMs', 'amount', 'currency'] as const).every((name) => reported[name] === payment[name]);
    if (!isSame) return [{ state, outcome: 'payment_id_conflict' }];
    return [{ state, outcome: 'code' in reported ? (reported as RefusedPayment).code : 'replayed' }];
  }
  const { paidAtMs, amount, currency } = payment;
  const isTooEarly = paidAtMs < stored.createdAtMs - clockDifferenceMaxMs;
  if (isTooEarly || paidAtMs > toMs + clockDifferenceMaxMs) return [{ state, outcome: 'invalid_request' }];
  const maybeFuture: Ending[] = paidAtMs > fromMs + clockDifferenceMaxMs ? [{ state, outcome: 'invalid_request' }] : [];
  const refusedWith = (code: RefusalCode): Ending => {
    const refused = { ...payment, code };
    return { state: { ...state, refused: [...state.refused, refused] }, outcome: code };
  };
  if (status === 'PAID' || status === 'CANCELLED') return [...maybeFuture, refusedWith(closedCodes[status])];
  const expiry = expiryOf(state);
  const mayBeInTime = paidAtMs < expiry.toMs && (status === 'UN_PAID' || fromMs <= expiry.toMs + lateReportMaxMs);
  const mayBeLate = paidAtMs >= expiry.fromMs || (status === 'EXPIRED' && toMs > expiry.fromMs + lateReportMaxMs);
  const isExact = amount === stored.amount && currency === stored.currency;
  const inTime = isExact
    ? { state: changed({ ...state, payment, lease: null, ended: [] }, 'PAID', 'order.paid'), outcome: 'ok' }
    : refusedWith('payment_mismatch');
  return [...maybeFuture, ...(mayBeInTime ? [inTime] : []), ...(mayBeLate ? [refusedWith('order_expired')] : [])];
}

/**
 * A payment that the merchant reports has the amount of the order, waits for the end of a lease, and is never stored as
 * refused.
 */
function paidManually(state: State, request: PayRequest, during: Period, stored: StoredOrder): Ending[] {
  const { amount, currency } = stored;
  const payment = { ...request.payment, amount, currency };
  return paid(state, { ...request, payment }, during, stored).map((ending) => {
    const waits = ending.outcome === 'ok' && state.lease?.isLive === true;
    if (waits) return { state, outcome: 'payment_in_progress' };
    return ending.state.refused.length > state.refused.length ? { state, outcome: ending.outcome } : ending;
  });
}

function changed(state: State, status: OrderStatus, event: EventType): State {
  return { ...state, status, events: [...state.events, event] };
}

/** Returns the event of the next state change in the store. */
function nextChangeEvent({ events }: State, stored: StoredOrder) {
  return changeEventsOf(stored)[events.length];
}

/** Returns the events of state changes in the store. */
function changeEventsOf({ events }: StoredOrder): StoredOrder['events'] {
  return events.filter(({ type }) => changeEvents.has(type));
}

const changeEvents = new Set<EventType>(['order.paid', 'order.expired', 'order.cancelled']);

/**
 * Whether an ending matches the call's response, and the store has all of its events, refused payments,
 * refunds and disputes.
 */
function agrees({ state, outcome, leaseEndsAt, reversal }: Ending, call: Call, stored: StoredOrder | null): boolean {
  const { response } = call;
  if (stored !== null) {
    const changes = changeEventsOf(stored);
    if (!mayBecome(state.reversals, stored.reversals)) return false;
    if (state.events.some((type, index) => changes[index]?.type !== type)) return false;
    if (state.refused.some((refused, index) => !isSameRefusal(refused, stored.refused[index]))) return false;
  }
  if (response === undefined) return true;
  if (response.outcome !== outcome) return false;
  const { shown, leaseEndsAtMs, reversal: shownReversal } = response;
  if (shownReversal !== undefined && shownReversal !== (reversal && reversalText(reversal))) return false;
  if (leaseEndsAtMs !== undefined && !contains(leaseEndsAt, leaseEndsAtMs)) return false;
  if (shown === undefined) return true;
  const { status, identity, paymentId, refusedIds, reversals } = shown;
  return (
    status === state.status &&
    (identity === undefined || identity === stored?.identity) &&
    (paymentId === undefined || paymentId === (state.payment?.paymentId ?? null)) &&
    (refusedIds === undefined || showsRefused(refusedIds, state, call, stored)) &&
    (reversals === undefined || String(reversals) === String(state.reversals.map(reversalText).sort()))
  );
}

/**
 * Whether a response shows the refused payments of the order. A cancellation reads them before it changes the order, so
 * its response may lack payments that were refused after it was sent.
 */
function showsRefused(
  refusedIds: readonly string[],
  { refused }: State,
  { request, during }: Call,
  stored: StoredOrder | null,
): boolean {
  const ids = refused.map(({ paymentId }) => paymentId);
  const refusedEvents = stored?.events.filter(({ type }) => type === 'order.payment_refused') ?? [];
  const missing = refusedEvents.slice(refusedIds.length, ids.length);
  const mayLack = request.kind === 'cancel' && missing.every(({ atMs }) => atMs >= during.fromMs);
  return String(refusedIds) === String(mayLack ? ids.slice(0, refusedIds.length) : ids);
}

/** Returns the state with the end of its lease, which only the response reveals. */
function withLeaseEnd({ state }: Ending, { response }: Call): State {
  const { lease } = state;
  const endsAtMs = response?.leaseEndsAtMs;
  if (lease === null || endsAtMs === undefined) return state;
  return { ...state, lease: { ...lease, endsAt: { fromMs: endsAtMs, toMs: endsAtMs } } };
}

function isSameRefusal(refused: RefusedPayment, stored: RefusedPayment | undefined): boolean {
  return (['checkout', 'paymentId', 'paidAtMs', 'amount', 'currency', 'code'] as const).every(
    (name) => refused[name] === stored?.[name],
  );
}

function contains(period: Period | undefined, ms: number | undefined): boolean {
  return period !== undefined && ms !== undefined && ms >= period.fromMs && ms <= period.toMs;
}
