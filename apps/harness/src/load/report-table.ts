import { protocols as doors } from '@gateway/fixtures/client';
import type { LatencySummary, LoadReport, Verdict } from './report.ts';
import { msTold, partTold, secondsTold, settingsTold } from './words.ts';

/** The whole report as a text for a terminal. */
export function reportTable(report: LoadReport): string {
  const { settings, latency, latency_by_door: byDoor, lateness, interrupted, deaths } = report;
  const rows = doors.flatMap((door) => (byDoor[door] === undefined ? [] : [latencyRow(door, byDoor[door])]));
  const all = rows.length === 1 ? [] : [latencyRow('all', latency)];
  const late = `sent late by p50 ${msTold(lateness.p50)}, p99 ${msTold(lateness.p99)}: the generator's own part in these latencies`;
  return [
    ...(interrupted ? ['Interrupted: this is what was done until then.', ''] : []),
    ...deaths.flatMap((reason) => [`A sending process died: ${reason}. This is what was done until then.`, '']),
    columns([['target', report.target], ...settingsTold(settings)]),
    '',
    columns(countRows(report)),
    '',
    columns([['latency', 'calls', 'mean', 'p50', 'p90', 'p99', 'p99.9', 'max'], ...rows, ...all]),
    // In the closed loop nothing is due before it is sent.
    ...(settings.mode === 'open' ? [late] : []),
    '',
    columns([['outcome', 'calls', 'wrong'], ...outcomeRows(report)]),
    '',
    verdictTold(report.verdict),
    '',
  ].join('\n');
}

function countRows(report: LoadReport): string[][] {
  const { sent, done, errors, dropped, unanswered, due, seconds } = report;
  return [
    ['due', String(due), `in ${secondsTold(seconds)}`],
    ['sent', String(sent), `${unanswered} given up without an answer`],
    ['done', String(done), `${report.rate_done.toFixed(1)}/s`],
    ['errors', String(errors), partTold(report.error_rate)],
    ['dropped', String(dropped), partTold(report.dropped_rate)],
  ];
}

function latencyRow(name: string, { count, mean, p50, p90, p99, p99_9, max }: LatencySummary): string[] {
  return [name, String(count), ...[mean, p50, p90, p99, p99_9, max].map(msTold)];
}

function outcomeRows({ outcomes, unanswered }: LoadReport): string[][] {
  const rows = outcomes.map(({ outcome, count, wrong }) => [outcome, String(count), wrong === 0 ? '' : String(wrong)]);
  return unanswered === 0 ? rows : [...rows, ['given up', String(unanswered), String(unanswered)]];
}

/** The thresholds, each with what it allows and what came. */
function verdictTold({ passed, judged }: Verdict): string {
  if (judged.length === 0) return passed ? 'no thresholds were set' : 'failed';
  const rows = judged.map(({ threshold, limit, actual, passed: met }) => [
    met ? 'ok' : 'MISSED',
    threshold,
    `${actual === undefined ? 'unknown' : roundedTo3(actual)}`,
    `at most ${limit}`,
  ]);
  return `${columns(rows)}\n${passed ? 'passed' : 'failed'}`;
}

function roundedTo3(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
