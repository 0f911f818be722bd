import {
  decide,
  hasEnded,
  mayBeEnded,
  type Order,
  type PaymentAttempt,
  startFailure,
  statusAsOf,
} from '@order-gateway/domain/orders';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import type { SeenDispute } from '../gateway/gateway.ts';
import { type Provider, ProviderError, type Seen, type SeenReversals } from '../providers/provider.ts';
import { decidedStates, unfinishedStates } from '../store/schema.ts';
import type { Attempt, AttemptChange } from '../store/store.ts';
import { type AdvanceDeps, createAdvance } from './advance.ts';

/**
 * Explores what can happen to the attempts of an order: every order of the steps of two processes, the customer, the
 * merchant and the clock, with a bounded number of mishaps. The attempts use the real table and the real `advance.ts`,
 * and the order follows the gateway's own rules; the store, the gateway's calls and the provider are models.
 */
interface World {
  nowMs: number;
  readonly order: ChangingOrder;
  readonly attempts: Attempt[];
  readonly calls: { attemptId: string; purpose: string; key: string; request: object; atMs: number; error?: string }[];
  readonly sessions: Session[];
  /** The work of two processes. */
  readonly workers: (Worker | null)[];
  readonly left: Bounds;
}

type ChangingOrder = {
  -readonly [Member in 'orderStatus' | 'lease' | 'endedAttempts' | 'payment' | 'refusedPayments']: Order[Member];
};

/** A session at the provider. Its payment has the same id. */
interface Session {
  readonly sessionId: string;
  readonly endsAtMs: number;
  /** Whether a customer may have got the address. */
  isKnown: boolean;
  state: 'open' | 'authorised' | 'captured' | 'gone';
  paidAtMs: number;
  refunds: number;
  dispute: SeenDispute['status'] | null;
  /** Whether the list of changes mentions the payment, because its dispute changed. */
  isMentioned: boolean;
  /** The dispute and the number of refunds that the gateway knows. */
  readonly reported: { dispute: SeenDispute['status'] | null; refunds: number };
  wasRefundedInDispute: boolean;
  /** The idempotency keys of calls that had an effect. */
  readonly keys: string[];
}

/** A process that continues an attempt: the results of its calls so far determine what it does next. */
interface Worker {
  readonly attemptId: string;
  /** The customer wants to pay in another way, which starts another attempt afterwards. */
  readonly isUnwanted: boolean;
  readonly results: Result[];
}

type Result = { readonly value: unknown } | { readonly failure: ProviderError['kind']; readonly code: string };

/** How often each mishap happens at most. */
interface Bounds {
  /** Calls that fail, or whose response is lost although they had an effect. */
  failures: number;
  crashes: number;
  /** A process pauses for longer than its lease. */
  pauses: number;
  /** The whole checkout is down for days. */
  outages: number;
  /** Webhooks, and returns of the customer. */
  hints: number;
  /** Changes of disputes by the customer's bank. */
  disputes: number;
  /** How often time passes while a dispute is open. */
  waits: number;
}

interface Scenario {
  /** Whether the money is taken immediately, instead of authorised first. */
  readonly isDirect: boolean;
  readonly attemptsMax: number;
  readonly expiresAfterSeconds: number | null;
  readonly bounds: Bounds;
}

type CallName = keyof typeof handlers;

interface PendingCall {
  readonly name: CallName;
  readonly input: readonly never[];
}

const startMs = Date.UTC(2026, 10, 20, 12);
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const leaseMs = minuteMs;
const keyMs = 23 * 60 * minuteMs;
const outageMs = 6 * dayMs;

/** All attempts end within this time: two outages, and the looks at an ended attempt. */
const endMs = 30 * dayMs;

/** Customers and merchants act within this time, and after an outage. */
const activeMs = 2 * 60 * minuteMs;
const sampled = sampleOrder(1 as Order['merchantId']);
const amount = sampled.fields.order_amount;
const currency = sampled.fields.order_currency;

const holderOf = (attemptId: string): PaymentAttempt => ({
  checkoutId: 2 as PaymentAttempt['checkoutId'],
  attemptId,
});

/** Returns the order as the gateway reads it now. */
function orderOf({ order, nowMs }: World, { expiresAfterSeconds }: Scenario): Order {
  const lease = order.lease && { ...order.lease, isLive: order.lease.endsAtMs > nowMs };
  const expiresAtMs = expiresAfterSeconds === null ? null : startMs + expiresAfterSeconds * 1_000;
  const current = { ...sampled, createdAtMs: startMs, expiresAtMs, ...order, lease };
  return { ...current, orderStatus: statusAsOf(current, nowMs) };
}

