import type { ChangeOutcome, OrderStore } from '@order-gateway/domain/orders';

/** Makes a change of an order. */
type ApplyChange<Change> = (change: Change, timeoutMs: number) => Promise<ChangeOutcome>;

/** The methods of a store that store a change of an order, with its events. */
type ChangingMethods = {
  [Name in keyof OrderStore]: OrderStore[Name] extends ApplyChange<never> ? Name : never;
}[keyof OrderStore];

/** Wraps a store of orders, so that each change of an order calls `wake`. */
export function notifying<Store extends OrderStore>(store: Store, wake: () => void): Store {
  const waking =
    <Change>(apply: ApplyChange<Change>): ApplyChange<Change> =>
    async (change, timeoutMs) => {
      const outcome = await apply(change, timeoutMs);
      if (outcome.kind === 'changed') wake();
      return outcome;
    };
  const changing: Pick<OrderStore, ChangingMethods> = {
    change: waking(store.change),
    changeReversals: waking(store.changeReversals),
    expireNow: waking(store.expireNow),
    refusePayment: waking(store.refusePayment),
  };
  return { ...store, ...changing };
}
