import type { Failure } from '@gateway/domain/failure';
import type { Result } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { type ChangedOrder, changeOrder } from './change-order.ts';
import { type FoundOrder, findOrder, type OrderKey } from './find-order.ts';

/** Cancels one of the merchant's own orders, unless it is paid or expired. */
export function cancelOrder(
  deps: GatewayDeps,
  call: Call,
  key: OrderKey,
): Promise<Result<ChangedOrder<FoundOrder>, Failure>> {
  return changeOrder(deps, call, () => findOrder(deps, call, key), { kind: 'cancel' });
}
