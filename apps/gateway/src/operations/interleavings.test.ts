import { anotherOrderInput } from '@order-gateway/domain/testing/sample-orders';
import { expect, test } from 'vitest';
import { type Explored, exploreAll } from '../../test/helpers/interleavings/explore.ts';
import {
  calls,
  create,
  orderWorld,
  refund,
  reversalCalls,
  simulatedPay,
} from '../../test/helpers/interleavings/order-world.ts';

// Explores every interleaving of the statements of a few calls on one order. A failed test prints the schedule that
// breaks a guarantee, and the calls that contradict each other. The slow test `test/operations/orders/interleavings`
// explores more calls, faults and steps of the clock.

const names = Object.keys(calls);
const named = (...callNames: string[]) => callNames.map((name) => calls[name] ?? create());

function report(title: string, explored: Explored): void {
  process.stdout.write(`${title}: ${JSON.stringify(explored)}\n`);
}

test('two calls on an order keep all guarantees despite a fault at any statement', async () => {
  const total = { states: 0, checked: 0, schedules: 0 };
  for (const [index, first] of names.entries()) {
    for (const second of names.slice(index)) {
      await exploreAll(orderWorld(named(first, second), { earlier: [create()], ticks: 0 }), { faultsMax: 1 }, total);
    }
  }
  report('two calls with a fault', total);
  expect(total.schedules).toBeGreaterThan(5_000);
});

test.for([
  [['pay by 2', 'cancel'], 1],
  [['start by 2', 'cancel'], 2],
  [['start by 2', 'start by 3', 'read'], 1],
  [['pay by 2', 'pay by 3', 'cancel'], 0],
  [['pay by 2 with its attempt', 'start by 2', 'start by 3', 'cancel'], 0],
  [['pay by 2', 'pay by 3', 'cancel', 'start by 3'], 0],
  [['start by 2', 'start by 2', 'end by 2', 'end by 2'], 0],
  [['simulate an expiry', 'pay by 3', 'cancel', 'read'], 0],
] as const)('the concurrent calls %j keep all guarantees, with %d steps of the clock', async ([callNames, ticks]) => {
  const explored = await exploreAll(orderWorld(named(...callNames), { earlier: [create()], ticks }), { faultsMax: 0 });
  report(`${callNames.join(', ')}, ${ticks} steps of the clock`, explored);
});

const paid = named('create', 'pay by 2');
const reversals = (...callNames: string[]) => callNames.map((name) => reversalCalls[name] ?? create());

test('two refunds, reports and disputes of a paid order keep all guarantees despite a fault at any statement', async () => {
  const total = { states: 0, checked: 0, schedules: 0 };
  const reversalNames = Object.keys(reversalCalls);
  for (const [index, first] of reversalNames.entries()) {
    for (const second of reversalNames.slice(index)) {
      const world = orderWorld(reversals(first, second), { earlier: paid, ticks: 0 });
      await exploreAll(world, { faultsMax: 1 }, total);
    }
  }
  report('two calls about refunds and disputes with a fault', total);
  expect(total.schedules).toBeGreaterThan(2_000);
});

test.for([
  { earlier: paid, planned: reversals('refund', 'refund again', 'record a dispute') },
  { earlier: paid, planned: reversals('refund', 'refund', 'record a refund of the provider') },
  {
    earlier: [...paid, ...reversals('refund')],
    planned: reversals('record the refund', 'record its failure', 'refund again'),
  },
  { earlier: [...paid, ...reversals('refund')], planned: reversals('record a dispute', 'record the refund', 'read') },
  { earlier: [create()], planned: [...named('pay by 2', 'pay by 3'), ...reversals('refund')] },
  { earlier: [...paid, ...reversals('refund')], planned: reversals('end the refund', 'record the refund', 'read') },
  {
    earlier: [create(), simulatedPay],
    planned: [refund('r', 500), refund('s', 500, 'fail'), refund('t', 500, 'fail later')],
  },
  // Two refunds, of which only one is the 100th.
  {
    earlier: [...paid, ...Array.from({ length: 99 }, (_, index) => refund(`r${index}`, 0.01))],
    planned: [refund('s', 0.01), refund('t', 0.01)],
  },
])('concurrent refunds and disputes keep all guarantees: $planned.length calls, %#', async ({ earlier, planned }) => {
  const explored = await exploreAll(orderWorld(planned, { earlier, ticks: 0 }), { faultsMax: 0 });
  report(planned.map(({ operation }) => operation).join(', '), explored);
});

test('an order is created once, and only the same order is a replay', async () => {
  const creations = [create(), create({ order_amount: 1 }), create()];
  const explored = await exploreAll(orderWorld(creations, { earlier: [], ticks: 0 }), { faultsMax: 1 });
  report('three creations with a fault', explored);
  const { order_id: _, ...fields } = anotherOrderInput;
  const changes = [
    ...Object.entries(fields).map(([name, value]) => ({ [name]: value })),
    ...[{ order_expires_at: '2026-09-21T14:14:51.000+00:00' }, { metadata: { cart: '8' } }],
  ];
  for (const changed of changes) {
    const two = [create({ metadata: { cart: '7' } }), create({ metadata: { cart: '7' }, ...changed })];
    await exploreAll(orderWorld(two, { earlier: [], ticks: 0 }), { faultsMax: 0 });
  }
});
