import type { Merchant } from '@order-gateway/domain/accounts';
import type { Failure } from '@order-gateway/domain/failure';
import { type OrderToken, parseOrderToken } from '@order-gateway/domain/links';
import {
  type ChangeOutcome,
  type CheckoutPayment,
  type Decision,
  type FindOutcome,
  fieldRules,
  type LinkedOrder,
  type Order,
  type OrderLookupKey,
  type RefusalCode,
  type ReversalDecision,
  serviceOrderIdMax,
} from '@order-gateway/domain/orders';
import { paymentIdRule } from '@order-gateway/domain/payments';
import { textError } from '@order-gateway/domain/requests';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Caller, Deadline } from '../calls/operation.ts';
import { storageFailure } from '../calls/store-failure.ts';
import type { OperationDeps } from './service.ts';

export interface FoundOrder {
  readonly order: Order;
}

/** Finds one of the merchant's own orders. If the value can't be a key, the result is `not_found` without a query. */
export async function findOrder(
  { store }: Pick<OperationDeps, 'store'>,
  caller: Caller<Merchant>,
  key: OrderLookupKey,
): Promise<Result<FoundOrder, Failure>> {
  const notFound = { kind: 'not_found', unknown: key.by } as const;
  if (key.by === 'order_id') {
    if (textError(fieldRules.order_id, key.orderId) !== undefined) return failed(notFound);
    return resultOf(caller, await store.findByOrderId(caller.account.id, key.orderId, caller.timeLeftMs()), notFound);
  }
  if (key.by === 'payment_id') {
    if (textError(paymentIdRule, key.paymentId) !== undefined) return failed(notFound);
    const { id } = caller.account;
    return resultOf(caller, await store.findByPaymentId(id, key.paymentId, caller.timeLeftMs()), notFound);
  }
  if (key.serviceOrderId < 1n || key.serviceOrderId > BigInt(serviceOrderIdMax)) return failed(notFound);
  const id = Number(key.serviceOrderId);
  return resultOf(caller, await store.findByServiceOrderId(caller.account.id, id, caller.timeLeftMs()), notFound);
}

export const linkNotFound: Failure = { kind: 'not_found', unknown: 'payment_link' };

/** Finds the order of a payment link by the text after `/payment/`. `find` is a method of the store. */
export async function findPaymentLink<Found extends LinkedOrder>(
  find: (token: OrderToken, timeoutMs: number) => Promise<FindOutcome<Found>>,
  deadline: Deadline,
  tokenText: string,
): Promise<Result<Found, Failure>> {
  const token = parseOrderToken(tokenText);
  if (token === undefined) return failed(linkNotFound);
  return resultOf(deadline, await find(token, deadline.timeLeftMs()), linkNotFound);
}

/** Finds the order of a payment link as {@link findPaymentLink} does, with what is stored about a payment. */
export function findForPayment(
  { store }: Pick<OperationDeps, 'store'>,
  deadline: Deadline,
  tokenText: string,
  payment: CheckoutPayment,
) {
  return findPaymentLink((token, timeoutMs) => store.findForPayment(token, payment, timeoutMs), deadline, tokenText);
}

/**
 * Finds the order of a payment link, for a payment that is about to start. A link to an unpaid order of a disabled
 * merchant is not found.
 */
export async function findLinkToPay(
  { store }: Pick<OperationDeps, 'store'>,
  deadline: Deadline,
  tokenText: string,
): Promise<Result<LinkedOrder, Failure>> {
  const found = await findPaymentLink(store.findByToken, deadline, tokenText);
  if (!found.ok) return found;
  const { order, merchant } = found.value;
  // `recordPayment` does not use this function, so a payment that the customer has already made is still recorded.
  return order.orderStatus === 'UN_PAID' && merchant.isDisabled ? failed(linkNotFound) : found;
}

/** Converts the outcome of a lookup to a result. If an order was found, notes that the call concerns this order. */
export function resultOf<Found extends FoundOrder>(
  deadline: Deadline,
  outcome: FindOutcome<Found>,
  notFound: Failure,
): Result<Found, Failure> {
  if (outcome.kind === 'found') {
    deadline.concerns(outcome.order);
    return success(outcome);
  }
  return failed(outcome.kind === 'unknown' ? notFound : storageFailure(outcome.kind));
}

export interface ChangedOrder<Found extends FoundOrder> {
  /** The found order after the change, with the data that was found with it. */
  readonly found: Found;
  /** Whether the change was made before. */
  readonly replayed: boolean;
}

/**
 * Finds an order and changes its state as `decide` decides. If a concurrent change is stored first, finds the order and
 * decides again. Calls `onRefused` once a refused payment has been stored.
 */
export async function changeOrder<Found extends FoundOrder>(
  deps: Pick<OperationDeps, 'store'>,
  deadline: Deadline,
  find: () => Promise<Result<Found, Failure>>,
  decide: (found: Found) => Result<Decision | ReversalDecision, Failure>,
  onRefused: (found: Found, code: RefusalCode) => void = () => {},
): Promise<Result<ChangedOrder<Found>, Failure>> {
  for (;;) {
    const found = await find();
    if (!found.ok) return found;
    const decided = decide(found.value);
    if (!decided.ok) return decided;
    const decision = decided.value;
    if (decision.kind === 'replayed') return success({ found: found.value, replayed: true });
    const outcome = await storeDecision(deps, decision, deadline.timeLeftMs());
    if (outcome.kind === 'changed') {
      if (decision.kind === 'refuse') {
        const { code } = decision.refusal.payment;
        onRefused(found.value, code);
        return failed({ kind: code });
      }
      const { order } = decision.change;
      deadline.concerns(order);
      return success({ found: { ...found.value, order }, replayed: false });
    }
    if (outcome.kind !== 'conflict') return failed(storageFailure(outcome.kind));
  }
}

function storeDecision(
  { store }: Pick<OperationDeps, 'store'>,
  decision: Exclude<Decision | ReversalDecision, { readonly kind: 'replayed' }>,
  timeoutMs: number,
): Promise<ChangeOutcome> {
  switch (decision.kind) {
    case 'refuse':
      return store.refusePayment(decision.refusal, timeoutMs);
    case 'reverse':
      return store.changeReversals(decision.change, timeoutMs);
    case 'change':
      return store.change(decision.change, timeoutMs);
  }
}
