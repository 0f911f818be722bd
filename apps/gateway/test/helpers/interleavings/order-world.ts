import { type Account, type AccountId, type Merchant, randomBase62 } from '@order-gateway/domain/accounts';
import { createOrderToken } from '@order-gateway/domain/links';
import { decideFailure, formatTime, type Order } from '@order-gateway/domain/orders';
import { createInMemoryOrderStore, type ExecuteStatement } from '@order-gateway/domain/testing/in-memory-order-store';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import type { Call, Request, Response } from '@order-gateway/order-model/model';
import {
  attemptIdOf,
  identityOf,
  type ShownReversal,
  shownReversals,
  shownReversalText,
  storedOrderOf,
} from '@order-gateway/order-model/observed';
import { describeUnexplained } from '@order-gateway/order-model/report';
import { findUnexplained } from '@order-gateway/order-model/search';
import type { Caller } from '../../../src/calls/operation.ts';
import { createOperations } from '../../../src/operations/all.ts';
import type { OperationDeps } from '../../../src/operations/service.ts';
import { simulatePayment } from '../../../src/pages/payment-page/simulate-payment.ts';
import { credentials, fixedDeps, merchant } from '../fixed-deps.ts';
import { createMemoryLogger } from '../memory-logger.ts';
import { NoResponse, type World } from './explore.ts';

/** A call about the only order, before it is made. */
export interface PlannedCall {
  /**
   * The name of the RPC method; `pay` or `expire`, which the payment page simulates; or `fail refund`, by which an
   * operator ends a refund.
   */
  readonly operation: string;
  readonly account: Account;
  readonly members: Readonly<Record<string, unknown>>;
  readonly request: Request;
}

type Store = OperationDeps['store'];

const startMs = 1_790_000_000_000;
const expiresAtMs = startMs + 90_000;

/** The time at which the customer paid, before the expiry. */
const paidAtMs = startMs + 1_000;

/** The second gateway's clock is this far ahead. By that clock the order has expired from the start. */
const aheadMs = 100_000;

/** The clock's steps: the first passes the order's expiry, the second the end of a lease. */
const ticksMs = [95_000, 70_000];

const leaseSeconds = 60;
const testMerchant: Merchant = { ...merchant, mode: 'test' };
const orderToken = createOrderToken(merchant.id, (count) => new Uint8Array(count).fill(7));
const plainOrder = validOrderInput({ order_expires_at: formatTime(expiresAtMs), customer_locale: 'nl-NL' });

/** Returns a call that creates the order, with some fields changed. */
export function create(changes: Readonly<Record<string, unknown>> & { order_expires_at?: string } = {}): PlannedCall {
  const members = { ...plainOrder, ...changes };
  const { order_checksum: _, order_expires_at: expiry, ...content } = members;
  const request = { kind: 'create', content: contentOf(content), expiresAtMs: Date.parse(expiry) } as const;
  return { operation: 'CreateOrder', account: testMerchant, members, request };
}

/** Returns a label that is equal for equal contents: the fields that differ from the plain order. */
function contentOf(fields: Readonly<Record<string, unknown>>): string {
  const named = { ...plainOrder };
  const differing = Object.entries(fields).filter(([name, value]) => named[name as keyof typeof named] !== value);
  // Sorted because the store returns the fields in a different order.
  return differing.length === 0 ? 'the order' : JSON.stringify(differing.toSorted());
}

/** Every kind of call. Checkout systems 2 and 3 make the calls about payments, except the simulated expiry. */
export const calls: Readonly<Record<string, PlannedCall>> = {
  create: create(),
  'create another': create({ order_amount: 1, order_note: 'another' }),
  read: {
    operation: 'GetOrder',
    account: testMerchant,
    members: { order_id: plainOrder.order_id },
    request: { kind: 'read' },
  },
  cancel: {
    operation: 'CancelOrder',
    account: testMerchant,
    members: { order_id: plainOrder.order_id },
    request: { kind: 'cancel' },
  },
  'pay by 2': pay(2),
  'pay by 3': pay(3),
  'pay by 2 with its attempt': pay(2, { attempt_id: 'a' }),
  'pay another amount by 3': pay(3, { payment_id: 'q', order_amount: 1 }),
  'pay manually': payManually(),
  'start by 2': attemptCall('StartPayment', 2),
  'start by 3': attemptCall('StartPayment', 3),
  'end by 2': attemptCall('EndPayment', 2),
  'simulate an expiry': { operation: 'expire', account: testMerchant, members: {}, request: { kind: 'expire' } },
};

