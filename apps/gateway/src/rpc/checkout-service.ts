import type { ServiceImpl } from '@connectrpc/connect';
import {
  CheckoutService,
  type RecordPaymentRequest,
  RecordPaymentRequestSchema,
  type ResolvePaymentLinkRequest,
  ResolvePaymentLinkRequestSchema,
} from '@gateway/contract/gateway/v1/checkout_service_pb';
import { success } from '@gateway/domain/result';
import type { GatewayDeps } from '../gateway-deps.ts';
import { findPaymentLink } from '../orders/find-order.ts';
import { recordPayment } from '../orders/record-payment.ts';
import { type RpcContext, type RpcService, rpcCallOf, runOrThrow } from './context.ts';
import { paymentLinkMessage, paymentMessage, readMessage } from './messages.ts';

/** The service for checkout systems, behind every protocol of both ports. Errors are thrown as Connect sends them. */
export function checkoutService(deps: GatewayDeps): RpcService {
  const implementation = {
    async resolvePaymentLink(request: ResolvePaymentLinkRequest, context: RpcContext) {
      const rpcCall = rpcCallOf(context);
      const { call } = rpcCall;
      const message = await runOrThrow(call, async () => {
        const read = readMessage(ResolvePaymentLinkRequestSchema, request, rpcCall);
        if (!read.ok) return read;
        const link = await findPaymentLink(deps, call, read.value.orderToken);
        return link.ok ? success(paymentLinkMessage(link.value)) : link;
      });
      call.succeed('ok');
      return message;
    },

    async recordPayment(request: RecordPaymentRequest, context: RpcContext) {
      const rpcCall = rpcCallOf(context);
      const { call } = rpcCall;
      const { message, replayed } = await runOrThrow(call, async () => {
        const read = readMessage(RecordPaymentRequestSchema, request, rpcCall);
        if (!read.ok) return read;
        const { orderToken, paymentId, paidAt, orderAmount, orderCurrency } = read.value;
        const input = { orderToken, paymentId, paidAt, amount: orderAmount, currency: orderCurrency };
        const recorded = await recordPayment(deps, call, input);
        if (!recorded.ok) return recorded;
        return success({ message: paymentMessage(recorded.value.found), replayed: recorded.value.replayed });
      });
      call.succeed(replayed ? 'replayed' : 'ok');
      if (replayed) context.responseHeader.set('idempotent-replayed', 'true');
      return message;
    },
  } satisfies ServiceImpl<typeof CheckoutService>;
  return { descriptor: CheckoutService, implementation };
}
