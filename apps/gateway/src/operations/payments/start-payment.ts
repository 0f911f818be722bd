import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import { formatTime, type PaymentLease } from '@order-gateway/domain/orders/order';
import { startFailure } from '@order-gateway/domain/orders/order-states';
import type { LinkedOrder } from '@order-gateway/domain/orders/order-store';
import { type AttemptInput, parseAttempt } from '@order-gateway/domain/requests/parse-payment';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Caller, Operation, OperationDeps } from '../operation.ts';
import { findLinkToPay } from '../orders/find-order.ts';
import { checkoutOrder } from '../orders/order-response.ts';
import { storageFailure } from '../retry-after.ts';

type StartPaymentDeps = Pick<OperationDeps, 'store' | 'now'>;

export function startPaymentOperation(
  deps: StartPaymentDeps & Pick<OperationDeps, 'baseUrl' | 'signingSecrets'>,
): Operation {
  return {
    method: CheckoutService.method.startPayment,
    async handle(members, caller) {
      const started = await startPayment(deps, caller, members);
      if (!started.ok) return started;
      const { link, lease } = started.value;
      const body = { order: checkoutOrder(deps, link), lease_ends_at: formatTime(lease.endsAtMs) };
      return success({ body, outcome: 'ok' });
    },
  };
}

/** Claims the order of a payment link for a payment attempt, or extends its lease. */
async function startPayment(
  deps: StartPaymentDeps,
  caller: Caller,
  input: AttemptInput,
): Promise<Result<{ readonly link: LinkedOrder; readonly lease: PaymentLease }, Failure>> {
  const parsed = parseAttempt(input);
  if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
  const { orderToken, attemptId, leaseSeconds } = parsed.value;
  const attempt = { checkoutId: caller.account.id, attemptId };
  for (;;) {
    const found = await findLinkToPay(deps, caller, orderToken);
    if (!found.ok) return found;
    const { order } = found.value;
    const failure = startFailure(order, attempt, deps.now());
    if (failure !== undefined) return failed(failure);
    const outcome = await deps.store.startPayment(order, attempt, leaseSeconds, caller.timeLeftMs());
    if (outcome.kind === 'changed') {
      return success({ link: found.value, lease: { ...attempt, endsAtMs: outcome.endsAtMs, isLive: true } });
    }
    if (outcome.kind !== 'conflict') return failed(storageFailure(outcome.kind));
  }
}