/** The simulated payment of an unpaid order. */
export const simulatedPay: PlannedCall = {
  operation: 'pay',
  account: testMerchant,
  members: {},
  request: {
    kind: 'pay',
    payment: {
      checkout: 'simulated',
      paymentId: `test_${randomBase62(24, fixedDeps(createMemoryLogger().logger).randomBytes)}`,
      paidAtMs: startMs,
      amount: Number(plainOrder.order_amount).toFixed(2),
      currency: plainOrder.order_currency,
    },
  },
};

/** The amounts with which the calls refund and dispute: two of them exceed the payment. */
const amount = 800;

/** Only checkout system 2 makes refunds. */
const refunders = ['2'];

const paidBy2 = { checkout: '2', paymentId: 'p' };

/** Every kind of call about refunds and disputes. */
export const reversalCalls: Readonly<Record<string, PlannedCall>> = {
  read: calls.read as PlannedCall,
  refund: refund('r', amount),
  'refund again': refund('s', amount),
  'refund what is left': refund('t'),
  'end the refund': {
    operation: 'fail refund',
    account: testMerchant,
    members: {},
    request: { kind: 'fail refund', refundId: 'r' },
  },
  'record the refund': recordRefund({ refund_id: 'r', provider_refund_id: 're', status: 'SUCCEEDED' }),
  'record its failure': recordRefund({ refund_id: 'r', provider_refund_id: 're', status: 'FAILED' }),
  'record a refund of the provider': recordRefund({ provider_refund_id: 'own', status: 'SUCCEEDED' }),
  'record a dispute': recordDispute('OPEN'),
  'record the end of the dispute': recordDispute('WON'),
};

/**
 * Returns a call by which the merchant refunds the payment. The note decides how the refund of a simulated one ends.
 */
export function refund(refundId: string, amount?: number, note?: string): PlannedCall {
  const members = { order_id: plainOrder.order_id, refund_id: refundId, refund_amount: amount, refund_note: note };
  const request = { kind: 'refund', refundId, amount: amount?.toFixed(2), note, refunders } as const;
  return { operation: 'CreateRefund', account: testMerchant, members, request };
}

function recordRefund(report: {
  readonly refund_id?: string;
  readonly provider_refund_id: string;
  readonly status: 'SUCCEEDED' | 'FAILED';
}): PlannedCall {
  const { refund_id: refundId = null, provider_refund_id: providerId, status } = report;
  const members = { order_token: orderToken, payment_id: paidBy2.paymentId, amount, ...report };
  const request = {
    kind: 'record refund',
    ...paidBy2,
    refundId,
    providerId,
    status,
    amount: amount.toFixed(2),
  } as const;
  return { operation: 'RecordRefund', account: checkout(2), members, request };
}

function recordDispute(status: 'OPEN' | 'WON'): PlannedCall {
  const dispute = { amount, currency: plainOrder.order_currency, status };
  const members = { order_token: orderToken, payment_id: paidBy2.paymentId, dispute_id: 'd', ...dispute };
  const ids = { kind: 'record dispute', ...paidBy2, disputeId: 'd' } as const;
  return {
    operation: 'RecordDispute',
    account: checkout(2),
    members,
    request: { ...ids, ...dispute, amount: amount.toFixed(2) },
  };
}

function checkout(id: number): Account {
  return { kind: 'checkout', id: id as AccountId, name: `Checkout ${id}`, lateDays: 1, getsCustomerData: false };
}

function pay(id: number, changes: Readonly<Record<string, string | number>> = {}): PlannedCall {
  const paid = { order_token: orderToken, payment_id: 'p', paid_at: formatTime(paidAtMs) };
  const members = {
    ...paid,
    order_amount: plainOrder.order_amount,
    order_currency: plainOrder.order_currency,
    ...changes,
  };
  const amount = Number(members.order_amount).toFixed(2);
  const payment = {
    checkout: String(id),
    paymentId: members.payment_id,
    paidAtMs,
    amount,
    currency: plainOrder.order_currency,
  };
  const attempt = 'attempt_id' in changes ? attemptIdOf({ checkoutId: id, attemptId: 'a' }) : undefined;
  return { operation: 'RecordPayment', account: checkout(id), members, request: { kind: 'pay', payment, attempt } };
}

/** Returns a call by which the merchant records a payment itself. */
function payManually(): PlannedCall {
  const members = { order_id: plainOrder.order_id, payment_id: 'p', paid_at: formatTime(paidAtMs) };
  const payment = {
    checkout: String(testMerchant.id),
    paymentId: members.payment_id,
    paidAtMs,
    amount: Number(plainOrder.order_amount).toFixed(2),
    currency: plainOrder.order_currency,
  };
  const request = { kind: 'pay', payment, isManual: true, lateDays: 30 } as const;
  return { operation: 'RecordManualPayment', account: testMerchant, members, request };
}

