import type { ServiceImpl } from '@connectrpc/connect';
import {
  type CancelOrderRequest,
  CancelOrderRequestSchema,
  type CreateOrderRequest,
  type GetOrderRequest,
  GetOrderRequestSchema,
  type ListOrdersRequest,
  ListOrdersRequestSchema,
  OrderService,
} from '@gateway/contract/gateway/v1/order_service_pb';
import { success } from '@gateway/domain/result';
import type { GatewayDeps } from '../gateway-deps.ts';
import { cancelOrder } from '../orders/cancel-order.ts';
import { createOrder } from '../orders/create-order.ts';
import { findOrder } from '../orders/find-order.ts';
import { listOrders } from '../orders/list-orders.ts';
import { type RpcContext, type RpcService, rpcCallOf, runOrThrow } from './context.ts';
import { listInputOf, orderInputOf, orderKeyOf, orderMessage, readMessage, recordMessage } from './messages.ts';

/** The service for merchants, behind every protocol of both ports. Errors are thrown as Connect sends them. */
export function orderService(deps: GatewayDeps): RpcService {
  const implementation = {
    async createOrder(request: CreateOrderRequest, context: RpcContext) {
      const rpcCall = rpcCallOf(context);
      const { call } = rpcCall;
      const { message, replayed } = await runOrThrow(call, async () => {
        const input = orderInputOf(request, rpcCall);
        if (!input.ok) return input;
        const created = await createOrder(deps, call, input.value);
        if (!created.ok) return created;
        const { order, replayed } = created.value;
        return success({ message: orderMessage(order, deps.baseUrl()), replayed });
      });
      call.succeed(replayed ? 'replayed' : 'created');
      if (replayed) context.responseHeader.set('idempotent-replayed', 'true');
      return message;
    },

    async getOrder(request: GetOrderRequest, context: RpcContext) {
      const rpcCall = rpcCallOf(context);
      const { call } = rpcCall;
      const message = await runOrThrow(call, async () => {
        const key = orderKeyOf(readMessage(GetOrderRequestSchema, request, rpcCall));
        if (!key.ok) return key;
        const order = await findOrder(deps, call, key.value);
        return order.ok ? success(recordMessage(order.value, call.client.merchant.mode, deps.baseUrl())) : order;
      });
      call.succeed('ok');
      return message;
    },

    async cancelOrder(request: CancelOrderRequest, context: RpcContext) {
      const rpcCall = rpcCallOf(context);
      const { call } = rpcCall;
      const { message, replayed } = await runOrThrow(call, async () => {
        const key = orderKeyOf(readMessage(CancelOrderRequestSchema, request, rpcCall));
        if (!key.ok) return key;
        const cancelled = await cancelOrder(deps, call, key.value);
        if (!cancelled.ok) return cancelled;
        const { found, replayed } = cancelled.value;
        return success({ message: recordMessage(found.order, call.client.merchant.mode, deps.baseUrl()), replayed });
      });
      call.succeed(replayed ? 'replayed' : 'ok');
      if (replayed) context.responseHeader.set('idempotent-replayed', 'true');
      return message;
    },

    async listOrders(request: ListOrdersRequest, context: RpcContext) {
      const rpcCall = rpcCallOf(context);
      const { call } = rpcCall;
      const message = await runOrThrow(call, async () => {
        const read = readMessage(ListOrdersRequestSchema, request, rpcCall);
        if (!read.ok) return read;
        const page = await listOrders(deps, call, listInputOf(read.value));
        if (!page.ok) return page;
        const { orders, nextCursor } = page.value;
        const { mode } = call.client.merchant;
        return success({ orders: orders.map((order) => recordMessage(order, mode, deps.baseUrl())), nextCursor });
      });
      call.succeed('ok');
      return message;
    },
  } satisfies ServiceImpl<typeof OrderService>;
  return { descriptor: OrderService, implementation };
}
