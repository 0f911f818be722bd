import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { formatMs, formatShare } from '../../command/text.ts';
import type { LoadReport } from './report.ts';
import { phasesText, type ReportSection } from './report-text.ts';

/** The members that every report has. Other members are shown if the report has them. */
const reportSchema = z.looseObject({
  started_at: z.string(),
  seconds: z.number(),
  settings: z.looseObject({ profile: z.string(), phases: z.array(z.unknown()) }),
  environment: z.looseObject({ machine: z.string() }),
  latency: z.looseObject({ count: z.number() }),
  by_second: z.array(z.unknown()),
  percentiles: z.array(z.unknown()),
  verdict: z.looseObject({ passed: z.boolean() }),
});

/** Reads a report that `--json` wrote. Throws an Error that names the file and what is wrong. */
export async function readReport(file: string): Promise<LoadReport> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'));
    const result = reportSchema.safeParse(value);
    if (!result.success) throw new Error(z.prettifyError(result.error));
    return value as LoadReport;
  } catch (error) {
    throw new Error(`${file} is not a report of \`load --json\`: ${Error.isError(error) ? error.message : error}`);
  }
}

/** Returns two reports side by side: what was measured, and what can explain a difference. */
export function comparisonSections(a: LoadReport, b: LoadReport): readonly ReportSection[] {
  return [
    { rows: [['measured', 'A', 'B', 'B to A'], ...measured.map((row) => comparedRow(row, a, b))] },
    { rows: [['run', 'A', 'B', ''], ...described.map(([name, of]) => describedRow(name, of(a), of(b)))] },
  ];
}

/** Returns the start of a run to the second, in UTC. */
export function startTime({ started_at }: LoadReport): string {
  return `${started_at.slice(0, 19).replace('T', ' ')} UTC`;
}

type Measured = readonly [name: string, of: (report: LoadReport) => number | undefined, format: typeof formatMs];

const perSecond = (rate: number | undefined) => (rate === undefined ? '-' : `${rate.toFixed(1)}/s`);
const share = (value: number | undefined) => (value === undefined ? '-' : formatShare(value));

const measured: readonly Measured[] = [
  ['done', ({ rate_done }) => rate_done, perSecond],
  ['errors', ({ error_rate }) => error_rate, share],
  ['dropped', ({ dropped_rate }) => dropped_rate, share],
  ...(['mean', 'p50', 'p90', 'p99', 'p99_9', 'max'] as const).map(
    (name): Measured => [name.replace('_', '.'), ({ latency }) => latency[name], formatMs],
  ),
];

const described: readonly (readonly [string, (report: LoadReport) => string])[] = [
  ['started', startTime],
  ['verdict', ({ verdict }) => (verdict.passed ? 'passed' : 'failed')],
  ['profile', ({ settings }) => settings.profile],
  ['load', ({ settings }) => phasesText(settings)],
  ['protocol', ({ settings }) => settings.protocol],
  ['seed', ({ settings }) => String(settings.seed)],
  ['machine', ({ environment }) => environment.machine],
  ['gateway', ({ environment }) => environment.gateway],
  ['Node.js', ({ environment }) => environment.node],
  ['PostgreSQL', ({ environment }) => environment.postgres],
];

function comparedRow([name, of, format]: Measured, a: LoadReport, b: LoadReport): string[] {
  const [before, after] = [of(a), of(b)];
  const change = before && after !== undefined ? (after / before - 1) * 100 : undefined;
  return [
    name,
    format(before),
    format(after),
    change === undefined ? '-' : `${change < 0 ? '' : '+'}${change.toFixed(1)} %`,
  ];
}

function describedRow(name: string, a: string, b: string): string[] {
  return [name, a, b, a === b ? '' : '≠'];
}
