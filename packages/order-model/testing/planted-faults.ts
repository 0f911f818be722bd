import type { Call, History, Payment, Request, Response, StoredOrder } from '../src/model.ts';
import type { Random } from './random.ts';

type Stored = StoredOrder;

/**
 * Turns a history that a correct gateway can produce into one that it cannot produce. Returns `undefined` if the fault
 * does not apply to the history.
 */
export type PlantFault = (history: History & { readonly stored: Stored }, random: Random) => History | undefined;

const gapMs = 10;

/** Adds a call that is sent after all others have ended. Returns `undefined` if one of them may still take effect. */
function append({ calls, stored }: History, request: Request, response: Response): History | undefined {
  if (calls.some(({ receivedAt }) => receivedAt === Infinity)) return undefined;
  const sentAt = Math.max(...calls.map(({ receivedAt }) => receivedAt)) + gapMs;
  const during = clockOf(calls);
  return { calls: [...calls, { request, sentAt, receivedAt: sentAt + 1, during, response }], stored };
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

const isChange = ({ type }: Stored['events'][number]) => type !== 'order.payment_refused';

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
  'a refused payment without its event': (history) =>
    history.stored.events.every(isChange)
      ? undefined
      : withStored(history, { events: history.stored.events.filter(isChange) }),
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
