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

export interface FoundOrder {
  readonly order: Order;
}

/** Finds one of the merchant's own orders. A value that can't be a key is `not_found` without a query. */
export async function findOrder(
  { store }: GatewayDeps,
  call: Call,
  key: OrderKey,
): Promise<Result<FoundOrder, Failure>> {
  const notFound = { kind: 'not_found', unknown: key.by } as const;
  const merchantId = call.client.merchant.id;
  if (key.by === 'order_id') {
    if (textError(fieldRules.order_id, key.orderId) !== undefined) return failed(notFound);
    return resultOf(await store.findByOrderId(merchantId, key.orderId, call.timeLeftMs()), notFound);
  }
  if (key.serviceOrderId < 1n || key.serviceOrderId > BigInt(serviceOrderIdMax)) return failed(notFound);
  const id = Number(key.serviceOrderId);
  return resultOf(await store.findByServiceOrderId(merchantId, id, call.timeLeftMs()), notFound);
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
  return resultOf(await find(token, call.timeLeftMs()), notFound);
}

function resultOf<Found>(outcome: FindOutcome<Found>, notFound: Failure): Result<Found, Failure> {
  if (outcome.kind === 'found') return success(outcome);
  return failed(outcome.kind === 'unknown' ? notFound : storageFailure(outcome.kind));
}