const found = <Value>(value: Value | undefined): Value => {
  if (value === undefined) throw new Error('the model has no such attempt, session or value');
  return value;
};

const isUnfinished = ({ state }: Attempt) => unfinishedStates.some((unfinished) => unfinished === state);
const attemptOf = ({ attempts }: World, id: string) => found(attempts.find(({ attemptId }) => attemptId === id));
const sessionOf = ({ sessions }: World, id: string) => found(sessions.find(({ sessionId }) => sessionId === id));
const isLeased = ({ nowMs }: World, { leasedUntil }: Attempt) => leasedUntil !== null && leasedUntil.getTime() > nowMs;
const isPayable = ({ nowMs }: World, { state, endsAtMs }: Session) => state === 'open' && endsAtMs > nowMs;
const refused = (code: string) => new ProviderError('refused', code);

const hasWithdrawn = ({ dispute }: Session) => dispute === 'OPEN' || dispute === 'LOST';

/** Does what a call at the provider does, unless its key was used before. */
function once({ keys }: Session, key: string, effect: () => void): void {
  if (keys.includes(key)) return;
  effect();
  keys.push(key);
}

/** The effects of the calls of `advance.ts`. */
const handlers = {
  lease(world: World, _scenario: Scenario, attemptId: string) {
    const attempt = attemptOf(world, attemptId);
    if (isLeased(world, attempt)) return undefined;
    attempt.leasedUntil = new Date(world.nowMs + leaseMs);
    return { ...attempt, now: new Date(world.nowMs) };
  },
  find: (world: World, _scenario: Scenario, attemptId: string) => attemptOf(world, attemptId),
  change(world: World, _scenario: Scenario, { attemptId, state }: Attempt, change: AttemptChange) {
    const attempt = attemptOf(world, attemptId);
    if (attempt.state !== state) return undefined;
    const changed = { ...attempt, ...change, dueAt: new Date(world.nowMs) };
    const isOnly = world.attempts.every((other) => other.attemptId === attemptId || !isUnfinished(other));
    if (isUnfinished(changed) && !isOnly) return undefined;
    Object.assign(attempt, changed);
    if (attempt.state === 'OPEN' && attempt.sessionId !== null) sessionOf(world, attempt.sessionId).isKnown = true;
    return attempt;
  },
  release(
    world: World,
    _scenario: Scenario,
    { attemptId, leasedUntil }: Attempt,
    { seconds, failed }: { readonly seconds: number | null; readonly failed: boolean },
  ) {
    const attempt = attemptOf(world, attemptId);
    if (attempt.leasedUntil?.getTime() !== leasedUntil?.getTime()) return;
    attempt.leasedUntil = null;
    attempt.dueAt = seconds === null ? null : new Date(world.nowMs + seconds * 1_000);
    attempt.failures = failed ? attempt.failures + 1 : 0;
  },
  prepareCall({ calls, nowMs }: World, _scenario: Scenario, { attemptId }: Attempt, purpose: string, request: object) {
    const last = calls.findLast(
      (call) =>
        call.attemptId === attemptId &&
        call.purpose === purpose &&
        call.error === undefined &&
        call.atMs > nowMs - keyMs,
    );
    if (last !== undefined) return { key: last.key, request: last.request };
    const key = `key_${calls.length}`;
    calls.push({ attemptId, purpose, key, request, atMs: nowMs });
    return { key, request };
  },
  endCall({ calls }: World, _scenario: Scenario, key: string, error: string) {
    found(calls.find((call) => call.key === key)).error = error;
  },

  start(world: World, scenario: Scenario, { attemptId }: Attempt, leaseSeconds: number) {
    const order = orderOf(world, scenario);
    const failure = startFailure(order, holderOf(attemptId), world.nowMs);
    if (failure !== undefined) return { refused: failure.kind };
    const endsAtMs = Math.max(order.lease?.endsAtMs ?? 0, world.nowMs + leaseSeconds * 1_000);
    world.order.lease = { ...holderOf(attemptId), endsAtMs, isLive: true };
    return {};
  },
  end: (world: World, scenario: Scenario, { attemptId }: Attempt) => endClaim(world, scenario, attemptId),
  record(world: World, scenario: Scenario, attempt: Attempt) {
    const order = orderOf(world, scenario);
    const paymentId = attempt.paymentId ?? '';
    const payment = {
      ...holderOf(attempt.attemptId),
      paymentId,
      paidAtMs: found(attempt.paidAt ?? undefined).getTime(),
      amount,
      currency,
      isKnown: false,
      refused: order.refusedPayments.find((known) => known.paymentId === paymentId) ?? null,
    };
    const decision = decide(order, { kind: 'pay', payment }, world.nowMs);
    if (!decision.ok && decision.failure.kind in { payment_id_conflict: 1, invalid_request: 1 })
      throw new ProviderError('unanswered', decision.failure.kind);
    if (!decision.ok) return { refused: decision.failure.kind };
    endClaim(world, scenario, attempt.attemptId);
    if (decision.value.kind === 'replayed') return {};
    if (decision.value.kind === 'refuse') {
      const refusal = decision.value.refusal.payment;
      world.order.refusedPayments = [...order.refusedPayments, { ...refusal, reportedAtMs: world.nowMs } as never];
      return { refused: refusal.code };
    }
    const { orderStatus, lease, endedAttempts, payment: recorded } = decision.value.change.order;
    Object.assign(world.order, { orderStatus, lease, endedAttempts, payment: recorded });
    return {};
  },

  open({ sessions }: World, _scenario: Scenario, { endsAtMs }: { readonly endsAtMs: number }, key: string) {
    let session = sessions.find(({ keys }) => keys.includes(key));
    if (session === undefined) {
      const sessionId = `cs_${sessions.length}`;
      session = {
        sessionId,
        endsAtMs,
        isKnown: false,
        state: 'open',
        paidAtMs: 0,
        refunds: 0,
        keys: [key],
        ...undisputed(),
      };
      sessions.push(session);
    }
    return { sessionId: session.sessionId, sessionUrl: session.sessionId, sessionEndsAt: new Date(session.endsAtMs) };
  },
  look(world: World, _scenario: Scenario, sessionId: string): Seen {
    const session = sessionOf(world, sessionId);
    if (session.state === 'open') return isPayable(world, session) ? { is: 'open' } : { is: 'gone', reason: 'expired' };
    if (session.state === 'gone') return { is: 'gone', reason: 'declined' };
    if (session.refunds > 0) return { is: 'refunded' };
    return { is: session.state, paymentId: sessionId, paidAt: new Date(session.paidAtMs), amount, currency };
  },
  capture(world: World, _scenario: Scenario, { sessionId }: { readonly sessionId: string }, key: string) {
    const session = sessionOf(world, sessionId);
    once(session, key, () => {
      if (session.state !== 'authorised') throw refused('not_authorised');
      session.state = 'captured';
    });
  },
  close(world: World, _scenario: Scenario, request: { readonly sessionId: string; readonly is: string }, key: string) {
    const session = sessionOf(world, request.sessionId);
    once(session, key, () => {
      if (session.state !== request.is || (request.is === 'open' && !isPayable(world, session))) throw refused('state');
      session.state = 'gone';
    });
  },
  reversals(world: World, _scenario: Scenario, { sessionId }: Attempt): SeenReversals {
    const { refunds, dispute } = sessionOf(world, sessionId ?? '');
    const refund = { providerRefundId: 're_1', status: 'SUCCEEDED', amount } as const;
    const disputed = { disputeId: 'dp_1', amount, currency, reason: 'fraudulent' };
    return {
      refunds: Array.from({ length: refunds }, () => refund),
      disputes: dispute === null ? [] : [{ ...disputed, status: dispute }],
    };
  },
  recordRefund(world: World, _scenario: Scenario, { paymentId }: { readonly paymentId: string }) {
    sessionOf(world, paymentId).reported.refunds = 1;
  },
  recordDispute(
    world: World,
    _scenario: Scenario,
    { paymentId, status }: SeenDispute & { readonly paymentId: string },
  ) {
    sessionOf(world, paymentId).reported.dispute = status;
  },
  /** A provider that refunds a payment as often as it is requested to, even if it is disputed. */
  refund(world: World, _scenario: Scenario, { sessionId }: { readonly sessionId: string }, key: string) {
    const session = sessionOf(world, sessionId);
    once(session, key, () => {
      if (session.state !== 'captured') throw refused('not_captured');
      session.refunds += 1;
      session.wasRefundedInDispute ||= hasWithdrawn(session);
    });
  },
};

