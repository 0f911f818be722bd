import { OrderService } from '@order-gateway/contract/gateway/v1/order_service_pb';
import type { Merchant } from '@order-gateway/domain/accounts/account';
import { parseOrderKey } from '@order-gateway/domain/requests/order-key';
import { success } from '@order-gateway/domain/result';
import type { Caller, Operation, OperationDeps } from '../operation.ts';
import { findOrder } from './find-order.ts';
import { orderRecord } from './order-response.ts';

export function getOrderOperation(deps: Pick<OperationDeps, 'store' | 'baseUrl'>): Operation {
  return {
    method: OrderService.method.getOrder,
    async handle(members, caller: Caller<Merchant>) {
      const key = parseOrderKey(members);
      if (!key.ok) return key;
      const found = await findOrder(deps, caller, key.value);
      if (!found.ok) return found;
      const order = orderRecord(found.value.order, caller.account.mode, deps.baseUrl());
      return success({ body: { order }, outcome: 'ok' });
    },
  };
}
