import { auditRows } from '../../audit/audit.ts';
import { columns, formatMs, formatSeconds, formatShare } from '../../command/text.ts';
import { arrivalsOf, type LoadSettings } from '../profile/profile.ts';
import type { LatencySummary, LoadReport } from './report.ts';

/** A part of the report: text, or a table with its heading in the first row and an optional note below it. */
export type ReportSection = string | { readonly rows: readonly string[][]; readonly note?: string };

/** Returns the complete report as text. */
export function reportText(report: LoadReport): string {
  const { verdict } = report;
  const sections = [...reportSections(report), verdictSection(report)].map(sectionText);
  const result = verdict.judged.length === 0 && verdict.passed ? [] : [verdict.passed ? 'passed' : 'failed'];
  return `${[...sections, ...result].join('\n\n')}\n`;
}

export function sectionText(section: ReportSection): string {
  return typeof section === 'string' ? section : [columns(section.rows), section.note ?? []].flat().join('\n');
}

/** Returns the sections of the report, without its thresholds and result. */
export function reportSections(report: LoadReport): readonly ReportSection[] {
  const { audit, lateness, settings, interrupted, failure } = report;
  const late = `sent late by p50 ${formatMs(lateness.p50)}, p99 ${formatMs(lateness.p99)}: these delays of the generator are part of the latencies`;
  return [
    ...(audit === undefined ? [] : [{ rows: auditRows(audit), ...noteOf(audit.examples) }]),
    ...(interrupted ? ['Interrupted: the report covers the time until then.'] : []),
    ...(failure === undefined ? [] : [`The run ended early: ${failure}. The report covers the time until then.`]),
    { rows: settingsRows(report) },
    { rows: environmentRows(report) },
    { rows: countRows(report) },
    // A closed loop has no schedule, so no call can be late.
    { rows: latencyRows(report), ...(settings.mode === 'open' && { note: late }) },
    { rows: outcomeRows(report) },
    ...(report.slowest.length === 0 ? [] : [{ rows: slowestRows(report) }]),
  ];
}

const noteOf = (lines: readonly string[]) =>
  lines.length === 0 ? {} : { note: lines.map((line) => `  ${line}`).join('\n') };

function settingsRows({ settings, target }: LoadReport): string[][] {
  const { get_share, pay_share, cancel_share, list_share, start_share, end_share } = settings;
  const { refund_share, report_share, fail_share } = settings;
  const open = settings.mode === 'open';
  return [
    ['setting', 'value'],
    ['target', target],
    ['profile', settings.profile],
    ['mode', open ? 'open: calls follow a schedule' : 'closed: clients wait for their responses'],
    ['protocol', settings.protocol],
    ['rate', phasesText(settings)],
    ['connections', `${settings.connections} for each protocol`],
    ...(open ? [['pending at most', String(settings.max_pending)]] : []),
    ['merchants', String(settings.merchants)],
    ['repeated orders', formatShare(settings.replay_share)],
    ['calls that must fail', formatShare(settings.invalid_share)],
    ['look up, pay, cancel, list', [get_share, pay_share, cancel_share, list_share].map(formatShare).join(', ')],
    ['start and end payments', [start_share, end_share].map(formatShare).join(', ')],
    ['refund, report, end refunds', [refund_share, report_share, fail_share].map(formatShare).join(', ')],
    ['orders with metadata', formatShare(settings.metadata_share)],
    ['seed', String(settings.seed)],
  ];
}

export function environmentRows({ environment }: Pick<LoadReport, 'environment'>): string[][] {
  const { machine, gateway, node, postgres } = environment;
  return [
    ['environment', 'value'],
    ['machine', machine],
    ['gateway', gateway],
    ['Node.js', node],
    ['PostgreSQL', postgres],
  ];
}

function countRows({ sent, done, errors, dropped, unanswered, scheduled, ...rest }: LoadReport): string[][] {
  return [
    ['calls', 'number', ''],
    ['scheduled', String(scheduled), `in ${formatSeconds(rest.seconds)}`],
    ['sent', String(sent), `${unanswered} without a response at the end`],
    ['done', String(done), `${rest.rate_done.toFixed(1)}/s`],
    ['errors', String(errors), formatShare(rest.error_rate)],
    ['dropped', String(dropped), formatShare(rest.dropped_rate)],
  ];
}

function latencyRows({ latency, latency_by_protocol: byProtocol }: LoadReport): string[][] {
  const row = (name: string, { count, mean, p50, p90, p99, p99_9, max }: LatencySummary) => [
    ...[name, String(count), ...[mean, p50, p90, p99, p99_9, max].map(formatMs)],
  ];
  const rows = Object.entries(byProtocol).map(([name, summary]) => row(name, summary));
  const all = rows.length === 1 ? [] : [row('all', latency)];
  return [['latency', 'calls', 'mean', 'p50', 'p90', 'p99', 'p99.9', 'max'], ...rows, ...all];
}

function outcomeRows({ outcomes, unanswered }: LoadReport): string[][] {
  const rows = outcomes.map(({ outcome, count, wrong }) => [outcome, String(count), String(wrong)]);
  if (unanswered > 0) rows.push(['pending at the end', String(unanswered), String(unanswered)]);
  return [['outcome', 'calls', 'wrong'], ...rows];
}

function slowestRows({ slowest }: LoadReport): string[][] {
  const rows = slowest.map(({ latency_ms, second, operation, protocol, outcome, request_id = '-' }) => [
    ...[formatMs(latency_ms), `${second.toFixed(1)} s`, operation, protocol, outcome, request_id],
  ]);
  return [['slowest', 'at', 'operation', 'protocol', 'outcome', 'request id'], ...rows];
}

/** Returns a table of the thresholds with the measured values, or a text if there are no thresholds. */
export function verdictSection({ verdict }: LoadReport): ReportSection {
  if (verdict.judged.length === 0) return 'no thresholds were set';
  const rows = verdict.judged.map(({ threshold, limit, actual, passed }) => {
    const measured = actual === undefined ? 'unknown' : String(Number(actual.toPrecision(6)));
    return [threshold, measured, `at most ${limit}`, passed ? 'met' : 'MISSED'];
  });
  return { rows: [['threshold', 'measured', 'allowed', 'verdict'], ...rows] };
}

/** A profile can repeat its phases thousands of times, so only the first ones are shown. */
const phasesShown = 6;

/** Returns the rates and durations of an open loop, or the duration of a closed loop. */
export function phasesText({ mode, phases }: LoadSettings): string {
  if (mode === 'closed') return `as responses arrive, ${formatSeconds(arrivalsOf(phases).seconds)}`;
  const shown = phases.slice(0, phasesShown).map(({ seconds, rate, to }) => {
    return `${rate === to ? `${rate}/s` : `${rate}/s to ${to}/s`} for ${formatSeconds(seconds)}`;
  });
  const more = phases.length - shown.length;
  return `${shown.join(', ')}${more > 0 ? `, and ${more} more phases` : ''}`;
}
