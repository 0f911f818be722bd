import { expect, test } from 'vitest';
import { exploreAll } from '../helpers/interleavings/explore.ts';
import { calls, orderWorld, type SentCall } from '../helpers/interleavings/order-world.ts';

const all = Object.values(calls);

/** Every choice of this many calls. The same call may occur several times. */
function* choicesOf(count: number, from = 0): Generator<SentCall[]> {
  if (count === 0) yield [];
  else
    for (let index = from; index < all.length; index += 1) {
      for (const rest of choicesOf(count - 1, index)) yield [all[index] as SentCall, ...rest];
    }
}

test.for([
  { count: 2, ticks: 2, faultsMax: 0 },
  { count: 2, ticks: 1, faultsMax: 1 },
  { count: 3, ticks: 0, faultsMax: 0 },
  { count: 3, ticks: 0, faultsMax: 1 },
  { count: 4, ticks: 0, faultsMax: 0 },
])(
  'every choice of $count calls keeps all promises with $ticks steps of the clock and $faultsMax faults',
  async (plan) => {
    const explored = { states: 0, checked: 0, schedules: 0 };
    for (const isCreated of [true, false]) {
      for (const sent of choicesOf(plan.count)) {
        const { faultsMax } = plan;
        const faults = ['loses the response', 'fails', 'crashes'] as const;
        await exploreAll(
          orderWorld(sent, { isCreated, ticks: plan.ticks }),
          { faultsMax, faults: [...faults] },
          explored,
        );
      }
    }
    process.stdout.write(`${JSON.stringify({ ...plan, ...explored })}\n`);
    expect(explored.schedules).toBeGreaterThan(explored.checked);
  },
);
