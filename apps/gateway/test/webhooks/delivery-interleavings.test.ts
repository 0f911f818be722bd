import { expect, test } from 'vitest';
import { exploreDeliveries } from '../helpers/interleavings/deliveries.ts';

// In `delivery-interleavings.slow.test.ts`, attempts fail and endpoints change as well.

test('a delivery is made at least once, in any order of the steps of two processes, and if one stops after any step', async () => {
  const explored = await exploreDeliveries({});
  process.stdout.write(`${JSON.stringify(explored)}\n`);
  expect(explored.schedules).toBeGreaterThan(50);
});
