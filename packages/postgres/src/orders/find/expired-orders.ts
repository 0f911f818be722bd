import type { ChangeOutcome, Order } from '@order-gateway/domain/orders';
import type { StoreFailure } from '@order-gateway/domain/result';
import type { BatchQueue } from '../../batches/batch-queue.ts';
import { orderOf, type ReadRow } from '../order-rows.ts';

/** Stores that an order has expired, with its event. Returns `conflict` if another change came first. */
export type ExpireOrder = (order: Order, timeoutMs: number) => Promise<ChangeOutcome>;

/**
 * The outcome of a read that found expired orders that are still stored as unpaid. It is valid once their expiry is
 * stored.
 */
export interface Unstored<Outcome> {
  readonly kind: 'expiry not stored';
  readonly expired: readonly Order[];
  readonly outcome: Outcome;
}

/**
 * Returns the outcome of a read, marked as {@link Unstored} if one of its rows is an expired order that is stored as
 * unpaid.
 */
export function unlessUnstored<Outcome>(rows: readonly ReadRow[], outcome: Outcome): Outcome | Unstored<Outcome> {
  const expired = rows.filter(({ orderStatus }) => orderStatus === null);
  return expired.length === 0 ? outcome : { kind: 'expiry not stored', expired: expired.map(orderOf), outcome };
}

function isUnstored<Outcome extends { readonly kind: string }>(
  read: Outcome | Unstored<Outcome> | StoreFailure,
): read is Unstored<Outcome> {
  return read.kind === 'expiry not stored';
}

/**
 * Wraps a queue whose reads can find expired orders that are stored as unpaid, and returns only what callers may see.
 * An order is shown as expired only if that is stored, because a cancellation that began before the expiry can still
 * commit (docs/decisions/040-store-expiry-before-showing-it.md). So the expiry of each such order is stored first, one
 * order per statement, which cannot deadlock with the sweep. If another change of the order came first, the read is
 * repeated.
 */
export function withExpiryStored<Item, Outcome extends { readonly kind: string }>(
  { add }: BatchQueue<Item, Outcome | Unstored<Outcome>>,
  expireOrder: ExpireOrder,
) {
  return async (item: Item, timeoutMs: number): Promise<Outcome | StoreFailure> => {
    const deadlineMs = performance.now() + timeoutMs;
    for (;;) {
      const read = await add(item, deadlineMs - performance.now());
      if (!isUnstored(read)) return read;
      const stored = await Promise.all(read.expired.map((order) => expireOrder(order, deadlineMs - performance.now())));
      const failure = stored.find((outcome) => outcome.kind !== 'changed' && outcome.kind !== 'conflict');
      if (failure !== undefined) return failure;
      if (stored.every(({ kind }) => kind === 'changed')) return read.outcome;
    }
  };
}