const undisputed = () => ({
  dispute: null,
  isMentioned: false,
  reported: { dispute: null, refunds: 0 },
  wasRefundedInDispute: false,
});

function endClaim(world: World, scenario: Scenario, attemptId: string) {
  const order = orderOf(world, scenario);
  const holder = holderOf(attemptId);
  if (!mayBeEnded(order, holder)) return {};
  const endsAtMs = Math.min(order.lease?.endsAtMs ?? 0, world.nowMs);
  world.order.lease = { ...holder, endsAtMs, isLive: false };
  if (!hasEnded(order, holder)) world.order.endedAttempts = [...order.endedAttempts, holder];
  return {};
}

/** The calls of other services that change something. */
const callsThatChange: readonly string[] = [
  'start',
  'end',
  'record',
  'open',
  'capture',
  'close',
  'refund',
  'recordRefund',
  'recordDispute',
];

/** The calls before which anything may happen. */
const callsOutside: readonly string[] = [...callsThatChange, 'look', 'reversals'];

/** The calls before which a process may crash or pause. The others follow the call before them immediately. */
const callsInside: readonly string[] = ['change', 'release'];

/** Returns the parts that `advance.ts` needs, which do nothing but report their calls. */
function depsOf(call: (name: CallName, input: readonly unknown[]) => Promise<never>): AdvanceDeps {
  const stub =
    (name: CallName) =>
    (...input: readonly unknown[]) =>
      call(name, input);
  const stubs = (names: readonly CallName[]) => Object.fromEntries(names.map((name) => [name, stub(name)]));
  const sending = (name: CallName, request: (attempt: Attempt, input: Seen) => object) => ({
    request,
    send: (_account: unknown, stored: object, key: string) => call(name, [stored, key]),
  });
  const provider = {
    name: 'modelled',
    methods: [],
    open: sending('open', ({ sessionEndsAt }) => ({ endsAtMs: sessionEndsAt.getTime() })),
    capture: sending('capture', ({ sessionId }) => ({ sessionId })),
    close: sending('close', ({ sessionId }, { is }) => ({ sessionId, is })),
    refund: sending('refund', ({ sessionId }) => ({ sessionId })),
    look: (_account: unknown, sessionId: string) => call('look', [sessionId]),
    reversals: (_account: unknown, attempt: Attempt) => call('reversals', [attempt]),
    recent: async function* () {},
  } satisfies Partial<Record<keyof Provider, unknown>>;
  return {
    store: stubs(['lease', 'find', 'change', 'release', 'prepareCall', 'endCall']),
    gateway: stubs(['start', 'end', 'record', 'recordRefund', 'recordDispute']),
    providers: new Map([[provider.name, provider]]),
    baseUrl: () => '',
    logger: { info() {}, warn() {}, error() {} },
    metrics: { countState() {}, countDifference() {} },
  } as unknown as AdvanceDeps;
}

