import { expect, test } from 'vitest';
import { headersOfFailure } from './problem.ts';

test.each([
  [1, '1'],
  [1_000, '1'],
  [1_001, '2'],
])('a client that has to wait %d ms is asked to wait %s s, which is never too early', (retryAfterMs, seconds) => {
  expect(headersOfFailure({ kind: 'payment_in_progress', retryAfterMs })).toEqual({ 'retry-after': seconds });
});
