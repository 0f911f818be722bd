import type { ServiceImpl } from '@connectrpc/connect';
import {
  CancelOrderRequestSchema,
  GetOrderRequestSchema,
  OrderService,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { Order } from '@gateway/domain/order';
import { success } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { cancelOrder } from '../orders/cancel-order.ts';
import { createOrder } from '../orders/create-order.ts';
import { findOrder } from '../orders/find-order.ts';
import { listOrders } from '../orders/list-orders.ts';
import { method, type RpcService } from './context.ts';
import { orderMessage, readListInput, readOrderInput, readOrderKey, recordMessage } from './messages.ts';

/** The service for merchants, behind every protocol of both ports. Errors are thrown as Connect sends them. */
export function orderService(deps: GatewayDeps): RpcService {
  const recordOf = (order: Order, { client }: Call) => recordMessage(order, client.merchant.mode, deps.baseUrl());
  const implementation = {
    createOrder: method(readOrderInput, async (input, call) => {
      const created = await createOrder(deps, call, input);
      if (!created.ok) return created;
      const { order, replayed } = created.value;
      return success({ message: orderMessage(order, deps.baseUrl()), outcome: replayed ? 'replayed' : 'created' });
    }),

    getOrder: method(readOrderKey(GetOrderRequestSchema), async (key, call) => {
      const found = await findOrder(deps, call, key);
      return found.ok ? success({ message: recordOf(found.value.order, call), outcome: 'ok' }) : found;
    }),

    cancelOrder: method(readOrderKey(CancelOrderRequestSchema), async (key, call) => {
      const cancelled = await cancelOrder(deps, call, key);
      if (!cancelled.ok) return cancelled;
      const { found, replayed } = cancelled.value;
      return success({ message: recordOf(found.order, call), outcome: replayed ? 'replayed' : 'ok' });
    }),

    listOrders: method(readListInput, async (input, call) => {
      const page = await listOrders(deps, call, input);
      if (!page.ok) return page;
      const orders = page.value.orders.map((order) => recordOf(order, call));
      return success({ message: { orders, nextCursor: page.value.nextCursor }, outcome: 'ok' });
    }),
  } satisfies ServiceImpl<typeof OrderService>;
  return { descriptor: OrderService, implementation };
}
