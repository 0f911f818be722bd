import { expect, test } from 'vitest';
import { type LinkedOrder, mayBePaid } from './order-store.ts';

test.each([
  ['an unpaid order without a lease', true, 'UN_PAID', null, false],
  ['an unpaid order whose lease has ended', true, 'UN_PAID', { isLive: false }, false],
  ['an unpaid order with a live lease', false, 'UN_PAID', { isLive: true }, false],
  ['an unpaid order of a disabled merchant', false, 'UN_PAID', null, true],
  ['a paid order', false, 'PAID', null, false],
] as const)('whether the payment of %s may start: %s', (_, isAllowed, orderStatus, lease, isDisabled) => {
  expect(mayBePaid({ order: { orderStatus, lease }, merchant: { isDisabled } } as LinkedOrder)).toBe(isAllowed);
});
