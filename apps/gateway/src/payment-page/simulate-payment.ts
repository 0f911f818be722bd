import { randomBase62 } from '@gateway/domain/base62';
import type { Failure } from '@gateway/domain/failure';
import { decide } from '@gateway/domain/order-states';
import type { LinkedOrder } from '@gateway/domain/order-store';
import { failed, type Result, success } from '@gateway/domain/result';
import { changeOrder } from '../orders/change-order.ts';
import { findPaymentLink } from '../orders/find-order.ts';
import type { Deadline, OperationDeps } from '../orders/operation.ts';

/**
 * Pays a test order in full without moving money (`pay`), or declines the payment, which changes nothing (`decline`). Paying again
 * returns the paid order. Live orders, and those of a disabled merchant, are not found.
 */
export async function simulatePayment(
  deps: Pick<OperationDeps, 'store' | 'now' | 'randomBytes'>,
  deadline: Deadline,
  orderToken: string,
  outcome: string | null,
): Promise<Result<LinkedOrder, Failure>> {
  const find = () => findPaymentLink(deps.store.findForPage, deadline, orderToken);
  const found = await find();
  if (!found.ok) return found;
  const { order, merchant } = found.value;
  if (merchant.mode !== 'test' || merchant.isDisabled) return failed({ kind: 'not_found', unknown: 'payment_link' });
  if (outcome !== 'pay' && outcome !== 'decline') {
    return failed({
      kind: 'invalid_request',
      errors: [{ field: 'outcome', code: 'not_allowed', message: 'must be pay or decline' }],
    });
  }
  const payment = {
    checkoutId: null,
    isKnown: false,
    paymentId: `test_${randomBase62(24, deps.randomBytes)}`,
    paidAtMs: deps.now(),
    amount: order.fields.order_amount,
    currency: order.fields.order_currency,
  };
  const pay = ({ order }: LinkedOrder) => decide(order, { kind: 'pay', payment }, deps.now());
  if (outcome === 'decline') {
    const decided = pay(found.value);
    return decided.ok ? found : decided;
  }
  const paid = await changeOrder(deps, deadline, find, pay);
  if (paid.ok) return success(paid.value.found);
  return paid.failure.kind === 'order_already_paid' ? find() : paid;
}
