import type { Run } from './measure.ts';
import { type Measured, median } from './sections.ts';

/** Formats the medians and the ratios of a section as Markdown tables. */
export function reportOf({ title, rounds, seconds, runs, ratios }: Measured): string {
  const medians = Object.entries(runs).map(([name, contenderRuns]) => [
    name,
    ...Object.values(columns).map((show) => show(contenderRuns)),
  ]);
  const quotients = ratios.map(({ metric, of, to, median }) => [`${metrics[metric]}, ${of} to ${to}`, text(median, 2)]);
  return [
    `${title}: medians of ${rounds} interleaved rounds of ${seconds} s`,
    table([['', ...Object.keys(columns)], ...medians]),
    ...(ratios.length === 0 ? [] : [table([['ratio', 'median'], ...quotients])]),
  ].join('\n\n');
}

const metrics = {
  ordersPerSecond: 'orders/s',
  cpuMicroseconds: 'CPU',
  allocatedBytes: 'garbage',
  p50Ms: 'median',
  p99Ms: 'p99',
};

const columns: Readonly<Record<string, (runs: readonly Run[]) => string>> = {
  'orders/s': medianOf(({ ordersPerSecond }) => ordersPerSecond, 0),
  'CPU µs/order': medianOf(({ cpuMicroseconds }) => cpuMicroseconds, 0),
  'garbage KB/order': medianOf(({ allocatedBytes }) => allocatedBytes / 1_000, 1),
  'database CPU µs/order': medianOf(({ databaseCpuMicroseconds }) => databaseCpuMicroseconds, 0),
  'sender CPU µs/order': medianOf(({ senderCpuMicroseconds }) => senderCpuMicroseconds, 0),
  'median ms': medianOf(({ p50Ms }) => p50Ms, 2),
  'p99 ms': medianOf(({ p99Ms }) => p99Ms, 1),
  'MiB, first to last quarter': memoryOf,
  failed: (runs) => String(runs.reduce((sum, { failed }) => sum + failed, 0)),
};

function medianOf(pick: (run: Run) => number, digits: number): (runs: readonly Run[]) => string {
  return (runs) => text(median(runs.map(pick)), digits);
}

/** Shows how memory changes, by the medians of the first and the last quarter of all samples. */
function memoryOf(runs: readonly Run[]): string {
  const samples = runs.flatMap(({ memoryMib }) => memoryMib);
  const quarter = Math.ceil(samples.length / 4);
  const [first, last] = [samples.slice(0, quarter), samples.slice(samples.length - quarter)].map(median);
  return Number.isNaN(first) ? '' : `${text(first ?? 0, 0)} to ${text(last ?? 0, 0)}`;
}

function text(value: number, digits: number): string {
  if (Number.isNaN(value)) return '';
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/**
 * Formats rows as a Markdown table. The first row is the header. The first column is text, and the others are numbers.
 */
function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)));
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  const pad = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return [...rows.slice(0, 1), rule, ...rows.slice(1)].map((row) => `| ${row.map(pad).join(' | ')} |`).join('\n');
}
