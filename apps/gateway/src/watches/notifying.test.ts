import type { ChangeOutcome, OrderStore } from '@order-gateway/domain/orders';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { expect, test } from 'vitest';
import { notifying } from './notifying.ts';

test.each(['change', 'changeReversals', 'expireNow', 'refusePayment'] as const)(
  '%s notifies of a change that was stored, such as a refund, and of no other outcome',
  async (name) => {
    const wakes: true[] = [];
    const wakesAfter = async (outcome: ChangeOutcome) => {
      const store: OrderStore = { ...createInMemoryOrderStore(), [name]: async () => outcome };
      const apply = notifying(store, () => wakes.push(true))[name] as (change: unknown) => Promise<ChangeOutcome>;
      expect(await apply(undefined)).toBe(outcome);
      return wakes.length;
    };
    expect(await wakesAfter({ kind: 'conflict' })).toBe(0);
    expect(await wakesAfter({ kind: 'unavailable' })).toBe(0);
    expect(await wakesAfter({ kind: 'changed' })).toBe(1);
  },
);
