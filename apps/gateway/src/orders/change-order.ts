import type { Failure } from '@gateway/domain/failure';
import { decide, type OrderAction } from '@gateway/domain/order-states';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { storageFailure } from '../storage-outcome.ts';
import type { FoundOrder } from './find-order.ts';

export interface ChangedOrder<Found extends FoundOrder> {
  /** What was found, with the order after the change. */
  readonly found: Found;
  /** Whether the change was made before. */
  readonly replayed: boolean;
}

/**
 * Finds an order and changes its state, if the domain allows the action. If another change is faster, the order is read again and
 * decided anew: at most as often as an order has states.
 */
export async function changeOrder<Found extends FoundOrder>(
  deps: GatewayDeps,
  call: Call,
  find: () => Promise<Result<Found, Failure>>,
  action: OrderAction,
): Promise<Result<ChangedOrder<Found>, Failure>> {
  for (;;) {
    const found = await find();
    if (!found.ok) return found;
    const decided = decide(found.value.order, action, deps.now());
    if (!decided.ok) return decided;
    if (decided.value.kind === 'replayed') return success({ found: found.value, replayed: true });
    const { change } = decided.value;
    const outcome = await deps.store.change(change, call.timeLeftMs());
    if (outcome.kind === 'changed') return success({ found: { ...found.value, order: change.order }, replayed: false });
    if (outcome.kind !== 'raced') return failed(storageFailure(outcome.kind));
  }
}
