import { expect, test } from 'vitest';
import { type LinkedOrder, mayBePaid } from './order-store.ts';

test.each([
  ['UN_PAID', undefined, false, true],
  ['UN_PAID', false, false, true],
  ['UN_PAID', true, false, false],
  ['UN_PAID', undefined, true, false],
  ['PAID', undefined, false, false],
] as const)(
  'with the status %s, live lease %s and disabled merchant %s, a payment may start: %s',
  (orderStatus, isLive, isDisabled, isAllowed) => {
    const lease = isLive === undefined ? null : { isLive };
    expect(mayBePaid({ order: { orderStatus, lease }, merchant: { isDisabled } } as LinkedOrder)).toBe(isAllowed);
  },
);
