import { expect, test } from 'vitest';
import { broken, checkEverySchedule, gone, type Plan } from '../helpers/interleavings/deliveries.ts';

test.for<[string, Plan]>([
  ['fails once', { firstResponse: broken }],
  ['moves to another URL', { change: 'moves to another URL' }],
  ['moves away from a URL that fails', { change: 'moves to another URL', firstResponse: broken }],
  ['moves away from a URL that is gone', { change: 'moves to another URL', firstResponse: gone }],
  ['is disabled', { change: 'is disabled' }],
  ['is removed', { change: 'is removed' }],
])('an endpoint that %s at any step gets an event at least once while it is enabled', async ([, plan]) => {
  const explored = await checkEverySchedule(plan);
  process.stdout.write(`${JSON.stringify({ ...plan, ...explored })}\n`);
  expect(explored.schedules).toBeGreaterThan(100);
});
