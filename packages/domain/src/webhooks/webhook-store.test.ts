import { expect, test } from 'vitest';
import { deliveryStatusOf } from './webhook-store.ts';

const time = new Date() as never;

test.each([
  [time, null, 'delivered'],
  [time, time, 'delivered'],
  [null, time, 'pending'],
  [null, null, 'failed'],
])(
  'a delivery that was delivered at %s and whose next attempt is at %s is %s',
  (deliveredAt, nextAttemptAt, status) => {
    expect(deliveryStatusOf({ deliveredAt, nextAttemptAt })).toBe(status);
  },
);
