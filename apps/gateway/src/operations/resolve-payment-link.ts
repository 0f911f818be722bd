import { CheckoutService } from '@gateway/contract/gateway/v1/checkout_service_pb';
import { parseLinkToken } from '@gateway/domain/parse-payment';
import { failed, success } from '@gateway/domain/result';
import { findPaymentLink } from '../orders/find-order.ts';
import type { Operation, OperationDeps } from '../orders/operation.ts';
import { paymentLinkBody } from '../orders/order-response.ts';

type ResolvePaymentLinkDeps = Pick<OperationDeps, 'store' | 'now' | 'baseUrl' | 'signingSecrets'>;

export function resolvePaymentLinkOperation(deps: ResolvePaymentLinkDeps): Operation {
  return {
    method: CheckoutService.method.resolvePaymentLink,
    async handle(members, caller) {
      const token = parseLinkToken(members);
      if (!token.ok) return failed({ kind: 'invalid_request', errors: token.failure });
      const link = await findPaymentLink(deps.store.findByToken, caller, token.value);
      if (!link.ok) return link;
      const { order, merchant } = link.value;
      // No payment starts for a disabled merchant. One that the customer has made is still recorded.
      if (order.orderStatus === 'UN_PAID' && merchant.isDisabled) {
        return failed({ kind: 'not_found', unknown: 'payment_link' });
      }
      return success({ body: paymentLinkBody(deps, link.value), outcome: 'ok' });
    },
  };
}
