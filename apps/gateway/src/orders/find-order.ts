import type { Failure } from '@gateway/domain/failure';
import { fieldRules, textError } from '@gateway/domain/field-rules';
import type { Order } from '@gateway/domain/order';
import type { FindOutcome, LinkedOrder } from '@gateway/domain/order-store';
import { parseOrderToken } from '@gateway/domain/order-token';
import { failed, type Result, success } from '@gateway/domain/result';
import { serviceOrderIdMax } from '@gateway/domain/service-order-id';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { storageFailure } from '../storage-outcome.ts';

export type OrderKey =
  | { readonly by: 'order_id'; readonly orderId: string }
  | { readonly by: 'service_order_id'; readonly serviceOrderId: bigint };

/** Finds one of the merchant's own orders. A value that can't be a key is `not_found` without a query. */
export async function findOrder({ store }: GatewayDeps, call: Call, key: OrderKey): Promise<Result<Order, Failure>> {
  const notFound = { kind: 'not_found', unknown: key.by } as const;
  const merchantId = call.client.merchant.id;
  if (key.by === 'order_id') {
    if (textError(fieldRules.order_id, key.orderId) !== undefined) return failed(notFound);
    const found = await store.findByOrderId(merchantId, key.orderId, call.timeLeftMs());
    return resultOf(found, notFound, ({ order }) => order);
  }
  if (key.serviceOrderId < 1n || key.serviceOrderId > BigInt(serviceOrderIdMax)) return failed(notFound);
  const found = await store.findByServiceOrderId(merchantId, Number(key.serviceOrderId), call.timeLeftMs());
  return resultOf(found, notFound, ({ order }) => order);
}

/** Finds what a payment link leads to, by the text after `/payment/`. */
export async function findPaymentLink(
  { store }: GatewayDeps,
  call: Call,
  tokenText: string,
): Promise<Result<LinkedOrder, Failure>> {
  const notFound = { kind: 'not_found', unknown: 'payment_link' } as const;
  const token = parseOrderToken(tokenText);
  if (token === undefined) return failed(notFound);
  const find = call.isAnonymous ? store.findForPage : store.findByToken;
  const found = await find(token, call.timeLeftMs());
  return resultOf(found, notFound, ({ order, merchant }) => ({ order, merchant }));
}

function resultOf<Found, Value>(
  outcome: FindOutcome<Found>,
  notFound: Failure,
  pick: (found: Found) => Value,
): Result<Value, Failure> {
  if (outcome.kind === 'found') return success(pick(outcome));
  return failed(outcome.kind === 'unknown' ? notFound : storageFailure(outcome.kind));
}
