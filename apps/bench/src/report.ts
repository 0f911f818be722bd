import type { Standing } from './rounds.ts';

export interface Report {
  /** `2026-11-20` */
  readonly date: string;
  readonly machine: string;
  /** Which programs sent the load. */
  readonly senders: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly standings: readonly Standing[];
  /** Further figures, each with what it is. */
  readonly facts: Readonly<Record<string, number>>;
}

/** The table of a run as Markdown. Ratios are to `pgbench` where it ran, else to the first contender. */
export function tableOf({ standings }: Report): string {
  const base = standings.find(({ name }) => name === 'pgbench') ?? standings[0];
  const rows = standings.map(({ name, ordersPerSecond, p50Ms, p99Ms, failed }) => [
    name,
    Math.round(ordersPerSecond).toLocaleString('en-US'),
    (ordersPerSecond / (base?.ordersPerSecond ?? 1)).toFixed(2),
    ifKnown(p50Ms, 2),
    ifKnown(p99Ms, 1),
    String(failed),
  ]);
  const head = ['', 'orders/s', `x ${base?.name}`, 'median ms', 'p99 ms', 'failed'];
  const widths = head.map((title, column) =>
    Math.max(...[head, ...rows].map((row) => row[column]?.length ?? title.length)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`;
  const rule = line(widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)));
  return [line(head), rule, ...rows.map(line)].join('\n');
}

function ifKnown(ms: number, digits: number): string {
  return Number.isNaN(ms) ? '' : ms.toFixed(digits);
}

const width = 760;
const barLeft = 240;
const barHeight = 22;
const rowHeight = 32;
const top = 56;

/** The run as a bar chart, with its date and machine, in colours that are legible on light and dark pages. */
export function chartOf({ standings, date, machine, rounds, seconds }: Report): string {
  const most = Math.max(...standings.map(({ ordersPerSecond }) => ordersPerSecond));
  const bars = standings.map(({ name, ordersPerSecond }, index) => {
    const y = top + index * rowHeight;
    const length = Math.max(1, Math.round((ordersPerSecond / most) * (width - barLeft - 90)));
    const fill = name.startsWith('Gateway') ? '#1f77b4' : '#8a8f98';
    return [
      `<text x="${barLeft - 10}" y="${y + 16}" text-anchor="end">${name}</text>`,
      `<rect x="${barLeft}" y="${y}" width="${length}" height="${barHeight}" rx="3" fill="${fill}"/>`,
      `<text x="${barLeft + length + 8}" y="${y + 16}">${Math.round(ordersPerSecond).toLocaleString('en-US')}</text>`,
    ].join('\n  ');
  });
  const height = top + standings.length * rowHeight + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="14" fill="#6b7280">
  <title>Orders created a second, by service</title>
  <text x="16" y="22" font-size="16">Orders created a second, each committed to disk</text>
  <text x="16" y="42" font-size="12">${date}, ${machine}; medians of ${rounds} interleaved rounds of ${seconds} s</text>
  ${bars.join('\n  ')}
</svg>
`;
}
