import { expect, test } from 'vitest';
import { exploreAll } from '../../helpers/interleavings/explore.ts';
import { calls, create, orderWorld, type PlannedCall, reversalCalls } from '../../helpers/interleavings/order-world.ts';

const everyCall = Object.values(calls);

/** Yields every combination of `count` calls, in which the same call may occur several times. */
function* combinations(count: number, from = 0): Generator<PlannedCall[]> {
  if (count === 0) yield [];
  else
    for (let index = from; index < everyCall.length; index += 1) {
      for (const rest of combinations(count - 1, index)) yield [everyCall[index] as PlannedCall, ...rest];
    }
}

test.for([
  { count: 2, ticks: 2, faultsMax: 0 },
  { count: 2, ticks: 1, faultsMax: 1 },
  { count: 3, ticks: 0, faultsMax: 0 },
  { count: 3, ticks: 0, faultsMax: 1 },
  { count: 4, ticks: 0, faultsMax: 0 },
])(
  'no combination of $count calls violates an invariant, with $ticks clock steps and up to $faultsMax faults',
  async (plan) => {
    const explored = { states: 0, checked: 0, schedules: 0 };
    const { count, ticks, faultsMax } = plan;
    for (const earlier of [[create()], []]) {
      for (const planned of combinations(count)) {
        const world = orderWorld(planned, { earlier, ticks });
        await exploreAll(world, { faultsMax, faults: ['loses the response', 'fails', 'crashes'] }, explored);
      }
    }
    process.stdout.write(`${JSON.stringify({ ...plan, ...explored })}\n`);
    expect(explored.schedules).toBeGreaterThan(explored.checked);
  },
);

test.for([
  { names: ['refund', 'refund again', 'record the refund', 'record a dispute'] },
  { names: ['refund', 'refund what is left', 'record a refund of the provider', 'record a dispute'] },
  { names: ['refund', 'end the refund', 'record the refund', 'record the end of the dispute'] },
])('the concurrent calls $names on a paid order violate no invariant', async ({ names }) => {
  const named = (name: string) => calls[name] ?? reversalCalls[name] ?? create();
  const world = orderWorld(names.map(named), { earlier: ['create', 'pay by 2'].map(named), ticks: 0 });
  const explored = await exploreAll(world, { faultsMax: 0 });
  process.stdout.write(`${names.join(', ')}: ${JSON.stringify(explored)}\n`);
  expect(explored.schedules).toBeGreaterThan(explored.checked);
});
