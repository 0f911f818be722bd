import type { Failure } from '@gateway/domain/failure';
import { fieldRules, textError } from '@gateway/domain/field-rules';
import type { MerchantId } from '@gateway/domain/merchant';
import type { Order } from '@gateway/domain/order';
import type { FindOutcome, LinkedOrder, OrderStore } from '@gateway/domain/order-store';
import { parseOrderToken } from '@gateway/domain/order-token';
import { failed, type Result, success } from '@gateway/domain/result';
import { serviceOrderIdMax } from '@gateway/domain/service-order-id';
import { storageFailure } from './storage-failure.ts';

/** Which of a merchant's orders is looked for. */
export type OrderKey =
  | { readonly by: 'order_id'; readonly orderId: string }
  | { readonly by: 'service_order_id'; readonly serviceOrderId: bigint };

interface FindDeps {
  readonly store: OrderStore;
}

/** Finds one of the merchant's own orders. What can't be an order's key is not looked for: there is none. */
export async function findOrder(
  { store }: FindDeps,
  merchantId: MerchantId,
  key: OrderKey,
  timeoutMs: number,
): Promise<Result<Order, Failure>> {
  if (key.by === 'order_id') {
    if (textError(fieldRules.order_id, key.orderId) !== undefined)
      return failed({ kind: 'not_found', unknown: key.by });
    return resultOf(await store.findByOrderId(merchantId, key.orderId, timeoutMs), key.by, ({ order }) => order);
  }
  if (key.serviceOrderId < 1n || key.serviceOrderId > BigInt(serviceOrderIdMax))
    return failed({ kind: 'not_found', unknown: key.by });
  const found = await store.findByServiceOrderId(merchantId, Number(key.serviceOrderId), timeoutMs);
  return resultOf(found, key.by, ({ order }) => order);
}

/** Finds what a payment link leads to, by the text in the place of its token. */
export async function findPaymentLink(
  { store }: FindDeps,
  tokenText: string,
  timeoutMs: number,
): Promise<Result<LinkedOrder, Failure>> {
  const token = parseOrderToken(tokenText);
  if (token === undefined) return failed({ kind: 'not_found', unknown: 'payment_link' });
  return resultOf(await store.findByToken(token, timeoutMs), 'payment_link', ({ order, merchantName }) => ({
    order,
    merchantName,
  }));
}

function resultOf<Found, Value>(
  outcome: FindOutcome<Found>,
  unknown: 'order_id' | 'service_order_id' | 'payment_link',
  pick: (found: Found) => Value,
): Result<Value, Failure> {
  switch (outcome.kind) {
    case 'found':
      return success(pick(outcome));
    case 'unknown':
      return failed({ kind: 'not_found', unknown });
    default:
      return failed(storageFailure(outcome.kind));
  }
}
