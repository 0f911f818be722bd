import type { Failure } from '@order-gateway/domain/failure';
import type { RefusalCode } from '@order-gateway/domain/orders/order';
import type { Decision } from '@order-gateway/domain/orders/order-states';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { Deadline, OperationDeps } from '../operation.ts';
import { storageFailure } from '../retry-after.ts';
import type { FoundOrder } from './find-order.ts';

export interface ChangedOrder<Found extends FoundOrder> {
  /** What was found, with the order after the change. */
  readonly found: Found;
  /** Whether the change was made before. */
  readonly replayed: boolean;
}

/**
 * Finds an order and changes its state, if the domain decides so. If another change wins, the order is read and decided
 * again, at most as often as an order has states. `refused` is called with a refused payment once it is stored.
 */
export async function changeOrder<Found extends FoundOrder>(
  deps: Pick<OperationDeps, 'store'>,
  deadline: Deadline,
  find: () => Promise<Result<Found, Failure>>,
  decide: (found: Found) => Result<Decision, Failure>,
  refused: (found: Found, code: RefusalCode) => void = () => {},
): Promise<Result<ChangedOrder<Found>, Failure>> {
  for (;;) {
    const found = await find();
    if (!found.ok) return found;
    const decided = decide(found.value);
    if (!decided.ok) return decided;
    const decision = decided.value;
    if (decision.kind === 'replayed') return success({ found: found.value, replayed: true });
    const outcome = await (decision.kind === 'refuse'
      ? deps.store.refusePayment(decision.refusal, deadline.timeLeftMs())
      : deps.store.change(decision.change, deadline.timeLeftMs()));
    if (outcome.kind === 'changed') {
      if (decision.kind === 'refuse') {
        const { code } = decision.refusal.payment;
        refused(found.value, code);
        return failed({ kind: code });
      }
      const { order } = decision.change;
      deadline.concerns(order);
      return success({ found: { ...found.value, order }, replayed: false });
    }
    if (outcome.kind !== 'conflict') return failed(storageFailure(outcome.kind));
  }
}