function attemptCall(operation: 'StartPayment' | 'EndPayment', id: number): PlannedCall {
  const attempt = attemptIdOf({ checkoutId: id, attemptId: 'a' });
  const members = { order_token: orderToken, attempt_id: 'a' };
  if (operation === 'EndPayment') {
    return { operation, account: checkout(id), members, request: { kind: 'end', attempt } };
  }
  const request = { kind: 'start', attempt, leaseMs: leaseSeconds * 1_000 } as const;
  return { operation, account: checkout(id), members: { ...members, lease_seconds: leaseSeconds }, request };
}

/** Wraps a store: a lost response becomes `unavailable`, and merchants are in test mode. */
function asSeenByGateways(store: Store): Store {
  return new Proxy(store, {
    get(target, name: keyof Store) {
      const method = target[name] as (...parameters: unknown[]) => Promise<unknown>;
      return async (...parameters: unknown[]) => {
        const outcome = await method(...parameters).catch((error: unknown) => {
          if (error instanceof NoResponse) return { kind: 'unavailable' };
          throw error;
        });
        const result = outcome as { readonly kind: string; readonly merchant?: object };
        return result.merchant === undefined ? result : { ...result, merchant: { ...result.merchant, mode: 'test' } };
      };
    },
  });
}

/** Creates two gateways for all worlds. Only their store and clock change, so they are created once. */
function createGateways(world: () => { readonly store: Store; readonly nowMs: number }) {
  const store = new Proxy({} as Store, { get: (_, name: keyof Store) => world().store[name] });
  return [0, aheadMs].map((ms) => {
    const deps = { ...fixedDeps(logger), store, now: () => world().nowMs + ms };
    const operations = new Map(createOperations(deps).map((operation) => [operation.method.name, operation]));
    return async ({ operation, account, members }: PlannedCall): Promise<Response | undefined> => {
      const caller = callerOf(account);
      if (operation === 'expire' || operation === 'pay') {
        const simulated = await simulatePayment(deps, caller, orderToken, operation);
        if (!simulated.ok) return responseTo(simulated.failure.kind, undefined);
        return responseTo('ok', { order: { order_status: simulated.value.order.orderStatus } });
      }
      if (operation === 'fail refund') return failRefund(deps);
      const handled = await operations.get(operation)?.handle(members, caller);
      if (handled === undefined) throw new Error(`there is no operation ${operation}`);
      return handled.ok
        ? responseTo(handled.value.outcome, handled.value.body, operation)
        : responseTo(handled.failure.kind, undefined);
    };
  });
}

/** Ends the refund `r` as an operator does (`fail-refund.ts` in packages/postgres). */
async function failRefund({ store, now }: Pick<OperationDeps, 'store' | 'now'>): Promise<Response | undefined> {
  for (;;) {
    const found = await store.findForPayment(orderToken, { checkoutId: testMerchant.id, paymentId: '' }, 0);
    if (found.kind !== 'found') return responseTo(found.kind === 'unknown' ? 'not_found' : found.kind, undefined);
    const decided = decideFailure(found.order, 'r', 'ended_by_operator', now());
    if (decided.kind !== 'reverse') return responseTo(decided.kind, undefined);
    const { kind } = await store.changeReversals(decided.change, 0);
    if (kind === 'changed') return { outcome: 'ok' };
    if (kind !== 'conflict') return responseTo(kind, undefined);
  }
}

/**
 * Returns a function that creates a world in which two gateways with different clocks handle calls about one order.
 */
