import type { EventType } from '@order-gateway/domain/events';
import type { DisputeStatus, RefundStatus } from '@order-gateway/domain/orders';
import type { Call, History, Payment, Request, Response, StoredOrder } from '../src/model.ts';
import type { StoredReversal } from '../src/reversals.ts';
import type { Random } from './random.ts';

type Stored = StoredOrder;

/**
 * Turns a history that a correct gateway can produce into one that it cannot produce. Returns `undefined` if the fault
 * does not apply to the history.
 */
export type PlantFault = (history: History & { readonly stored: Stored }, random: Random) => History | undefined;

const gapMs = 10;

type Exchange = readonly [Request, Response];

/** Adds a call that is sent after all others have ended. Returns `undefined` if one of them may still take effect. */
function append(history: History, request: Request, response: Response): History | undefined {
  return appendConcurrent(history, [[request, response]]);
}

/** Adds concurrent calls as {@link append} adds one. */
function appendConcurrent({ calls, stored }: History, exchanges: readonly Exchange[]): History | undefined {
  if (calls.some(({ receivedAt }) => receivedAt === Infinity)) return undefined;
  const sentAt = Math.max(...calls.map(({ receivedAt }) => receivedAt)) + gapMs;
  const times = { sentAt, receivedAt: sentAt + 1, during: clockOf(calls) };
  return { calls: [...calls, ...exchanges.map(([request, response]) => ({ ...times, request, response }))], stored };
}

/** Returns the period that covers all calls. */
function clockOf(calls: readonly Call[]) {
  const times = calls.map(({ during }) => during);
  return { fromMs: Math.min(...times.map(({ fromMs }) => fromMs)), toMs: Math.max(...times.map(({ toMs }) => toMs)) };
}

/** Changes the first call for which `isMatch` is true. Returns `undefined` if there is none. */
function alter(history: History, isMatch: (call: Call) => boolean, change: (call: Call) => Partial<Call>) {
  const call = history.calls.find(isMatch);
  if (call === undefined) return undefined;
  return { ...history, calls: history.calls.map((other) => (other === call ? { ...call, ...change(call) } : other)) };
}

function withStored({ calls, stored }: History & { readonly stored: Stored }, changes: Partial<Stored>): History {
  return { calls, stored: { ...stored, ...changes } };
}

const hasOutcome = (kind: Request['kind'], ...outcomes: string[]) => {
  return ({ request, response }: Call) =>
    request.kind === kind && response !== undefined && outcomes.includes(response.outcome);
};

const isChange = ({ type }: Stored['events'][number]) => changeEvents.has(type);
const changeEvents = new Set(['order.paid', 'order.expired', 'order.cancelled']);

/** Returns a payment from a checkout system that has no other payment in the history. */
function anotherPayment({ createdAtMs, amount, currency }: Stored): Payment {
  return { checkout: '9', paymentId: 'p-9', paidAtMs: createdAtMs, amount, currency };
}

