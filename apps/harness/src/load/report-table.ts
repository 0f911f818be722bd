import { columns, formatMs, formatSeconds, formatShare } from '../command/text.ts';
import type { LoadSettings } from './profile.ts';
import type { LatencySummary, LoadReport } from './report.ts';

/** A table: its heading and rows of cells. */
export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The complete report as text for a terminal. */
export function reportTable(report: LoadReport): string {
  const { verdict, lateness, settings, interrupted, failure } = report;
  const late = `sent late by p50 ${formatMs(lateness.p50)}, p99 ${formatMs(lateness.p99)}: the generator's own part in these latencies`;
  const sections = [
    ...(interrupted ? ['Interrupted: this is what was done until then.'] : []),
    ...(failure === undefined ? [] : [`The run ended early: ${failure}. This is what was done until then.`]),
    formatTable(settingsTable(report)),
    formatTable(countsTable(report)),
    // In the closed loop nothing is due before it is sent.
    [formatTable(latencyTable(report)), ...(settings.mode === 'open' ? [late] : [])].join('\n'),
    formatTable(outcomesTable(report)),
    verdict.judged.length === 0 ? 'no thresholds were set' : formatTable(thresholdsTable(report)),
  ];
  const result = verdict.judged.length === 0 && verdict.passed ? [] : [verdict.passed ? 'passed' : 'failed'];
  return `${[...sections, ...result].join('\n\n')}\n`;
}

/** What was sent where. */
export function settingsTable({ settings, target }: LoadReport): Table {
  const open = settings.mode === 'open';
  const rows: [string, string][] = [
    ['target', target],
    ['profile', settings.profile],
    ['mode', open ? 'open: calls are sent when they are due' : 'closed: clients wait for their responses'],
    ['protocol', settings.protocol],
    ['rate', open ? formatRates(settings) : `as responses come, ${formatSeconds(totalSeconds(settings))}`],
    ['connections', `${settings.connections} for each protocol`],
    ...(open ? [['pending at most', String(settings.max_pending)] as [string, string]] : []),
    ['merchants', String(settings.merchants)],
    ['repeated orders', formatShare(settings.replay_share)],
    ['calls that must fail', formatShare(settings.invalid_share)],
    ['look up, pay, cancel, list', lifeShares(settings).map(formatShare).join(', ')],
    ['seed', String(settings.seed)],
  ];
  return { head: ['setting', 'value'], rows };
}

/** How many calls were sent and what became of them. */
function countsTable({ sent, done, errors, dropped, unanswered, due, ...rest }: LoadReport): Table {
  const rows = [
    ['due', String(due), `in ${formatSeconds(rest.seconds)}`],
    ['sent', String(sent), `${unanswered} without a response at the end`],
    ['done', String(done), `${rest.rate_done.toFixed(1)}/s`],
    ['errors', String(errors), formatShare(rest.error_rate)],
    ['dropped', String(dropped), formatShare(rest.dropped_rate)],
  ];
  return { head: ['calls', 'number', ''], rows };
}

/** Latencies by protocol. */
export function latencyTable({ latency, latency_by_protocol: byProtocol }: LoadReport): Table {
  const row = (name: string, { count, mean, p50, p90, p99, p99_9, max }: LatencySummary) => [
    ...[name, String(count), ...[mean, p50, p90, p99, p99_9, max].map(formatMs)],
  ];
  const rows = Object.entries(byProtocol).map(([name, summary]) => row(name, summary));
  const all = rows.length === 1 ? [] : [row('all', latency)];
  return { head: ['latency', 'calls', 'mean', 'p50', 'p90', 'p99', 'p99.9', 'max'], rows: [...rows, ...all] };
}

/** How often each outcome came. */
export function outcomesTable({ outcomes, unanswered }: LoadReport): Table {
  const rows = outcomes.map(({ outcome, count, wrong }) => [outcome, String(count), String(wrong)]);
  if (unanswered > 0) rows.push(['pending at the end', String(unanswered), String(unanswered)]);
  return { head: ['outcome', 'calls', 'wrong'], rows };
}

/** The thresholds with what was measured. */
export function thresholdsTable({ verdict }: LoadReport): Table {
  const rows = verdict.judged.map(({ threshold, limit, actual, passed }) => {
    const measured = actual === undefined ? 'unknown' : String(Number(actual.toPrecision(3)));
    return [threshold, measured, `at most ${limit}`, passed ? 'met' : 'MISSED'];
  });
  return { head: ['threshold', 'measured', 'allowed', 'verdict'], rows };
}

function formatTable({ head, rows }: Table): string {
  return columns([head, ...rows]);
}

function lifeShares({ get_share, pay_share, cancel_share, list_share }: LoadSettings): number[] {
  return [get_share, pay_share, cancel_share, list_share];
}

function totalSeconds({ phases }: LoadSettings): number {
  return phases.reduce((sum, phase) => sum + phase.seconds, 0);
}

/** The first phases describe a profile; thousands of repeated ones would not. */
const phasesShown = 6;

function formatRates({ phases }: LoadSettings): string {
  const shown = phases.slice(0, phasesShown).map(({ seconds, rate, to }) => {
    return `${rate === to ? `${rate}/s` : `${rate}/s to ${to}/s`} for ${formatSeconds(seconds)}`;
  });
  const more = phases.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? `, and ${more} more phases` : ''}`;
}