export function orderWorld(
  planned: readonly PlannedCall[],
  /**
   * `earlier` are calls that ended before. `ticks` is the number of clock steps that can occur between the statements.
   */
  { earlier, ticks }: { readonly earlier: readonly PlannedCall[]; readonly ticks: number },
) {
  const isCreated = earlier.length > 0;
  // `exploreAll` continues only the run it created last, so one active world is enough.
  let active: { readonly store: Store; nowMs: number };
  const gateways = createGateways(() => active);
  let createdOrder: Order | undefined;
  return async (execute: ExecuteStatement): Promise<World<Response | undefined>> => {
    let isReady = false;
    const executeOnceReady: ExecuteStatement = async (name, statement) =>
      isReady ? execute(name, statement) : statement();
    const memory = createInMemoryOrderStore(
      undefined,
      () => world.nowMs,
      executeOnceReady,
      (id) => refunders.includes(String(id)),
    );
    const world = { store: asSeenByGateways(memory), nowMs: startMs };
    active = world;
    const responses: (Response | undefined)[] = [];
    for (const [index, call] of earlier.entries()) {
      // The creation takes longest, so the order is copied from the first world.
      if (index === 0 && createdOrder !== undefined) {
        await memory.create(createdOrder, 0);
        responses.push({ outcome: 'created' });
      } else responses.push(await gateways[0]?.(call));
      createdOrder ??= memory.ordersOf(merchant.id)[0];
    }
    isReady = true;
    const tick = async (ms: number) => {
      await execute('the clock', () => {
        world.nowMs += ms;
      });
      return undefined;
    };
    return {
      tasks: [
        // If no order exists yet, the first gateway handles every call, because by the second one's clock the order
        // would already be expired.
        ...planned.map((call, index) => async () => gateways[isCreated ? index % 2 : 0]?.(call)),
        ...ticksMs.slice(0, ticks).map((ms) => () => tick(ms)),
      ],
      fallibleCount: planned.length,
      clock: () => world.nowMs,
      contents: memory.contents,
      check(taskRuns) {
        const calls = planned.flatMap((call, index): Call[] => {
          const { sentAt, receivedAt, sentMs, receivedMs, result } = taskRuns[index] as (typeof taskRuns)[number];
          if (sentAt === Infinity) return [];
          const [receivedOrNever, toMs] = result === undefined ? [Infinity, Infinity] : [receivedAt, receivedMs];
          const during = { fromMs: sentMs, toMs };
          return [{ sentAt, receivedAt: receivedOrNever, during, request: call.request, response: result }];
        });
        for (const [index, { request }] of earlier.entries()) {
          const [sentAt, receivedAt] = [2 * (index - earlier.length), 2 * (index - earlier.length) + 1];
          const during = { fromMs: startMs, toMs: startMs };
          calls.push({ sentAt, receivedAt, during, request, response: responses[index] });
        }
        const [order] = memory.ordersOf(merchant.id);
        const events = JSON.parse(memory.contents())[2];
        const stored = order === undefined ? null : storedOrderOf(order, events, contentOf(storedContent(order)));
        if (findUnexplained({ calls, stored }) !== undefined) throw new Error(describeUnexplained({ calls, stored }));
      },
    };
  };
}

const { logger } = createMemoryLogger();

/** Returns a stored order's fields, as they were sent. */
function storedContent({ fields, metadata }: Order) {
  const { order_checksum: _, order_amount: amount, ...texts } = fields;
  return { ...texts, order_amount: Number(amount) / 100, ...(metadata && { metadata }) };
}

function callerOf(account: Account): Caller<Merchant> {
  return {
    account: account as Merchant,
    ...credentials,
    timeLeftMs: () => 5_000,
    concerns() {},
    waitMs: 0,
    isStrict: false,
    pause: (wait) => wait(new AbortController().signal),
  };
}

/** The operations whose responses contain refused payments. A cancellation returns the refunds as they were before. */
const operationsWithRefused = new Set(['GetOrder', 'CancelOrder']);

/** Failures after which the call may or may not have taken effect. */
const unknownOutcomes = ['unavailable', 'deadline_exceeded'];

/** Returns the response as the model sees it, or `undefined` if its outcome is unknown. */
function responseTo(outcome: string, body: object | undefined, operation = ''): Response | undefined {
  if (unknownOutcomes.includes(outcome)) return undefined;
  if (body === undefined) return { outcome };
  const { refund, dispute } = body as { readonly refund?: ShownReversal; readonly dispute?: ShownReversal };
  const reversal = refund ?? dispute;
  if (reversal !== undefined) return { outcome, reversal: shownReversalText(reversal) };
  const { order = body, lease_ends_at: leaseEndsAt } = Object(body);
  const { order_status: status, payment_id: paymentId = null, refused_payments, order_token } = order;
  const isCompleteOrder = order.mode !== undefined && !('merchant_name' in order);
  const refusedIds = (refused_payments ?? []).map((refused: { payment_id: string }) => refused.payment_id);
  const shown = {
    status,
    ...(order_token !== undefined && order_token !== '' && { identity: identityOf(order) }),
    ...(isCompleteOrder && { paymentId, ...(operationsWithRefused.has(operation) && { refusedIds }) }),
    ...(operation === 'GetOrder' && { reversals: shownReversals(order) }),
  };
  return { outcome, shown, ...(leaseEndsAt !== undefined && { leaseEndsAtMs: Date.parse(leaseEndsAt) }) };
}
