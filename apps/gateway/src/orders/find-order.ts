import type { Failure } from '@gateway/domain/failure';
import { fieldRules, textFault } from '@gateway/domain/field-rules';
import type { Order } from '@gateway/domain/order';
import { serviceOrderIdMax } from '@gateway/domain/order-id';
import type { FindOutcome } from '@gateway/domain/order-store';
import { parseOrderToken } from '@gateway/domain/order-token';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { storageFailure } from '../storage-outcome.ts';

/** The key of one of a merchant's orders. */
export type OrderKey =
  | { readonly by: 'order_id'; readonly orderId: string }
  | { readonly by: 'service_order_id'; readonly serviceOrderId: bigint };

/** What a payment link leads to: the order and the name of the merchant who is paid. */
export interface PaymentLinkFacts {
  readonly order: Order;
  readonly merchantName: string;
}

const notFound: { readonly ok: false; readonly failure: Failure } = failed({ kind: 'not_found' });

/** Finds one of the merchant's own orders. A value that can't be a key is `not_found` without a query. */
export async function findOrder({ store }: GatewayDeps, call: Call, key: OrderKey): Promise<Result<Order, Failure>> {
  const merchantId = call.client.merchant.id;
  if (key.by === 'order_id') {
    if (textFault(fieldRules.order_id, key.orderId) !== undefined) return notFound;
    return resultOf(await store.findByOrderId(merchantId, key.orderId, call.timeLeftMs()), ({ order }) => order);
  }
  if (key.serviceOrderId < 1n || key.serviceOrderId > BigInt(serviceOrderIdMax)) return notFound;
  const found = await store.findByServiceOrderId(merchantId, Number(key.serviceOrderId), call.timeLeftMs());
  return resultOf(found, ({ order }) => order);
}

/** Finds what a payment link leads to, by the text after `/payment/`. */
export async function findPaymentLink(
  { store }: GatewayDeps,
  call: Call,
  tokenText: string,
): Promise<Result<PaymentLinkFacts, Failure>> {
  const token = parseOrderToken(tokenText);
  if (token === undefined) return notFound;
  return resultOf(await store.findByToken(token, call.timeLeftMs()), ({ order, merchantName }) => ({
    order,
    merchantName,
  }));
}

function resultOf<Found, Value>(outcome: FindOutcome<Found>, pick: (found: Found) => Value): Result<Value, Failure> {
  switch (outcome.kind) {
    case 'found':
      return success(pick(outcome));
    case 'unknown':
      return notFound;
    default:
      return failed(storageFailure(outcome.kind));
  }
}
