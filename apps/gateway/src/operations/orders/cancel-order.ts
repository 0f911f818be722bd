import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Merchant } from '@order-gateway/domain/accounts/account';
import type { Failure } from '@order-gateway/domain/failure';
import { decide } from '@order-gateway/domain/orders/order-states';
import { type OrderKey, parseOrderKey } from '@order-gateway/domain/requests/order-key';
import { type Result, success } from '@order-gateway/domain/result';
import { type Caller, type Operation, type OperationDeps, outcomeOf } from '../operation.ts';
import { type ChangedOrder, changeOrder } from './change-order.ts';
import { type FoundOrder, findOrder } from './find-order.ts';
import { orderRecord } from './order-response.ts';

type CancelOrderDeps = Pick<OperationDeps, 'store' | 'now'>;

export function cancelOrderOperation(deps: CancelOrderDeps & Pick<OperationDeps, 'baseUrl'>): Operation {
  return {
    method: OrderService.method.cancelOrder,
    async handle(members, caller: Caller<Merchant>) {
      const key = parseOrderKey(members);
      if (!key.ok) return key;
      const cancelled = await cancelOrder(deps, caller, key.value);
      if (!cancelled.ok) return cancelled;
      const order = orderRecord(cancelled.value.found.order, caller.account.mode, deps.baseUrl());
      return success({ body: { order }, outcome: outcomeOf(cancelled.value) });
    },
  };
}

/** Cancels one of the merchant's own orders, unless it is paid or expired. */
export function cancelOrder(
  deps: CancelOrderDeps,
  caller: Caller<Merchant>,
  key: OrderKey,
): Promise<Result<ChangedOrder<FoundOrder>, Failure>> {
  return changeOrder(
    deps,
    caller,
    () => findOrder(deps, caller, key),
    ({ order }) => decide(order, { kind: 'cancel' }, deps.now()),
  );
}
