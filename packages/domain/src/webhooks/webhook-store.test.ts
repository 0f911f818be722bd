import { expect, test } from 'vitest';
import { deliveryStatusOf, returnSigner } from './webhook-store.ts';

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

test.each([
  ['the oldest enabled endpoint', [1, null, null], 1],
  ['the endpoint that was disabled last, if none is enabled', [1, 3, 2], 1],
  ['the oldest of those that were disabled at the same time', [1, 1], 0],
])('return links are signed by %s', (_, disabledAt, index) => {
  const endpoints = disabledAt.map((ms) => ({ disabledAt: ms === null ? null : new Date(ms) }));
  expect(returnSigner(endpoints as Parameters<typeof returnSigner>[0])).toBe(endpoints[index]);
  expect(returnSigner([])).toBeUndefined();
});