const textOf = (value: unknown) =>
  JSON.stringify(value, (_name, member) => (typeof member === 'bigint' ? `${member}` : member));

const pendingCalls = new Map<string, PendingCall | undefined>();

/** Returns the call that a process makes next; `undefined` if it has finished. */
async function nextCall(worker: Worker): Promise<PendingCall | undefined> {
  const key = textOf(worker);
  if (!pendingCalls.has(key)) pendingCalls.set(key, await replay(worker));
  return pendingCalls.get(key);
}

function replay({ attemptId, isUnwanted, results }: Worker): Promise<PendingCall | undefined> {
  return new Promise((resolve, reject) => {
    const remaining = structuredClone(results);
    const advance = createAdvance(
      depsOf(async (name, input) => {
        const result = remaining.shift();
        if (result === undefined) {
          resolve({ name, input: structuredClone(input) as readonly never[] });
          return new Promise<never>(() => {});
        }
        if ('failure' in result) throw new ProviderError(result.failure, result.code);
        return result.value as never;
      }),
    );
    advance(attemptId, { isUnwanted }).then(() => resolve(undefined), reject);
  });
}

/** Performs the next call of a process, and those that follow it immediately. */
async function proceed(world: World, scenario: Scenario, index: number, mishap?: 'lost' | 'failed'): Promise<void> {
  const worker = found(world.workers[index] ?? undefined);
  let call = found(await nextCall(worker));
  worker.results.push(mishap === 'failed' ? { failure: 'failed', code: 'internal' } : perform(world, scenario, call));
  if (mishap === 'lost') worker.results[worker.results.length - 1] = { failure: 'unanswered', code: 'timeout' };
  for (;;) {
    const next = await nextCall(worker);
    if (next === undefined) {
      world.workers[index] = null;
      if (worker.isUnwanted) await startAnother(world, scenario, index);
      return;
    }
    call = next;
    const mayStop = world.left.crashes > 0 || world.left.pauses > 0;
    if (callsOutside.includes(call.name) || (mayStop && callsInside.includes(call.name))) return;
    worker.results.push(perform(world, scenario, call));
  }
}

