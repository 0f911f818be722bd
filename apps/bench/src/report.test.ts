import { expect, test } from 'vitest';
import { chartOf, type Report, tableOf } from './report.ts';
import { runRounds } from './rounds.ts';

const report: Report = {
  ...{ date: '2026-11-20', machine: '2 x CPU', senders: ['wrk'], rounds: 3, seconds: 8, facts: {} },
  standings: [
    { name: 'Gateway, JSON', ordersPerSecond: 15_000, p50Ms: 4, p99Ms: 9.25, failed: 0 },
    { name: 'pgbench', ordersPerSecond: 10_000, p50Ms: Number.NaN, p99Ms: Number.NaN, failed: 0 },
  ],
};

test('tells every rate as a multiple of what pgbench does', () => {
  expect(tableOf(report).split('\n')).toEqual([
    '|               | orders/s | x pgbench | median ms | p99 ms | failed |',
    '| ------------- | -------: | --------: | --------: | -----: | -----: |',
    '| Gateway, JSON |   15,000 |      1.50 |      4.00 |    9.3 |      0 |',
    '| pgbench       |   10,000 |      1.00 |           |        |      0 |',
  ]);
});

test('draws a bar for each, with date and machine', () => {
  const chart = chartOf(report);
  expect(chart.match(/<rect /g)?.length).toBe(2);
  expect(chart).toContain('2026-11-20, 2 x CPU; medians of 3 interleaved rounds of 8 s');
});

test('interleaves the rounds, begins each with another contender, and takes medians', async () => {
  const order: string[] = [];
  const standings = await runRounds([{ name: 'a' }, { name: 'b' }], 3, async ({ name }, round) => {
    order.push(name);
    return { answers: (round + 1) * 100, failed: round, durationMs: 1_000, p50Ms: 1, p99Ms: 2 };
  });
  expect(order.join('')).toBe('abbaab');
  expect(standings[0]).toEqual({ name: 'a', ordersPerSecond: 200, p50Ms: 1, p99Ms: 2, failed: 3 });
});
