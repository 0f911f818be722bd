import { CheckoutService } from '@order-gateway/contract/gateway/v1/checkout_service_pb';
import type { Failure } from '@order-gateway/domain/failure';
import { parseOrderToken } from '@order-gateway/domain/links/order-token';
import { refusalCodes } from '@order-gateway/domain/orders/order';
import { decide } from '@order-gateway/domain/orders/order-states';
import type { LinkedOrder } from '@order-gateway/domain/orders/order-store';
import { type PaymentInput, parsePayment } from '@order-gateway/domain/requests/parse-payment';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { type Caller, type Operation, type OperationDeps, outcomeOf } from '../operation.ts';
import { type ChangedOrder, changeOrder } from '../orders/change-order.ts';
import { linkNotFound, resultOf } from '../orders/find-order.ts';
import { checkoutOrder } from '../orders/order-response.ts';
import { endPayment } from './end-payment.ts';

type RecordPaymentDeps = Pick<OperationDeps, 'store' | 'countRefusal'>;

export function recordPaymentOperation(
  deps: RecordPaymentDeps & Pick<OperationDeps, 'now' | 'baseUrl' | 'signingSecrets'>,
): Operation {
  return {
    method: CheckoutService.method.recordPayment,
    async handle(members, caller) {
      const recorded = await recordPayment(deps, caller, members);
      if (!recorded.ok) return recorded;
      const order = checkoutOrder(deps, recorded.value.found);
      const { payment_id, paid_at } = order;
      return success({ body: { order, payment_id, paid_at }, outcome: outcomeOf(recorded.value) });
    },
  };
}

/**
 * Records the payment of an order, found by its payment link. Whether the payment is accepted or refused, the lease of its
 * attempt ends.
 */
export async function recordPayment(
  deps: RecordPaymentDeps,
  caller: Caller,
  input: PaymentInput,
): Promise<Result<ChangedOrder<LinkedOrder>, Failure>> {
  const parsed = parsePayment(input);
  if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
  const { orderToken, attemptId, ...fields } = parsed.value;
  const token = parseOrderToken(orderToken);
  if (token === undefined) return failed(linkNotFound);
  const reported = { ...fields, checkoutId: caller.account.id };
  const recorded = await changeOrder(
    deps,
    caller,
    async () => resultOf(caller, await deps.store.findForPayment(token, reported, caller.timeLeftMs()), linkNotFound),
    ({ order, isKnown, refused, nowMs }) =>
      decide(order, { kind: 'pay', payment: { ...reported, isKnown, refused } }, nowMs),
    ({ merchant }, code) => deps.countRefusal({ code, mode: merchant.mode }),
  );
  const isRefused = !recorded.ok && refusalCodes.some((code) => code === recorded.failure.kind);
  if (!isRefused || attemptId === undefined) return recorded;
  const ended = await endPayment(deps, caller, { order_token: orderToken, attempt_id: attemptId });
  return ended.ok ? recorded : ended;
}
