import { randomBytes } from 'node:crypto';
import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventFeed } from '@order-gateway/domain/events';
import type { Failure } from '@order-gateway/domain/failure';
import {
  formatTime,
  type LinkLookup,
  type NewOrder,
  type Order,
  type OrderChange,
  type OrderLookup,
  type OrderStore,
  type PaymentLookup,
  type PaymentRefusal,
  type ReversalChange,
} from '@order-gateway/domain/orders';
import type { Result } from '@order-gateway/domain/result';
import { createInMemoryOrderStore, type InMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import type { History, Call as ModelCall, Request, Response } from '@order-gateway/order-model/model';
import { identityOf, type ShownReversal, shownReversalText, storedOrderOf } from '@order-gateway/order-model/observed';
import { describeUnexplained } from '@order-gateway/order-model/report';
import { findUnexplained } from '@order-gateway/order-model/search';
import { createBatchQueue } from '@order-gateway/postgres/batch-queue';
import { ConnectionLost } from '@order-gateway/postgres/connections';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { credentials, type FixedDeps, fixedDeps, merchant } from '../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import { Call } from '../calls/call.ts';
import { noPeer } from '../calls/peers/connection-limit.ts';
import { cancelOrder, createOrder } from './orders.ts';
import { recordPayment } from './payments.ts';
import { createRefund, recordDispute, recordRefund } from './refunds.ts';
import { findOrder } from './stored-orders.ts';

// Runs the operations and the batch queue on an in-memory store with failing statements. fast-check chooses the order
// of events. A failed run prints its seed and path. To repeat it, pass `{ seed, path }` to `fc.assert`.

const schedules = process.env.MODE === 'faults' ? 10_000 : 500;

/** Only timers advance the clock. Everything else in a simulation takes no time. */
beforeAll(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterAll(() => void vi.useRealTimers());

/** The possible outcomes of a statement. */
const statementOutcomes = [
  'works',
  'responds late',
  'fails',
  'loses the response',
  'hangs',
  'hangs after the commit',
] as const;

/** How long the database client waits for a response (`connections/client.ts` in packages/postgres). */
const hangMs = 5_000;

/** A note that no statement can store. It must not cause the other orders of its batch to fail. */
const badNote = 'bad';
const badOrder = 2;

/**
 * The calls of clients. `variant` selects one of two notes, payments and refunds. The third order always has the bad
 * note instead.
 */
const calls = fc.record({
  use: fc.constantFrom('create', 'create', 'pay', 'pay', 'cancel', 'find', 'refund', 'refund', 'report', 'dispute'),
  order: fc.constantFrom(0, 0, 0, 1, 1, badOrder),
  variant: fc.nat(1),
  timeoutMs: fc.constantFrom<number[]>(1, 4_000, 5_000, 5_000, 5_000),
});
type PlannedCall = typeof calls extends fc.Arbitrary<infer Planned> ? Planned : never;

function noteOf({ order, variant }: Pick<PlannedCall, 'order' | 'variant'>): string {
  return order === badOrder ? badNote : `note ${variant}`;
}

interface EndedCall extends PlannedCall {
  readonly startMs: number;
  readonly startStep: number;
  readonly endMs: number;
  readonly endStep: number;
  /** When the customer paid; `undefined` if the sender did not know the order's link. */
  readonly paidAtMs: number | undefined;
  readonly result: Result<{ readonly order?: Order; readonly reversal?: string; readonly replayed: boolean }, Failure>;
}

const checkoutId = (merchant.id + 1) as AccountId;

/** The amount of each refund and dispute. Two of them exceed the payment. */
const reversedAmount = 800;

test('no schedule of calls and failing statements loses, duplicates or undoes an acknowledged change', async () => {
  const clients = fc.array(fc.array(calls, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 });
  const fates = fc.array(fc.constantFrom('works' as const, ...statementOutcomes), { maxLength: 20 });
  const property = fc.asyncProperty(
    fc.scheduler(),
    clients,
    fates,
    fc.nat(2),
    fc.boolean(),
    async (scheduler, planned, fates, timerCount, isPaid) => {
      const memory = createInMemoryOrderStore();
      const { store, close, closed, isHanging } = openFaultyStore(memory, scheduler, [...fates]);
      const deps = { ...fixedDeps(createMemoryLogger().logger), store, randomBytes };
      const ended: EndedCall[] = [];
      let steps = 0;
      const make = async (call: PlannedCall, on: FixedDeps) => {
        const [startMs, startStep] = [performance.now(), ++steps];
        const knownOrder = memory.ordersOf(merchant.id).find(({ fields }) => fields.order_id === `order-${call.order}`);
        const result = await send(on, knownOrder, call);
        const timing = {
          startMs,
          startStep,
          endMs: performance.now(),
          endStep: ++steps,
          paidAtMs: knownOrder?.createdAtMs,
        };
        ended.push({ ...call, ...timing, result });
      };
      // Refunds need a paid order, which random calls seldom make.
      for (const use of isPaid ? (['create', 'pay'] as const) : []) {
        await make({ use, order: 0, variant: 0, timeoutMs: hangMs }, { ...deps, store: memory });
      }
      const clients = planned.map(async (calls) => {
        for (const call of calls) {
          await scheduler.schedule(Promise.resolve(), call.use);
          await make(call, deps);
        }
      });
      // A timer may fire before statements that were sent earlier have ended.
      const timers = Array.from({ length: timerCount }, async () => {
        await scheduler.schedule(Promise.resolve(), 'a timer');
        vi.advanceTimersToNextTimer();
      });
      await settled(scheduler, isHanging, Promise.all(clients));
      await checkCalls(ended, memory);
      await settled(scheduler, isHanging, Promise.all([close(), ...timers]));
      expect([closed(), vi.getTimerCount(), scheduler.count()]).toEqual([clientsOfStore, 0, 0]);
    },
  );
  await fc.assert(property, { numRuns: schedules });
});

/** Waits for two turns, because the queue defers work to the end of the first. */
const endOfTurn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** Releases one event after another until a promise is settled. Fails if only a deadline could end a call. */
async function settled(scheduler: fc.Scheduler, isHanging: () => boolean, promise: Promise<unknown>): Promise<void> {
  let isSettled = false;
  const end = () => {
    isSettled = true;
  };
  promise.then(end, end);
  for (;;) {
    await endOfTurn();
    if (isSettled) return void (await promise);
    if (scheduler.count() > 0) await scheduler.waitNext(1);
    else if (isHanging()) vi.advanceTimersToNextTimer();
    else throw new Error('a call waits, and no statement hangs');
  }
}

async function send(
  deps: FixedDeps,
  knownOrder: Order | undefined,
  planned: PlannedCall,
): Promise<EndedCall['result']> {
  const call = new Call(deps, 'json', {}, noPeer);
  call.limitTimeout(planned.timeoutMs);
  const caller = {
    account: merchant,
    ...credentials,
    timeLeftMs: () => call.timeLeftMs(),
    concerns() {},
    waitMs: 0,
    isStrict: false,
    pause: <Value>(wait: (signal: AbortSignal) => Promise<Value>) => wait(new AbortController().signal),
  };
  const orderId = `order-${planned.order}`;
  switch (planned.use) {
    case 'create':
      return call.run(() =>
        createOrder(deps, caller, validOrderInput({ order_id: orderId, order_note: noteOf(planned) })),
      );
    case 'cancel':
      return changed(await call.run(() => cancelOrder(deps, caller, { by: 'order_id', orderId })));
    case 'refund': {
      const refund = { refund_id: `refund-${planned.variant}`, refund_amount: reversedAmount };
      return reversed(await call.run(() => createRefund(deps, caller, { by: 'order_id', orderId }, refund)));
    }
    case 'pay':
    case 'report':
    case 'dispute': {
      const { order_amount, order_currency } = validOrderInput();
      const payment = {
        order_token: knownOrder?.orderToken ?? 'none',
        payment_id: `payment-${planned.variant}`,
        paid_at: formatTime(knownOrder?.createdAtMs ?? 0),
      };
      const account = {
        kind: 'checkout',
        id: checkoutId,
        name: 'Checkout',
        lateDays: 1,
        getsCustomerData: false,
      } as const;
      const { order_token, payment_id } = payment;
      const reversal = { order_token, payment_id, amount: reversedAmount };
      if (planned.use === 'report') {
        const status = planned.variant === 0 ? 'SUCCEEDED' : 'FAILED';
        const refund = { ...reversal, refund_id: 'refund-0', provider_refund_id: 'at-provider', status };
        return reversed(await call.run(() => recordRefund(deps, { ...caller, account }, refund)));
      }
      if (planned.use === 'dispute') {
        const dispute = { ...reversal, dispute_id: 'dispute', currency: order_currency, status: 'OPEN' };
        return reversed(await call.run(() => recordDispute(deps, { ...caller, account }, dispute)));
      }
      return changed(
        await call.run(() => recordPayment(deps, { ...caller, account }, { ...payment, order_amount, order_currency })),
      );
    }
    case 'find': {
      const found = await call.run(() => findOrder(deps, caller, { by: 'order_id', orderId }));
      return found.ok ? { ...found, value: { order: found.value.order, replayed: true } } : found;
    }
  }
}

function changed(result: Result<{ found: { order: Order }; replayed: boolean }, Failure>): EndedCall['result'] {
  return result.ok
    ? { ...result, value: { order: result.value.found.order, replayed: result.value.replayed } }
    : result;
}

/** Converts the response to a call about a refund or dispute. */
function reversed(result: Result<{ readonly body: object; readonly outcome: string }, Failure>): EndedCall['result'] {
  if (!result.ok) return result;
  const { refund, dispute } = result.value.body as Readonly<Partial<Record<'refund' | 'dispute', ShownReversal>>>;
  const shown = (refund ?? dispute) as ShownReversal;
  return { ok: true, value: { reversal: shownReversalText(shown), replayed: result.value.outcome === 'replayed' } };
}

const clientsOfStore = 6;

/**
 * Opens a store whose calls share statements as in PostgreSQL. Each statement has the next outcome of `fates`. Once
 * none is left, all statements work.
 */
function openFaultyStore(
  memory: InMemoryOrderStore,
  scheduler: fc.Scheduler,
  fates: (typeof statementOutcomes)[number][],
) {
  let [closed, hanging] = [0, 0];
  const queues: { close(): Promise<void> }[] = [];
  const addQueue = <Item, Outcome>(
    clients: number,
    batchMax: number,
    execute: (item: Item) => Promise<Outcome>,
    isBad = (_: Item) => false,
  ) => {
    const client = () => ({
      close: async () => {
        closed += 1;
      },
    });
    const run = async (_: unknown, items: readonly Item[]) => {
      const fate = fates.shift() ?? 'works';
      await scheduler.schedule(Promise.resolve(), `a statement ${fate}`);
      if (items.some(isBad)) throw new Error('violates a constraint');
      if (fate === 'fails') throw new ConnectionLost();
      const outcomes = fate === 'hangs' ? [] : await Promise.all(items.map(execute));
      if (fate.startsWith('hangs')) {
        hanging += 1;
        await new Promise((resolve) => setTimeout(resolve, hangMs));
        hanging -= 1;
      }
      if (fate === 'responds late') await scheduler.schedule(Promise.resolve(), 'its response');
      else if (fate !== 'works') throw new ConnectionLost();
      return outcomes;
    };
    const limits = { name: 'simulated', batchMin: 2, batchMax, waitingMax: 3 };
    const queue = createBatchQueue({ clients: Array.from({ length: clients }, client), ...limits, run });
    queues.push(queue);
    return queue.add;
  };
  const add = {
    create: addQueue(
      1,
      3,
      (order: NewOrder) => memory.create(order, hangMs),
      ({ fields }) => fields.order_note === badNote,
    ),
    change: addQueue(2, 1, (change: OrderChange) => memory.change(change, hangMs)),
    refusePayment: addQueue(1, 1, (refusal: PaymentRefusal) => memory.refusePayment(refusal, hangMs)),
    changeReversals: addQueue(1, 1, (change: ReversalChange) => memory.changeReversals(change, hangMs)),
    find: addQueue(1, 2, (find: () => Promise<LinkLookup | OrderLookup | PaymentLookup>) => find()),
  };
  const store: OrderStore & EventFeed = {
    ...memory,
    create: add.create,
    change: add.change,
    refusePayment: add.refusePayment,
    changeReversals: add.changeReversals,
    findByOrderId: (merchantId, orderId, timeoutMs) =>
      add.find(() => memory.findByOrderId(merchantId, orderId, hangMs), timeoutMs),
    findByToken: (token, timeoutMs) =>
      add.find(() => memory.findByToken(token, hangMs), timeoutMs) as Promise<LinkLookup>,
    findForPayment: (token, payment, timeoutMs) =>
      add.find(() => memory.findForPayment(token, payment, hangMs), timeoutMs) as Promise<PaymentLookup>,
  };
  const close = () => Promise.all(queues.map((queue) => queue.close()));
  return { store, close, closed: () => closed, isHanging: () => hanging > 0 };
}

/** The failures that show the effect of another call. */
const conflicts = [
  ...['not_found', 'order_id_conflict', 'payment_id_conflict', 'order_already_paid', 'order_cancelled'],
  ...['order_not_paid', 'refund_exceeds_payment', 'refund_id_conflict'],
];
/** The failures of a call that may have taken effect. */
const unknownOutcomes = ['unavailable', 'deadline_exceeded'];

async function checkCalls(ended: readonly EndedCall[], memory: InMemoryOrderStore): Promise<void> {
  for (const { order, startMs, endMs, timeoutMs, result } of ended) {
    expect(endMs - startMs).toBeLessThanOrEqual(timeoutMs);
    if (result.ok) continue;
    const allowed = [...conflicts, ...unknownOutcomes, 'overloaded', ...(order === badOrder ? ['internal'] : [])];
    expect(allowed).toContain(result.failure.kind);
  }
  const stored = new Map(memory.ordersOf(merchant.id).map((order) => [order.fields.order_id, order]));
  const page = await memory.listEvents(merchant.id, { limit: 100 }, hangMs);
  const events = page.kind === 'found' ? page.events : [];
  const ownerOf = new Map(
    stored
      .values()
      .flatMap(({ fields, payment, refusedPayments }) =>
        [...(payment ? [payment] : []), ...refusedPayments].map(
          ({ paymentId }) => [paymentId, fields.order_id] as const,
        ),
      ),
  );
  // The model knows only one order, so it can't explain a payment that another order already has.
  const isOfAnother = ({ use, order, variant, result }: EndedCall) => {
    const owner = ownerOf.get(`payment-${variant}`);
    const isConflict = use === 'pay' && !result.ok && result.failure.kind === 'payment_id_conflict';
    return isConflict && owner !== undefined && owner !== `order-${order}`;
  };
  for (const [number, ofOrder] of Map.groupBy(ended, ({ order }) => order)) {
    const order = stored.get(`order-${number}`);
    const eventsOfOrder = events.filter((event) => event.order.fields.order_id === `order-${number}`);
    const history: History = {
      calls: ofOrder.filter((call) => !isOfAnother(call)).flatMap(callOf),
      stored: order === undefined ? null : storedOrderOf(order, eventsOfOrder, order.fields.order_note),
    };
    if (findUnexplained(history) !== undefined) throw new Error(describeUnexplained(history));
  }
}

/**
 * Converts a call to the model's form. Drops a payment if its sender did not know the order's link, and an overloaded
 * call, because it stored nothing.
 */
function callOf(ended: EndedCall): ModelCall[] {
  const { use, variant, startStep, endStep, paidAtMs, result } = ended;
  if (['pay', 'report', 'dispute'].includes(use) && paidAtMs === undefined) return [];
  if (!result.ok && result.failure.kind === 'overloaded') return [];
  const { order_amount, order_currency: currency } = validOrderInput();
  const payment = { checkout: String(checkoutId), paymentId: `payment-${variant}`, paidAtMs: paidAtMs ?? 0 };
  const { checkout, paymentId } = payment;
  const reversal = { checkout, paymentId, amount: reversedAmount.toFixed(2) };
  const status = variant === 0 ? 'SUCCEEDED' : 'FAILED';
  const requests: Readonly<Record<PlannedCall['use'], Request>> = {
    create: { kind: 'create', content: noteOf(ended) },
    pay: { kind: 'pay', payment: { ...payment, amount: order_amount.toFixed(2), currency } },
    cancel: { kind: 'cancel' },
    find: { kind: 'read' },
    refund: { kind: 'refund', refundId: `refund-${variant}`, amount: reversal.amount },
    report: { kind: 'record refund', ...reversal, refundId: 'refund-0', providerId: 'at-provider', status },
    dispute: { kind: 'record dispute', ...reversal, disputeId: 'dispute', currency, status: 'OPEN' },
  };
  const isKnown = result.ok || conflicts.includes(result.failure.kind);
  const times = { sentAt: startStep, receivedAt: isKnown ? endStep : Infinity, during: { fromMs: 0, toMs: Infinity } };
  const response = result.ok ? responseOf(use, result.value) : isKnown ? { outcome: result.failure.kind } : undefined;
  return [{ ...times, request: requests[use], response }];
}

function responseOf(
  use: PlannedCall['use'],
  { order, reversal, replayed }: Extract<EndedCall['result'], { readonly ok: true }>['value'],
): Response {
  const firstOutcome = { create: 'created', refund: 'created' }[use as string] ?? 'ok';
  const outcome = replayed && use !== 'find' ? 'replayed' : firstOutcome;
  if (order === undefined) return { outcome, reversal };
  const { serviceOrderId: service_order_id, orderToken: order_token, createdAtMs, payment, refusedPayments } = order;
  return {
    outcome,
    shown: {
      status: order.orderStatus,
      identity: identityOf({ service_order_id, order_token, created_at: formatTime(createdAtMs) }),
      paymentId: payment?.paymentId ?? null,
      ...((use === 'find' || use === 'cancel') && { refusedIds: refusedPayments.map(({ paymentId }) => paymentId) }),
    },
  };
}
