import type { Order } from '@gateway/domain/order';
import type { BatchQueue, QueueFailure } from './batch-queue.ts';
import type { OrderChanges } from './order-changes.ts';
import { orderOf, type ReadRow } from './order-rows.ts';

/** What a read found, right only once the expiry of the orders that are due is stored: past their end, and stored as open. */
export interface Due<Outcome> {
  readonly kind: 'due';
  readonly orders: readonly Order[];
  readonly outcome: Outcome;
}

/** The outcome of a read that found these rows. */
export function unlessDue<Outcome>(rows: readonly ReadRow[], outcome: Outcome): Outcome | Due<Outcome> {
  const due = rows.filter(({ orderStatus }) => orderStatus === null);
  return due.length === 0 ? outcome : { kind: 'due', orders: due.map(orderOf), outcome };
}

function isDue<Outcome extends { readonly kind: string }>(
  read: Outcome | Due<Outcome> | QueueFailure,
): read is Due<Outcome> {
  return read.kind === 'due';
}

/** Turns a queue whose reads may find orders that are due into a function with the outcomes that clients may see. */
export type Settle = ReturnType<typeof createSettle>;

/**
 * An order is shown as expired only if that is stored: a cancellation that began before the end may still commit. So each order
 * that is due is stored as expired first; one in a statement can't deadlock with the sweep. If another change was faster, that
 * order is not due any more, and the read is repeated (decision 040).
 */
export function createSettle(expireOrder: OrderChanges['expireOrder']) {
  return <Item, Outcome extends { readonly kind: string }>({ add }: BatchQueue<Item, Outcome | Due<Outcome>>) =>
    async (item: Item, timeoutMs: number): Promise<Outcome | QueueFailure> => {
      const endsAt = performance.now() + timeoutMs;
      for (;;) {
        const read = await add(item, endsAt - performance.now());
        if (!isDue(read)) return read;
        const stored = await Promise.all(read.orders.map((order) => expireOrder(order, endsAt - performance.now())));
        const failure = stored.find((outcome) => outcome.kind !== 'changed' && outcome.kind !== 'raced');
        if (failure !== undefined) return failure;
        if (stored.every(({ kind }) => kind === 'changed')) return read.outcome;
      }
    };
}
