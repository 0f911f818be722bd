import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import { isHeldBy } from '@order-gateway/domain/orders/order-states';
import type { LinkedOrder } from '@order-gateway/domain/orders/order-store';
import { type AttemptInput, parseAttempt } from '@order-gateway/domain/requests/parse-payment';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { type Caller, type Operation, type OperationDeps, outcomeOf } from '../operation.ts';
import type { ChangedOrder } from '../orders/change-order.ts';
import { findPaymentLink } from '../orders/find-order.ts';
import { checkoutOrder } from '../orders/order-response.ts';
import { storageFailure } from '../retry-after.ts';

type EndPaymentDeps = Pick<OperationDeps, 'store'>;

export function endPaymentOperation(
  deps: EndPaymentDeps & Pick<OperationDeps, 'now' | 'baseUrl' | 'signingSecrets'>,
): Operation {
  return {
    method: CheckoutService.method.endPayment,
    async handle(members, caller) {
      const ended = await endPayment(deps, caller, members);
      if (!ended.ok) return ended;
      return success({ body: { order: checkoutOrder(deps, ended.value.found) }, outcome: outcomeOf(ended.value) });
    },
  };
}

/** Ends the lease of a payment attempt, if it holds the order of a payment link. */
export async function endPayment(
  deps: EndPaymentDeps,
  caller: Caller,
  { order_token, attempt_id }: AttemptInput,
): Promise<Result<ChangedOrder<LinkedOrder>, Failure>> {
  const parsed = parseAttempt({ order_token, attempt_id });
  if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
  const { orderToken, attemptId } = parsed.value;
  const attempt = { checkoutId: caller.account.id, attemptId };
  let replayed = true;
  for (;;) {
    // Read again after the change: an order that is past its expiry expires with its lease.
    const found = await findPaymentLink(deps.store.findByToken, caller, orderToken);
    if (!found.ok) return found;
    if (!isHeldBy(found.value.order.lease, attempt)) return success({ found: found.value, replayed });
    const outcome = await deps.store.endPayment(found.value.order, attempt, caller.timeLeftMs());
    if (outcome.kind === 'changed') replayed = false;
    else if (outcome.kind !== 'conflict') return failed(storageFailure(outcome.kind));
  }
}