function perform(world: World, scenario: Scenario, { name, input }: PendingCall): Result {
  const handler = handlers[name] as (world: World, scenario: Scenario, ...input: readonly unknown[]) => unknown;
  try {
    return { value: structuredClone(handler(world, scenario, ...input)) };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return { failure: error.kind, code: error.code };
  }
}

async function work(world: World, scenario: Scenario, index: number, attemptId: string, isUnwanted = false) {
  world.workers[index] = { attemptId, isUnwanted, results: [] };
  await proceed(world, scenario, index);
}

/** Starts an attempt unless the order has an unfinished one. */
async function startAnother(world: World, scenario: Scenario, index: number): Promise<void> {
  if (world.attempts.some(isUnfinished) || world.attempts.length === scenario.attemptsMax) return;
  const attemptId = `att_${world.attempts.length}`;
  const now = new Date(world.nowMs);
  world.attempts.push({
    attemptId,
    state: 'NEW',
    provider: 'modelled',
    amountHundredths: amount,
    currency,
    sessionEndsAt: new Date(world.nowMs + 35 * minuteMs),
    createdAt: now,
    dueAt: now,
    connectionId: null,
    sessionId: null,
    paymentId: null,
    paidAt: null,
    leasedUntil: null,
    failures: 0,
    looks: 0,
  } as Partial<Attempt> as Attempt);
  await work(world, scenario, index, attemptId);
}

type Move = readonly [name: string, move: (world: World) => unknown];
type AddBounded = (bound: keyof Bounds, name: string, move: (world: World) => unknown) => void;

/** Returns everything that can happen next. */
async function movesOf(world: World, scenario: Scenario): Promise<Move[]> {
  const { nowMs, left, workers, attempts, sessions } = world;
  const moves: Move[] = [];
  const bounded: AddBounded = (bound, name, move) => {
    if (left[bound] === 0) return;
    moves.push([
      name,
      (next) => {
        next.left[bound] -= 1;
        return move(next);
      },
    ]);
  };
  let isInside = false;
  for (const [index, worker] of workers.entries()) {
    if (worker === null) continue;
    const { name } = found(await nextCall(worker));
    const label = `process ${index}: ${name}`;
    isInside ||= callsInside.includes(name);
    moves.push([label, (next) => proceed(next, scenario, index)]);
    if (callsThatChange.includes(name)) {
      bounded('failures', `${label} fails`, (next) => proceed(next, scenario, index, 'failed'));
      bounded('failures', `${label} gets no response`, (next) => proceed(next, scenario, index, 'lost'));
    }
    bounded('crashes', `${label} never happens`, (next) => {
      next.workers[index] = null;
    });
  }
  const later = (ms: number) => (next: World) => {
    next.nowMs += ms;
  };
  const isIdle = workers.every((worker) => worker === null);
  if (!isIdle) bounded('pauses', 'the processes pause', later(leaseMs + 1));
  const hasPaused = left.pauses < scenario.bounds.pauses;
  if (isInside && !hasPaused) return moves;
  const isActive = nowMs < startMs + activeMs || left.outages < scenario.bounds.outages;
  const isDue = ({ dueAt }: Attempt) => dueAt !== null && dueAt.getTime() <= nowMs;
  const free = workers.indexOf(null);
  const order = orderOf(world, scenario);
  if (free !== -1) {
    for (const attempt of attempts.filter((each) => !isLeased(world, each))) {
      const { attemptId } = attempt;
      const move = (next: World) => work(next, scenario, free, attemptId);
      if (isDue(attempt)) moves.push([`process ${free} continues ${attemptId}`, move]);
      else bounded('hints', `process ${free} is notified of ${attemptId}`, move);
    }
    const unfinished = attempts.find(isUnfinished);
    if (
      isActive &&
      attempts.length < scenario.attemptsMax &&
      order.orderStatus === 'UN_PAID' &&
      !(unfinished && isLeased(world, unfinished))
    )
      moves.push([
        'the customer wants to pay in another way',
        (next) =>
          unfinished ? work(next, scenario, free, unfinished.attemptId, true) : startAnother(next, scenario, free),
      ]);
  }
  for (const { sessionId } of sessions.filter((session) => session.isKnown && isPayable(world, session))) {
    moves.push([
      `the customer pays ${sessionId}`,
      (next) =>
        Object.assign(sessionOf(next, sessionId), {
          state: scenario.isDirect ? 'captured' : 'authorised',
          paidAtMs: next.nowMs,
        }),
    ]);
    moves.push([`${sessionId} is declined`, (next) => Object.assign(sessionOf(next, sessionId), { state: 'gone' })]);
  }
  if (isActive && decide(order, { kind: 'cancel' }, nowMs).ok && order.orderStatus === 'UN_PAID')
    moves.push([
      'the merchant cancels',
      (next) => Object.assign(next.order, { orderStatus: 'CANCELLED', lease: null, endedAttempts: [] }),
    ]);
  moves.push(...(await disputeMoves(world, bounded)));
  if (isIdle) bounded('outages', 'the checkout is down for days', later(outageMs));
  const times = attempts
    .filter(({ dueAt }) => dueAt !== null)
    .map(({ dueAt, leasedUntil }) => Math.max(dueAt?.getTime() ?? 0, leasedUntil?.getTime() ?? 0));
  const nextMs = Math.min(...times);
  if (isIdle && nextMs > nowMs && nextMs < Number.POSITIVE_INFINITY) {
    const isUndecided = sessions.some(({ dispute }) => dispute === 'OPEN');
    if (isUndecided) bounded('waits', 'time passes in a dispute', later(nextMs - nowMs));
    else moves.push(['time passes', later(nextMs - nowMs)]);
  }
  return moves;
}

