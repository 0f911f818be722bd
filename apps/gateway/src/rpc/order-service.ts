import type { ServiceImpl } from '@connectrpc/connect';
import {
  type CancelOrderRequest,
  CancelOrderRequestSchema,
  type CreateOrderRequest,
  type GetOrderRequest,
  GetOrderRequestSchema,
  type ListOrdersRequest,
  OrderService,
} from '@gateway/contract/gateway/v1/order_service_pb';
import type { Order } from '@gateway/domain/order';
import { success } from '@gateway/domain/result';
import type { GatewayDeps } from '../gateway-deps.ts';
import { cancelOrder } from '../orders/cancel-order.ts';
import { createOrder } from '../orders/create-order.ts';
import { findOrder } from '../orders/find-order.ts';
import { listOrders } from '../orders/list-orders.ts';
import { answer, type RpcCall, type RpcContext, type RpcService } from './context.ts';
import { listInputOf, orderInputOf, orderKeyOf, orderMessage, readMessage, recordMessage } from './messages.ts';

/** The service for merchants, behind every protocol of both ports. Errors are thrown as Connect sends them. */
export function orderService(deps: GatewayDeps): RpcService {
  const recordOf = ({ call }: RpcCall, order: Order) => recordMessage(order, call.client.merchant.mode, deps.baseUrl());
  const implementation = {
    createOrder: (request: CreateOrderRequest, context: RpcContext) =>
      answer(context, async (rpcCall) => {
        const input = orderInputOf(request, rpcCall);
        if (!input.ok) return input;
        const created = await createOrder(deps, rpcCall.call, input.value);
        if (!created.ok) return created;
        const { order, replayed } = created.value;
        return success({ message: orderMessage(order, deps.baseUrl()), outcome: replayed ? 'replayed' : 'created' });
      }),

    getOrder: (request: GetOrderRequest, context: RpcContext) =>
      answer(context, async (rpcCall) => {
        const key = orderKeyOf(readMessage(GetOrderRequestSchema, request, rpcCall));
        if (!key.ok) return key;
        const order = await findOrder(deps, rpcCall.call, key.value);
        if (!order.ok) return order;
        return success({ message: recordOf(rpcCall, order.value), outcome: 'ok' });
      }),

    cancelOrder: (request: CancelOrderRequest, context: RpcContext) =>
      answer(context, async (rpcCall) => {
        const key = orderKeyOf(readMessage(CancelOrderRequestSchema, request, rpcCall));
        if (!key.ok) return key;
        const cancelled = await cancelOrder(deps, rpcCall.call, key.value);
        if (!cancelled.ok) return cancelled;
        const { found, replayed } = cancelled.value;
        return success({ message: recordOf(rpcCall, found.order), outcome: replayed ? 'replayed' : 'ok' });
      }),

    listOrders: (request: ListOrdersRequest, context: RpcContext) =>
      answer(context, async (rpcCall) => {
        const input = listInputOf(request, rpcCall);
        if (!input.ok) return input;
        const page = await listOrders(deps, rpcCall.call, input.value);
        if (!page.ok) return page;
        const orders = page.value.orders.map((order) => recordOf(rpcCall, order));
        return success({ message: { orders, nextCursor: page.value.nextCursor }, outcome: 'ok' });
      }),
  } satisfies ServiceImpl<typeof OrderService>;
  return { descriptor: OrderService, implementation };
}
