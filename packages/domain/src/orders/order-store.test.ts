import { expect, test } from 'vitest';
import { type LinkedOrder, mayBePaid } from './order-store.ts';

test.each([
  ['UN_PAID', undefined, false, true],
  ['UN_PAID', false, false, true],
  ['UN_PAID', true, false, false],
  ['UN_PAID', undefined, true, false],
  ['PAID', undefined, false, false],
] as const)(
  'a payment may start: %s, live lease %s, disabled merchant %s: %s',
  (orderStatus, isLive, isDisabled, isAllowed) => {
    const lease = isLive === undefined ? null : { isLive };
    expect(mayBePaid({ order: { orderStatus, lease }, merchant: { isDisabled } } as LinkedOrder)).toBe(isAllowed);
  },
);
