import type { Failure } from '@gateway/domain/failure';
import type { Decision } from '@gateway/domain/order-states';
import { failed, type Result, success } from '@gateway/domain/result';
import type { FoundOrder } from './find-order.ts';
import type { Deadline, OperationDeps } from './operation.ts';
import { storageFailure } from './storage-failure.ts';

export interface ChangedOrder<Found extends FoundOrder> {
  /** What was found, with the order after the change. */
  readonly found: Found;
  /** Whether the change was made before. */
  readonly replayed: boolean;
}

/**
 * Finds an order and changes its state, if the domain decides so. If another change is faster, the order is read again and
 * decided anew: at most as often as an order has states.
 */
export async function changeOrder<Found extends FoundOrder>(
  deps: Pick<OperationDeps, 'store'>,
  deadline: Deadline,
  find: () => Promise<Result<Found, Failure>>,
  decide: (found: Found) => Result<Decision, Failure>,
): Promise<Result<ChangedOrder<Found>, Failure>> {
  for (;;) {
    const found = await find();
    if (!found.ok) return found;
    const decided = decide(found.value);
    if (!decided.ok) return decided;
    if (decided.value.kind === 'replayed') return success({ found: found.value, replayed: true });
    const { change } = decided.value;
    const outcome = await deps.store.change(change, deadline.timeLeftMs());
    if (outcome.kind === 'changed') {
      deadline.concerns(change.order);
      return success({ found: { ...found.value, order: change.order }, replayed: false });
    }
    if (outcome.kind !== 'raced') return failed(storageFailure(outcome.kind));
  }
}