/** Adds what the customer's bank does, and returns what the provider's list of changes does. */
async function disputeMoves({ sessions, workers, attempts }: World, bounded: AddBounded): Promise<Move[]> {
  const next = await Promise.all(workers.map((worker) => worker && nextCall(worker)));
  // Providers refuse a refund of a payment that is disputed after the checkout asked for disputes.
  const isRefunding = next.some((call) => call?.name === 'refund');
  const later: Readonly<Record<string, readonly SeenDispute['status'][]>> = { OPEN: ['WON', 'LOST'], LOST: ['WON'] };
  const moves: Move[] = [];
  for (const { sessionId, state, refunds, dispute, isMentioned } of sessions) {
    if (state !== 'captured') continue;
    const statuses = dispute !== null ? (later[dispute] ?? []) : refunds === 0 && !isRefunding ? ['OPEN' as const] : [];
    for (const status of statuses)
      bounded('disputes', `the dispute of ${sessionId} is ${status}`, (world) =>
        Object.assign(sessionOf(world, sessionId), { dispute: status, isMentioned: true }),
      );
    const attempt = attempts.find((each) => each.sessionId === sessionId);
    const isDecided = decidedStates.some((decided) => decided === attempt?.state);
    if (isMentioned && isDecided && attempt?.dueAt === null)
      moves.push([
        `the list mentions ${sessionId}`,
        (world) => {
          sessionOf(world, sessionId).isMentioned = false;
          attemptOf(world, attempt.attemptId).dueAt = new Date(world.nowMs);
        },
      ]);
  }
  return moves;
}

/** Returns what is wrong in a world. `isAtRest` means that nothing more happens without an event from outside. */
function faultOf(world: World, scenario: Scenario, isAtRest: boolean): string | undefined {
  const { sessions, attempts } = world;
  const { lease, payment } = orderOf(world, scenario);
  const holder = lease?.isLive ? lease.attemptId : undefined;
  const attemptIdOf = (id: string) => attempts.find(({ sessionId }) => sessionId === id)?.attemptId;
  if (world.nowMs > startMs + endMs) return 'an attempt never ends';
  for (const session of sessions) {
    const { sessionId, state, refunds, isKnown, dispute, reported } = session;
    if (isKnown && isPayable(world, session) && holder !== attemptIdOf(sessionId)) return 'payable without a claim';
    if (refunds > 1) return 'refunded twice';
    if (session.wasRefundedInDispute) return 'refunded while the bank has the money';
    if (refunds > 0 && payment?.paymentId === sessionId) return 'recorded and refunded';
    if (!isAtRest) continue;
    if (state === 'authorised') return 'money reserved permanently';
    if (refunds !== reported.refunds || dispute !== reported.dispute) return 'a refund or dispute was not reported';
    if (state === 'captured' && refunds === 0 && payment?.paymentId !== sessionId && !hasWithdrawn(session))
      return 'money taken, and neither recorded nor refunded';
  }
  if (!scenario.isDirect && attempts.some(({ state }) => state === 'OWED')) return 'a card was charged for nothing';
  return isAtRest && holder !== undefined ? 'claimed although no attempt is in progress' : undefined;
}