/** Every kind of fault that the model must find. */
export const plantedFaults: Readonly<Record<string, PlantFault>> = {
  'a lost order': (history) =>
    history.calls.some(hasOutcome('create', 'created')) ? { ...history, stored: null } : undefined,
  'a lost payment': (history) =>
    history.stored.status === 'PAID' && history.calls.some(hasOutcome('pay', 'ok'))
      ? withStored(history, {
          status: 'UN_PAID',
          payment: null,
          events: history.stored.events.filter((event) => !isChange(event)),
        })
      : undefined,
  'a lost cancellation': (history) =>
    history.stored.status === 'CANCELLED' && history.calls.some(hasOutcome('cancel', 'ok'))
      ? withStored(history, { status: 'UN_PAID', events: history.stored.events.filter((event) => !isChange(event)) })
      : undefined,
  'a different payment in the store': (history) =>
    history.stored.payment === null
      ? undefined
      : withStored(history, { payment: { ...history.stored.payment, checkout: '9' } }),
  'a missing event': (history) => {
    const { events } = history.stored;
    return events.length === 0 ? undefined : withStored(history, { events: events.slice(0, -1) });
  },
  'an additional event': (history, random) => {
    const { events } = history.stored;
    return events.length === 0 ? undefined : withStored(history, { events: [...events, random.pick(events)] });
  },
  'an event of a different type': (history) => {
    const { events } = history.stored;
    if (!events.some(({ type }) => type === 'order.paid')) return undefined;
    return withStored(history, {
      events: events.map((event) => (event.type === 'order.paid' ? { ...event, type: 'order.cancelled' } : event)),
    });
  },
  'a stale read': (history) =>
    history.stored.status === 'PAID' || history.stored.status === 'CANCELLED'
      ? append(history, { kind: 'read' }, { outcome: 'ok', shown: { status: 'UN_PAID', paymentId: null } })
      : undefined,
  'a read that returns a different order': (history) =>
    append(history, { kind: 'read' }, { outcome: 'ok', shown: { status: history.stored.status, identity: '7 token' } }),
  'a read that misses a refused payment': (history) =>
    history.stored.refused.length === 0
      ? undefined
      : append(history, { kind: 'read' }, { outcome: 'ok', shown: { status: history.stored.status, refusedIds: [] } }),
  'an order created twice': (history) =>
    history.calls.some(hasOutcome('create', 'created'))
      ? append(
          history,
          { kind: 'create', content: history.stored.content },
          { outcome: 'created', shown: { status: 'UN_PAID' } },
        )
      : undefined,
  'a replay of a different order': (history) =>
    append(
      history,
      { kind: 'create', content: 'a third note' },
      { outcome: 'replayed', shown: { status: history.stored.status } },
    ),
  'a conflict with the same order': (history) =>
    append(history, { kind: 'create', content: history.stored.content }, { outcome: 'order_id_conflict' }),
  'an order paid by two checkout systems': (history) =>
    history.stored.status === 'PAID'
      ? append(
          history,
          { kind: 'pay', payment: anotherPayment(history.stored) },
          { outcome: 'ok', shown: { status: 'PAID', paymentId: 'p-9' } },
        )
      : undefined,
  'a payment after the cancellation': (history) =>
    history.stored.status === 'CANCELLED'
      ? append(
          history,
          { kind: 'pay', payment: anotherPayment(history.stored) },
          { outcome: 'ok', shown: { status: 'PAID', paymentId: 'p-9' } },
        )
      : undefined,
  'a payment with a different amount': (history) =>
    alter(history, hasOutcome('pay', 'ok'), ({ request }) => ({
      request: request.kind === 'pay' ? { ...request, payment: { ...request.payment, amount: '0.01' } } : request,
    })),
  'a replay of a different payment': (history) => {
    const { payment } = history.stored;
    if (payment === null) return undefined;
    const changed = { ...anotherPayment(history.stored), ...payment, paidAtMs: payment.paidAtMs + 1 };
    return append(history, { kind: 'pay', payment: changed }, { outcome: 'replayed', shown: { status: 'PAID' } });
  },
  'a refused payment that is not stored': (history) =>
    history.stored.status === 'PAID'
      ? append(history, { kind: 'pay', payment: anotherPayment(history.stored) }, { outcome: 'order_already_paid' })
      : undefined,
  'a refused payment without its event': (history) => {
    const others = history.stored.events.filter(({ type }) => type !== 'order.payment_refused');
    return others.length === history.stored.events.length ? undefined : withStored(history, { events: others });
  },
  'a refused payment with a different reason': (history) => {
    const { refused } = history.stored;
    const [first, ...later] = refused;
    if (first === undefined) return undefined;
    const code = first.code === 'order_cancelled' ? 'order_expired' : 'order_cancelled';
    return withStored(history, { refused: [{ ...first, code }, ...later] });
  },
  'an expired order that becomes unpaid again': (history) => {
    if (history.stored.status !== 'EXPIRED') return undefined;
    return append(
      history,
      { kind: 'start', attempt: '9/a', leaseMs: 60_000 },
      { outcome: 'ok', shown: { status: 'UN_PAID' } },
    );
  },
  'an expiry before its time': (history) => {
    const { events, expiresAtMs } = history.stored;
    const mayExpireEarly = history.calls.some(({ request }) => request.kind === 'expire');
    if (mayExpireEarly || expiresAtMs === null || !events.some(({ type }) => type === 'order.expired'))
      return undefined;
    const early = events.map((event) => (event.type === 'order.expired' ? { ...event, atMs: expiresAtMs - 1 } : event));
    return withStored(history, { events: early });
  },
  'a payment made after the expiry': (history) => {
    const { expiresAtMs, lease, status } = history.stored;
    const isStarted = history.calls.some(({ request }) => request.kind === 'start');
    if (expiresAtMs === null || lease !== null || isStarted || status !== 'PAID') return undefined;
    const paidAtMs = Math.max(expiresAtMs, history.stored.createdAtMs);
    const late = withStored(history, {
      payment: history.stored.payment && { ...history.stored.payment, paidAtMs },
    }) as typeof history;
    return alter(late, hasOutcome('pay', 'ok'), ({ request }) => ({
      request: request.kind === 'pay' ? { ...request, payment: { ...request.payment, paidAtMs } } : request,
    }));
  },
  'a lease that a cancellation ignored': (history) => {
    const leased = withLease(history);
    if (leased === undefined) return undefined;
    const cancelled = append(leased, { kind: 'cancel' }, { outcome: 'ok', shown: { status: 'CANCELLED' } });
    const [type, atMs] = ['order.cancelled' as const, Math.max(...history.calls.map(({ during }) => during.fromMs))];
    const events = [...history.stored.events, { type, atMs }];
    return cancelled && { ...cancelled, stored: { ...history.stored, status: 'CANCELLED', lease: null, events } };
  },
  'a lease that another attempt ignored': (history) => {
    const leased = withLease(history);
    if (leased === undefined) return undefined;
    const { stored } = leased;
    const lease = { attempt: '9/a', endsAtMs: (stored?.lease?.endsAtMs ?? 0) + gapMs };
    const response = { outcome: 'ok', leaseEndsAtMs: lease.endsAtMs, shown: { status: 'UN_PAID' as const } };
    const ignored = append(leased, { kind: 'start', attempt: '9/a', leaseMs: 60_000 }, response);
    return ignored && { ...ignored, stored: stored && { ...stored, lease } };
  },
  'a lease that no attempt started': (history) => {
    const isStarted = history.calls.some(({ request }) => request.kind === 'start');
    return isStarted ? undefined : append(history, { kind: 'cancel' }, { outcome: 'payment_in_progress' });
  },
  'a lease on a paid order': ({ calls, stored }) =>
    stored.status === 'PAID'
      ? { calls, stored: { ...stored, lease: { attempt: '2/attempt', endsAtMs: 0 } } }
      : undefined,
  'a refund counted twice': onPaidOrder(({ rest, refund, requested }) => ({
    calls: [[requested('r-1', '1.00', 'created')], [requested('r-2', rest, 'refund_exceeds_payment')]],
    reversals: [refund('r-1', '1.00', ['PENDING'])],
  })),
  'two concurrent refunds above the payment': onPaidOrder(({ all, refund, requested }) => ({
    calls: [[requested('r-1', all, 'created'), requested('r-2', '1.00', 'created')]],
    reversals: [refund('r-1', all, ['PENDING']), refund('r-2', '1.00', ['PENDING'])],
  })),
  'a failed refund that succeeded': onPaidOrder(({ refund, requested, reported }) => ({
    calls: [
      [requested('r-1', '1.00', 'created')],
      [reported('r-1', '1.00', 'FAILED', 'ok')],
      [reported('r-1', '1.00', 'SUCCEEDED', 'ok')],
    ],
    reversals: [refund('r-1', '1.00', ['PENDING', 'FAILED', 'SUCCEEDED'])],
    events: ['order.refund_failed', 'order.refunded'],
  })),
  'an event for a replay of a refund': onPaidOrder(({ refund, requested, reported }) => ({
    calls: [
      [requested('r-1', '1.00', 'created')],
      [reported('r-1', '1.00', 'SUCCEEDED', 'ok')],
      [reported('r-1', '1.00', 'SUCCEEDED', 'replayed')],
    ],
    reversals: [refund('r-1', '1.00', ['PENDING', 'SUCCEEDED'])],
    events: ['order.refunded', 'order.refunded'],
  })),
  'a dispute lost in a race with a refund': onPaidOrder(({ refund, requested, disputed }) => ({
    calls: [[requested('r-1', '1.00', 'created'), disputed('OPEN', 'ok')]],
    reversals: [refund('r-1', '1.00', ['PENDING'])],
  })),
  'a failed refund that keeps its amount': onPaidOrder(({ all, refund, requested, reported }) => ({
    calls: [
      [requested('r-1', all, 'created')],
      [reported('r-1', all, 'FAILED', 'ok')],
      [requested('r-2', '1.00', 'refund_exceeds_payment')],
    ],
    reversals: [refund('r-1', all, ['PENDING', 'FAILED'])],
    events: ['order.refund_failed'],
  })),
  'a refund that does not fit and stays pending': onPaidOrder(({ all, refund, requested, disputed, dispute }) => ({
    calls: [[requested('r-1', all, 'created')], [disputed('LOST', 'ok')]],
    reversals: [refund('r-1', all, ['PENDING']), dispute(['LOST'])],
    events: ['order.dispute_closed'],
  })),
  'a dispute that opened again after its end': onPaidOrder(({ disputed, dispute }) => ({
    calls: [[disputed('WON', 'ok')], [disputed('OPEN', 'ok')]],
    reversals: [dispute(['WON', 'OPEN'])],
    events: ['order.dispute_closed', 'order.disputed'],
  })),
  'a refund stored twice': onPaidOrder(({ refund, requested, reported }) => ({
    calls: [[requested('r-1', '1.00', 'created')], [reported('r-1', '1.00', 'SUCCEEDED', 'ok')]],
    reversals: [refund('r-1', '1.00', ['PENDING', 'SUCCEEDED']), refund('provider-r-1', '1.00', ['SUCCEEDED'])],
    events: ['order.refunded', 'order.refunded'],
  })),
  'a refund whose statuses are in two rows': onPaidOrder(({ refund, requested, reported }) => {
    const stored = refund('r-1', '1.00', ['PENDING', 'SUCCEEDED']);
    return {
      calls: [[requested('r-1', '1.00', 'created')], [reported('r-1', '1.00', 'SUCCEEDED', 'ok')]],
      reversals: stored.statuses.map((status) => ({ ...stored, statuses: [status] })),
      events: ['order.refunded'],
    };
  }),
  'an operator who ended a refund that the provider has': onPaidOrder(({ refund, requested, reported, ended }) => ({
    calls: [[requested('r-1', '1.00', 'created')], [reported('r-1', '1.00', 'PENDING', 'ok')], [ended('r-1')]],
    reversals: [
      { ...refund('r-1', '1.00', ['PENDING', 'FAILED']), providerId: 'provider-r-1', reason: 'ended_by_operator' },
    ],
    events: ['order.refund_failed'],
  })),
  'a refund with another time': onPaidOrder(({ refund, requested, reported }) => ({
    calls: [[requested('r-1', '1.00', 'created')], [reported('r-1', '1.00', 'SUCCEEDED', 'ok')]],
    reversals: [{ ...refund('r-1', '1.00', ['PENDING', 'SUCCEEDED']), refundedAtMs: 0 }],
    events: ['order.refunded'],
  })),
  'a refused payment that counts as refunded although it is owed': ({ calls, stored }) => {
    const owed = stored.refused.find(({ refundedAtMs }) => refundedAtMs === null);
    const refused = stored.refused.map((other) => (other === owed ? { ...other, refundedAtMs: 0 } : other));
    return owed && { calls, stored: { ...stored, refused } };
  },
  'a refused payment that counts as refunded at another time': ({ calls, stored }) => {
    const returned = stored.refused.find(({ refundedAtMs }) => refundedAtMs !== null);
    const refused = stored.refused.map((other) => (other === returned ? { ...other, refundedAtMs: 0 } : other));
    return returned && { calls, stored: { ...stored, refused } };
  },
  'a refused payment that counts as owed although its money went back': ({ calls, stored }) => {
    const returned = stored.refused.find(({ refundedAtMs }) => refundedAtMs !== null);
    const refused = stored.refused.map((other) => (other === returned ? { ...other, refundedAtMs: null } : other));
    return returned && { calls, stored: { ...stored, refused } };
  },
  'a read that misses a refund': onPaidOrder(({ refund, requested }) => ({
    calls: [
      [requested('r-1', '1.00', 'created')],
      [[{ kind: 'read' }, { outcome: 'ok', shown: { status: 'PAID', reversals: [] } }]],
    ],
    reversals: [refund('r-1', '1.00', ['PENDING'])],
  })),
};

