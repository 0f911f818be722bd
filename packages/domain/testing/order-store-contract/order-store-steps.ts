import { expect } from 'vitest';
import type { AccountId } from '../../src/accounts/account.ts';
import type { EventFeed } from '../../src/events/event-feed.ts';
import type { Failure } from '../../src/failure.ts';
import type { Order, RefusedPayment } from '../../src/orders/order.ts';
import { decide, type OrderAction, type ReversalDecision, startFailure } from '../../src/orders/order-states.ts';
import type { CreateOutcome, OrderStore } from '../../src/orders/order-store.ts';
import type { OrderInput } from '../../src/orders/parse-order.ts';
import type { Result } from '../../src/result.ts';
import { sampleOrder } from '../sample-orders.ts';

/** A store under test and what the suite needs to test it. */
export interface OpenedOrderStore {
  readonly store: OrderStore & EventFeed;
  /** Returns two new merchants without orders. */
  merchantIds(): Promise<[AccountId, AccountId]>;
  countOrders(merchantId: AccountId): Promise<number>;
  /** Returns the merchant's name. The two merchants of one `merchantIds` call have different names. */
  nameOf(merchantId: AccountId): string;
  close(): Promise<void>;
}

/** Enough time for one order on a busy machine. */
export const timeoutMs = 60_000;

export const hourMs = 3_600_000;

/** Later than the creation of any sample order, regardless of the clock. */
export const sampleNowMs = 1_795_300_000_000;

/** Returns a sample order that expires in `ms`, or has already expired if `ms` is negative. */
export function orderExpiringIn(merchantId: AccountId, ms: number, overrides?: OrderInput): Order {
  return { ...sampleOrder(merchantId, overrides), expiresAtMs: Date.now() + ms };
}

export type PayAction = Extract<OrderAction, { kind: 'pay' }>;

/** Returns the account that reports payments and starts attempts of a merchant's orders. The store has it. */
export function checkoutOf(merchantId: AccountId): AccountId {
  return (merchantId + 1_000_000_000) as AccountId;
}

/** Returns the action of a payment of the full amount, reported by the checkout system. */
export function paymentOf(order: Order, paymentId: string, paidAtMs = order.createdAtMs): PayAction {
  const { order_amount: amount, order_currency: currency } = order.fields;
  const reported = { checkoutId: checkoutOf(order.merchantId), paymentId, paidAtMs, amount, currency };
  return { kind: 'pay', payment: { ...reported, isKnown: false, refused: null } };
}

/** Returns an attempt of the checkout system. */
export function attemptOf({ merchantId }: Order, attemptId: string) {
  return { checkoutId: checkoutOf(merchantId), attemptId };
}