/** Explores a scenario. Returns the first fault with what led to it, and how many different worlds there are. */
async function explore(scenario: Scenario) {
  interface Node {
    readonly world: World;
    readonly move: string;
    readonly before: Node | undefined;
  }
  const first: World = {
    nowMs: startMs,
    order: { orderStatus: 'UN_PAID', lease: null, endedAttempts: [], payment: null, refusedPayments: [] },
    attempts: [],
    calls: [],
    sessions: [],
    workers: [null, null],
    left: { ...scenario.bounds },
  };
  await startAnother(first, scenario, 0);
  const seen = new Set<string>();
  const nodes: Node[] = [{ world: first, move: 'the customer chooses a method', before: undefined }];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    const { world } = node;
    const text = textOf(world);
    if (seen.has(text)) continue;
    seen.add(text);
    const isAtRest =
      world.workers.every((worker) => worker === null) &&
      world.attempts.every(({ dueAt }) => !dueAt) &&
      world.sessions.every(({ isMentioned }) => !isMentioned);
    const fault = faultOf(world, scenario, isAtRest);
    if (fault !== undefined) {
      const path: string[] = [];
      for (let step: Node | undefined = node; step !== undefined; step = step.before) path.unshift(step.move);
      return { fault, path, worlds: seen.size };
    }
    for (const [move, apply] of await movesOf(world, scenario)) {
      const next = structuredClone(world);
      await apply(next);
      nodes.push({ world: next, move, before: node });
    }
  }
  return { fault: undefined, path: [], worlds: seen.size };
}

const none: Bounds = { failures: 0, crashes: 0, pauses: 0, outages: 0, hints: 0, disputes: 0, waits: 0 };

const mishaps: readonly (readonly [string, Omit<Scenario, 'bounds'>, Partial<Bounds>])[] = [
  [
    'a call that fails, and an outage',
    { attemptsMax: 1, isDirect: false, expiresAfterSeconds: null },
    { failures: 1, outages: 1 },
  ],
  [
    'a crash and an outage of an order that expires',
    { attemptsMax: 1, isDirect: false, expiresAfterSeconds: 1_200 },
    { crashes: 1, outages: 1 },
  ],
  [
    'a call that fails, and two outages, with a method that takes the money immediately',
    { attemptsMax: 1, isDirect: true, expiresAfterSeconds: null },
    { failures: 1, outages: 2 },
  ],
  [
    'a process that another one overtakes',
    { attemptsMax: 1, isDirect: false, expiresAfterSeconds: null },
    { pauses: 1 },
  ],
  ['a second attempt', { attemptsMax: 2, isDirect: false, expiresAfterSeconds: null }, {}],
  [
    'a second attempt with a method that takes the money immediately, for an order that expires',
    { attemptsMax: 2, isDirect: true, expiresAfterSeconds: 1_200 },
    {},
  ],
  [
    'a disputed payment with a method that takes the money immediately',
    { attemptsMax: 1, isDirect: true, expiresAfterSeconds: 1_200 },
    { outages: 2, disputes: 3, waits: 1 },
  ],
  [
    'a disputed payment, and a call that fails',
    { attemptsMax: 1, isDirect: true, expiresAfterSeconds: 1_200 },
    { failures: 1, outages: 1, disputes: 2, waits: 1 },
  ],
];

test.each(mishaps)('%s: money is recorded, released or refunded, once', async (_name, scenario, bounds) => {
  const { fault, path, worlds } = await explore({ ...scenario, bounds: { ...none, ...bounds } });
  expect({ fault, path }).toEqual({ fault: undefined, path: [] });
  expect(worlds).toBeGreaterThan(500);
});