/**
 * Returns the history with a payment attempt at its end that gets a lease of one minute. Returns `undefined` unless the
 * order is unpaid, never expires and has no lease, and all calls ended within 50 seconds.
 */
function withLease(history: History & { readonly stored: Stored }): History | undefined {
  const { calls, stored } = history;
  const canBeLeased = stored.status === 'UN_PAID' && stored.expiresAtMs === null && stored.lease === null;
  if (!canBeLeased) return undefined;
  const period = clockOf(calls);
  // A history may last longer than the lease.
  if (period.toMs - period.fromMs > 50_000) return undefined;
  const endsAtMs = period.toMs + 60_000;
  const response = { outcome: 'ok', leaseEndsAtMs: endsAtMs, shown: { status: 'UN_PAID' as const } };
  const leased = append(history, { kind: 'start', attempt: '2/attempt', leaseMs: 60_000 }, response);
  return leased && { ...leased, stored: { ...stored, lease: { attempt: '2/attempt', endsAtMs } } };
}

/**
 * The calls about refunds and disputes of an order, and what is stored after them. Calls in one list are concurrent.
 */
interface PlantedReversals {
  readonly calls: readonly (readonly Exchange[])[];
  readonly reversals: readonly StoredReversal[];
  readonly events?: readonly EventType[];
}

