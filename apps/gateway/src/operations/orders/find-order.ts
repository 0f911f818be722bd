import type { Merchant } from '@order-gateway/domain/accounts/account';
import type { Failure } from '@order-gateway/domain/failure';
import { fieldRules, textError } from '@order-gateway/domain/fields/field-rules';
import { parseOrderToken } from '@order-gateway/domain/links/order-token';
import type { Order } from '@order-gateway/domain/orders/order';
import type { FindOutcome, LinkedOrder, OrderStore } from '@order-gateway/domain/orders/order-store';
import { serviceOrderIdMax } from '@order-gateway/domain/orders/service-order-id';
import type { OrderKey } from '@order-gateway/domain/requests/order-key';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Caller, Deadline, OperationDeps } from '../operation.ts';
import { storageFailure } from '../retry-after.ts';

export interface FoundOrder {
  readonly order: Order;
}

/** Finds one of the merchant's own orders. A value that can't be a key is `not_found` without a query. */
export async function findOrder(
  { store }: Pick<OperationDeps, 'store'>,
  caller: Caller<Merchant>,
  key: OrderKey,
): Promise<Result<FoundOrder, Failure>> {
  const notFound = { kind: 'not_found', unknown: key.by } as const;
  if (key.by === 'order_id') {
    if (textError(fieldRules.order_id, key.orderId) !== undefined) return failed(notFound);
    return resultOf(caller, await store.findByOrderId(caller.account.id, key.orderId, caller.timeLeftMs()), notFound);
  }
  if (key.serviceOrderId < 1n || key.serviceOrderId > BigInt(serviceOrderIdMax)) return failed(notFound);
  const id = Number(key.serviceOrderId);
  return resultOf(caller, await store.findByServiceOrderId(caller.account.id, id, caller.timeLeftMs()), notFound);
}

export const linkNotFound: Failure = { kind: 'not_found', unknown: 'payment_link' };

/** Finds the order of a payment link by the text after `/payment/`, with one of the store's two ways to read it. */
export async function findPaymentLink(
  find: OrderStore['findByToken' | 'findForPage'],
  deadline: Deadline,
  tokenText: string,
): Promise<Result<LinkedOrder, Failure>> {
  const token = parseOrderToken(tokenText);
  if (token === undefined) return failed(linkNotFound);
  return resultOf(deadline, await find(token, deadline.timeLeftMs()), linkNotFound);
}

/** Finds the order of a payment link, for a payment that is about to start. Links of a disabled merchant are not found. */
export async function findLinkToPay(
  { store }: Pick<OperationDeps, 'store'>,
  deadline: Deadline,
  tokenText: string,
): Promise<Result<LinkedOrder, Failure>> {
  const found = await findPaymentLink(store.findByToken, deadline, tokenText);
  if (!found.ok) return found;
  const { order, merchant } = found.value;
  // A payment that the customer has made is still recorded.
  return order.orderStatus === 'UN_PAID' && merchant.isDisabled ? failed(linkNotFound) : found;
}

/** The result of a lookup that may find nothing. */
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
