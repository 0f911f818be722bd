import { expect, test } from 'vitest';
import { checkEverySchedule } from '../helpers/interleavings/deliveries.ts';

// In `delivery-interleavings.slow.test.ts`, attempts also fail and endpoints change.

test('an event is delivered at least once, in any order of the steps of two processes, even if one of them dies before any step', async () => {
  const explored = await checkEverySchedule({});
  process.stdout.write(`${JSON.stringify(explored)}\n`);
  expect(explored.schedules).toBeGreaterThan(50);
});