/** Returns a fault of an order that checkout system 2 reported as paid, and that has no refunds and disputes. */
function onPaidOrder(plant: (order: ReturnType<typeof reversalsOf>) => PlantedReversals): PlantFault {
  return (history) => {
    const { stored } = history;
    if (stored.payment?.checkout !== '2' || stored.reversals.length > 0) return undefined;
    const { calls, reversals, events = [] } = plant(reversalsOf(stored, stored.payment.paymentId));
    const added = events.map((type) => ({ type, atMs: 0 }));
    const planted = withStored(history, { reversals, events: [...stored.events, ...added] });
    return calls.reduce<History | undefined>(
      (earlier, exchanges) => earlier && appendConcurrent(earlier, exchanges),
      planted,
    );
  };
}

/** Returns functions that make the calls about a paid order's refunds and disputes, and their stored form. */
function reversalsOf({ merchant, amount, currency }: Stored, paymentId: string) {
  const payment = { checkout: '2', paymentId };
  let lastMs = 0;
  const historyOf = (statuses: readonly StoredReversal['statuses'][number]['status'][]) =>
    statuses.map((status) => {
      lastMs += 1;
      return { status, atMs: lastMs };
    });
  const dispute = { ...payment, amount, currency };
  return {
    all: amount,
    rest: (Number(amount) - 1).toFixed(2),
    refund: (id: string, amount: string, statuses: readonly RefundStatus[]): StoredReversal => {
      const providerId = statuses.length > 1 ? `provider-${id}` : null;
      const item = { ...payment, kind: 'refund', reporter: merchant, id, providerId, amount, currency } as const;
      const history = historyOf(statuses);
      const refundedAtMs = history.find(({ status }) => status === 'SUCCEEDED')?.atMs ?? null;
      return { ...item, reason: null, refundedAtMs, statuses: history };
    },
    dispute: (statuses: readonly DisputeStatus[]): StoredReversal => {
      const item = { ...dispute, kind: 'dispute', reporter: payment.checkout, id: 'd-1', providerId: null } as const;
      return { ...item, reason: null, refundedAtMs: null, statuses: historyOf(statuses) };
    },
    requested: (refundId: string, amount: string, outcome: string): Exchange => [
      { kind: 'refund', refundId, amount },
      { outcome },
    ],
    reported: (refundId: string, amount: string, status: RefundStatus, outcome: string): Exchange => [
      { kind: 'record refund', ...payment, refundId, providerId: `provider-${refundId}`, amount, status },
      { outcome },
    ],
    ended: (refundId: string): Exchange => [{ kind: 'fail refund', refundId }, { outcome: 'ok' }],
    disputed: (status: DisputeStatus, outcome: string): Exchange => [
      { kind: 'record dispute', ...dispute, disputeId: 'd-1', status },
      { outcome },
    ],
  };
}
