import { expect, test } from 'vitest';
import type { JournalEntry } from '../load/journal.ts';
import { auditTold } from './audit-journal.ts';
import { faultsIn, holdJournal } from './hold-journal.ts';

function order(number: number, more: Partial<JournalEntry> = {}): JournalEntry {
  return {
    ...{
      merchant: 0,
      orderId: `load-1-${number}`,
      amount: '10.00',
      serviceOrderId: number,
      orderToken: `token${number}`,
    },
    ...more,
  };
}

test('orders that are there as they were acknowledged are no fault, nor are those whose answers were lost', async () => {
  const counts = await holdJournal([order(1), order(2), order(1)], [order(2), order(3), order(1)]);
  expect(counts).toEqual({
    ...{ acknowledged: 2, kept: 3, unacknowledged: 1, lost: 0, duplicated: 0, changed: 0, examples: [] },
  });
  expect(faultsIn({ ...counts, unreadable: 0 })).toBe(0);
  expect(faultsIn({ ...counts, unreadable: 1 })).toBe(1);
});

test.for([
  ['lost', [order(1), order(2)], [order(1)]],
  ['changed', [order(1)], [order(1, { amount: '10.01' })]],
  ['changed', [order(1)], [order(1, { orderToken: 'another' })]],
  ['changed', [order(1)], [order(1, { serviceOrderId: 9 })]],
  ['changed', [order(1)], [order(1, { merchant: 1 })]],
  ['changed', [order(1), order(1, { orderToken: 'another' })], [order(1)]],
  ['duplicated', [order(1)], [order(1), order(1, { merchant: 0 })]],
  ['duplicated', [], [order(1), order(1, { merchant: 1, orderToken: 'another', serviceOrderId: 9 })]],
  ['duplicated', [], [order(1), order(2, { orderToken: 'token1' })]],
  ['duplicated', [], [order(1), order(2, { serviceOrderId: 1 })]],
] as const)('an order that is %s is counted as such and alone', async ([kind, entries, kept]) => {
  const counts = await holdJournal(entries, kept);
  const { lost, duplicated, changed } = counts;
  expect({ lost, duplicated, changed }).toEqual({ lost: 0, duplicated: 0, changed: 0, [kind]: 1 });
  expect(faultsIn({ ...counts, unreadable: 0 })).toBe(1);
  expect(auditTold({ ...counts, unreadable: 0 })).toContain(`1 ${kind}`);
  expect(counts.examples).toHaveLength(1);
});
