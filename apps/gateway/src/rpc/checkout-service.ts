import type { ServiceImpl } from '@connectrpc/connect';
import {
  CheckoutService,
  RecordPaymentRequestSchema,
  ResolvePaymentLinkRequestSchema,
} from '@gateway/contract/gateway/v1/checkout_service_pb';
import { failed, success } from '@gateway/domain/result';
import type { GatewayDeps } from '../gateway-deps.ts';
import { findPaymentLink } from '../orders/find-order.ts';
import { recordPayment } from '../orders/record-payment.ts';
import { method, type RpcService } from './context.ts';
import { paymentLinkMessage, paymentMessage, readMessage } from './messages.ts';

/** The service for checkout systems, behind every protocol of both ports. Errors are thrown as Connect sends them. */
export function checkoutService(deps: GatewayDeps): RpcService {
  const implementation = {
    resolvePaymentLink: method(readMessage(ResolvePaymentLinkRequestSchema), async ({ orderToken }, call) => {
      const link = await findPaymentLink(deps, call, orderToken);
      // No payment starts for a disabled merchant. One that the customer has made is still recorded.
      if (link.ok && link.value.order.orderStatus === 'UN_PAID' && link.value.merchant.isDisabled)
        return failed({ kind: 'not_found', unknown: 'payment_link' });
      return link.ok ? success({ message: paymentLinkMessage(deps, link.value), outcome: 'ok' }) : link;
    }),

    recordPayment: method(readMessage(RecordPaymentRequestSchema), async (request, call) => {
      const recorded = await recordPayment(deps, call, request);
      if (!recorded.ok) return recorded;
      const { found, replayed } = recorded.value;
      return success({ message: paymentMessage(deps, found), outcome: replayed ? 'replayed' : 'ok' });
    }),
  } satisfies ServiceImpl<typeof CheckoutService>;
  return { descriptor: CheckoutService, implementation };
}