/** Returns the steps that the tests share. `opened` returns the store after the suite has opened it. */
export function orderStoreSteps(opened: () => OpenedOrderStore) {
  /** Creates the order, and sets its id to the one that the store assigned, so that it equals what lookups return. */
  const create = async (order: Order): Promise<CreateOutcome | { readonly kind: 'created' }> => {
    const outcome = await opened().store.create(order, timeoutMs);
    if (outcome.kind !== 'created') return outcome;
    const { serviceOrderId } = outcome.order;
    expect(outcome.order).toStrictEqual(Object.assign(order, { serviceOrderId }));
    expect(Number.isSafeInteger(serviceOrderId) && serviceOrderId > 0).toBe(true);
    return { kind: 'created' };
  };

  const findForPayment = async ({ orderToken }: Order, { payment }: PayAction) => {
    const { checkoutId, paymentId } = payment;
    if (checkoutId === null) throw new Error('the payment is simulated');
    const found = await opened().store.findForPayment(orderToken, { checkoutId, paymentId }, timeoutMs);
    if (found.kind !== 'found') throw new Error(found.kind);
    return found;
  };

  const find = async ({ merchantId, fields }: Order): Promise<Order> => {
    const found = await opened().store.findByOrderId(merchantId, fields.order_id, timeoutMs);
    if (found.kind !== 'found') throw new Error(found.kind);
    return found.order;
  };

  const decideNow = async (order: Order, action: OrderAction) => {
    if (action.kind === 'cancel') return decide(await find(order), action, Date.now());
    const { order: found, isKnown, refused } = await findForPayment(order, action);
    // The creation times of sample orders are fixed, and may be later than the current time.
    return decide(
      found,
      { ...action, payment: { ...action.payment, isKnown, refused } },
      Math.max(Date.now(), sampleNowMs),
    );
  };

  /**
   * Performs the steps of a use case: reads, decides and changes. Starts again after a conflict. Returns the kind of
   * the outcome or the code of the error.
   */
  const act = (order: Order, action: OrderAction): Promise<string> =>
    untilNoConflict(async () => {
      const decided = await decideNow(order, action);
      if (!decided.ok) return decided.failure.kind;
      if (decided.value.kind === 'replayed') return 'replayed';
      if (decided.value.kind === 'change') return (await opened().store.change(decided.value.change, timeoutMs)).kind;
      const { refusal } = decided.value;
      const { kind } = await opened().store.refusePayment(refusal, timeoutMs);
      return kind === 'changed' ? refusal.payment.code : kind;
    });

  /** Performs the steps of a use case that changes refunds or disputes, as {@link act} does. */
  const reverse = (
    order: Order,
    paymentId: string,
    decideOn: (
      found: Order,
      refused: RefusedPayment | null,
      nowMs: number,
    ) => Result<ReversalDecision | { readonly kind: 'replayed' }, Failure>,
  ): Promise<string> =>
    untilNoConflict(async () => {
      const found = await findForPayment(order, paymentOf(order, paymentId));
      const decided = decideOn(found.order, found.refused, Math.max(found.nowMs, sampleNowMs));
      if (!decided.ok) return decided.failure.kind;
      if (decided.value.kind !== 'reverse') return decided.value.kind;
      return (await opened().store.changeReversals(decided.value.change, timeoutMs)).kind;
    });

  const eventsOf = async ({ merchantId }: Order): Promise<string[]> => {
    const page = await opened().store.listEvents(merchantId, { limit: 100 }, timeoutMs);
    if (page.kind !== 'found') throw new Error(page.kind);
    return page.events.map(({ type, order }) => `${type} ${order.fields.order_id}`);
  };

  /** Expects the events at once, because an event appears as soon as its change is stored. */
  const expectEvents = async (order: Order, events: string[]) => expect(await eventsOf(order)).toStrictEqual(events);

  const created = async (order: Order): Promise<Order> => {
    expect(await create(order)).toStrictEqual({ kind: 'created' });
    return order;
  };

  const newMerchant = async () => (await opened().merchantIds())[0];

  /** Performs the steps of StartPayment. Returns the kind of the outcome or the code of the error. */
  const start = (order: Order, attemptId: string, leaseSeconds = 900): Promise<string> =>
    untilNoConflict(async () => {
      const attempt = attemptOf(order, attemptId);
      const failure = startFailure(await find(order), attempt, Date.now());
      if (failure !== undefined) return failure.kind;
      return (await opened().store.startPayment(order, attempt, leaseSeconds, timeoutMs)).kind;
    });

  const end = async (order: Order, attemptId: string) =>
    opened().store.endPayment(await find(order), attemptOf(order, attemptId), timeoutMs);

  return {
    opened,
    create,
    created,
    newMerchant,
    find,
    findForPayment,
    decideNow,
    act,
    reverse,
    start,
    end,
    eventsOf,
    expectEvents,
  };
}

/** More conflicts than the suite's concurrent changes can cause. */
const conflictsMax = 1_000;

/** Repeats the steps of a use case while they conflict. Steps that always conflict fail, and do not run forever. */
async function untilNoConflict(steps: () => Promise<string>): Promise<string> {
  for (let count = 0; count < conflictsMax; count += 1) {
    const outcome = await steps();
    if (outcome !== 'conflict') return outcome;
  }
  throw new Error('the decision and the store contradict each other');
}

export type OrderStoreSteps = ReturnType<typeof orderStoreSteps>;
