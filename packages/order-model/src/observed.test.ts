import { expect, test } from 'vitest';
import { shownReversals } from './observed.ts';

test('describes the refunds and disputes that a response shows, sorted', () => {
  const shown = { payment_id: 'p-1', currency: 'EUR' };
  const refunds = [
    { ...shown, refund_id: 'r-2', amount: 4, status: 'FAILED', reason: 'closed_account' } as const,
    { ...shown, refund_id: 'r-1', amount: 0.5, status: 'PENDING' } as const,
  ];
  const disputes = [{ ...shown, dispute_id: 'd-1', amount: 10, status: 'OPEN' } as const];
  const [dispute, ...others] = [
    'dispute d-1 of p-1: 10.00 EUR OPEN',
    'refund r-1 of p-1: 0.50 EUR PENDING',
    'refund r-2 of p-1: 4.00 EUR FAILED closed_account',
  ];
  expect(shownReversals({ refunds, disputes })).toEqual([dispute, ...others]);
  expect([shownReversals({ refunds }), shownReversals({ disputes }), shownReversals({})]).toEqual([
    others,
    [dispute],
    [],
  ]);
});
