import { expect, test } from 'vitest';
import type { Run } from './measure.ts';
import { reportOf } from './report.ts';
import { median } from './sections.ts';

const run: Run = {
  ordersPerSecond: 15_000,
  p50Ms: 4,
  p99Ms: 9.25,
  failed: 1,
  stored: 120_000,
  cpuMicroseconds: 60.4,
  allocatedBytes: 38_460,
  databaseCpuMicroseconds: 30,
  senderCpuMicroseconds: 40,
  memoryMib: [100, 101, 102, 103, 110, 120, 130, 140],
};
const pgbench: Run = {
  ordersPerSecond: 10_000,
  p50Ms: Number.NaN,
  p99Ms: Number.NaN,
  failed: 0,
  stored: 80_000,
  cpuMicroseconds: Number.NaN,
  allocatedBytes: Number.NaN,
  databaseCpuMicroseconds: 200,
  senderCpuMicroseconds: 20,
  memoryMib: [Number.NaN],
};

test('the median is the middle value, or the mean of the two middle values if their number is even', () => {
  expect(median([3, 1, 2])).toBe(2);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBe(Number.NaN);
});

test('a section is reported as Markdown tables with medians and ratios', () => {
  const slower = { ...run, ordersPerSecond: 13_000 };
  const report = reportOf({
    title: '64 callers',
    rounds: 2,
    seconds: 8,
    concurrency: 64,
    runs: { gateway: [run, slower], pgbench: [pgbench] },
    ratios: [{ metric: 'ordersPerSecond', of: 'gateway', to: 'pgbench', median: 1.4 }],
  });
  expect(report.split('\n')).toEqual([
    '64 callers: medians of 2 interleaved rounds of 8 s',
    '',
    '|         | orders/s | CPU µs/order | garbage KB/order | database CPU µs/order | sender CPU µs/order | median ms | p99 ms | MiB, first to last quarter | failed |',
    '| ------- | -------: | -----------: | ---------------: | --------------------: | ------------------: | --------: | -----: | -------------------------: | -----: |',
    '| gateway |   14,000 |           60 |             38.5 |                    30 |                  40 |      4.00 |    9.3 |                 102 to 125 |      2 |',
    '| pgbench |   10,000 |              |                  |                   200 |                  20 |           |        |                            |      0 |',
    '',
    '| ratio                        | median |',
    '| ---------------------------- | -----: |',
    '| orders/s, gateway to pgbench |   1.40 |',
  ]);
});
