import type { Failure } from '@gateway/domain/failure';
import type { Order } from '@gateway/domain/order';
import { type Result, success } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { type ChangedOrder, changeOrder } from './change-order.ts';
import { findOrder, type OrderKey } from './find-order.ts';

/** Cancels one of the merchant's own orders, unless it is paid or expired. */
export function cancelOrder(
  deps: GatewayDeps,
  call: Call,
  key: OrderKey,
): Promise<Result<ChangedOrder<{ readonly order: Order }>, Failure>> {
  const find = async () => {
    const order = await findOrder(deps, call, key);
    return order.ok ? success({ order: order.value }) : order;
  };
  return changeOrder(deps, call, find, { kind: 'cancel' });
}
