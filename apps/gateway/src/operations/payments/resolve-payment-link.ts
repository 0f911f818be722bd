import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import { parseLinkToken } from '@order-gateway/domain/requests/parse-payment';
import { failed, success } from '@order-gateway/domain/result';
import type { Operation, OperationDeps } from '../operation.ts';
import { findLinkToPay } from '../orders/find-order.ts';
import { checkoutOrder } from '../orders/order-response.ts';

type ResolvePaymentLinkDeps = Pick<OperationDeps, 'store' | 'now' | 'baseUrl' | 'signingSecrets'>;

export function resolvePaymentLinkOperation(deps: ResolvePaymentLinkDeps): Operation {
  return {
    method: CheckoutService.method.resolvePaymentLink,
    async handle(members, caller) {
      const token = parseLinkToken(members);
      if (!token.ok) return failed({ kind: 'invalid_request', errors: token.failure });
      const link = await findLinkToPay(deps, caller, token.value);
      if (!link.ok) return link;
      return success({ body: { order: checkoutOrder(deps, link.value) }, outcome: 'ok' });
    },
  };
}
