import { expect, test } from 'vitest';
import { exploreDeliveries } from '../helpers/interleavings/deliveries.ts';

// `delivery-interleavings.slow.test.ts` lets attempts fail, and changes the endpoint.

test('a delivery is made at least once, in any order of the steps of two processes, and if any step is the last', async () => {
  const explored = await exploreDeliveries({});
  process.stdout.write(`${JSON.stringify(explored)}\n`);
  expect(explored.schedules).toBeGreaterThan(50);
});
