import type { ServiceImpl } from '@connectrpc/connect';
import {
  type CreateOrderRequest,
  type GetOrderRequest,
  GetOrderRequestSchema,
  OrderService,
  type ResolvePaymentLinkRequest,
  ResolvePaymentLinkRequestSchema,
} from '@gateway/contract/gateway/v1/order_service_pb';
import { failed, success } from '@gateway/domain/result';
import type { GatewayDeps } from '../gateway-deps.ts';
import { createOrder } from '../orders/create-order.ts';
import { findOrder, findPaymentLink } from '../orders/find-order.ts';
import { type RpcContext, type RpcService, rpcCallOf, runOrThrow } from './context.ts';
import { orderInputOf, orderKeyOf, orderMessage, paymentLinkMessage, readMessage } from './messages.ts';

/** The service behind every protocol of both ports. Errors are thrown as Connect sends them. */
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
        const read = readMessage(GetOrderRequestSchema, request, rpcCall);
        const key = read.ok ? orderKeyOf(read.value) : read;
        if (!key.ok) return key;
        const order = await findOrder(deps, call, key.value);
        return order.ok ? success(orderMessage(order.value, deps.baseUrl())) : order;
      });
      call.succeed('ok');
      return message;
    },

    /** A link of another merchant gets the same error as one that does not exist. */
    async resolvePaymentLink(request: ResolvePaymentLinkRequest, context: RpcContext) {
      const rpcCall = rpcCallOf(context);
      const { call } = rpcCall;
      const message = await runOrThrow(call, async () => {
        const read = readMessage(ResolvePaymentLinkRequestSchema, request, rpcCall);
        if (!read.ok) return read;
        const link = await findPaymentLink(deps, call, read.value.orderToken);
        if (!link.ok) return link;
        const { clientId, merchant } = call.client;
        const mayResolve = link.value.order.merchantId === merchant.id || deps.checkoutClients.has(clientId);
        return mayResolve
          ? success(paymentLinkMessage(link.value))
          : failed({ kind: 'not_found', unknown: 'payment_link' });
      });
      call.succeed('ok');
      return message;
    },
  } satisfies ServiceImpl<typeof OrderService>;
  return { descriptor: OrderService, implementation };
}
