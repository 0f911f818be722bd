import { protocols as doors } from '@gateway/fixtures/client';
import type { LatencySummary, LoadReport } from '../report.ts';
import { msTold, partTold, secondsTold, settingsTold } from '../words.ts';
import { heatChart, latencyChart, percentileChart, stretchesOf, throughputChart } from './charts.ts';
import { escaped } from './escape.ts';
import { pageStyle } from './page-style.ts';

/** The report as one page that needs nothing else: no script, no network, light or dark as the reader has it. */
export function reportPage(report: LoadReport): string {
  const { settings, verdict, target, started_at: startedAt, interrupted } = report;
  const stretches = stretchesOf(report.by_second);
  const title = `Load run ${settings.profile === 'none' ? '' : `${settings.profile} `}of ${startedAt}`;
  const key = (kind: string, told: string) => `<span class="key ${kind}"></span>${told}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title>
<style>${pageStyle}</style>
</head>
<body><main>
<h1>${escaped(title)}</h1>
<p>${escaped(target)}</p>
${interrupted ? '<p class="verdict bad">Interrupted: this is what was done until then.</p>' : ''}
${verdictLine(report)}
${facts(report)}
${verdict.judged.length === 0 ? '' : `<h2>Thresholds</h2>${thresholds(report)}`}
<h2>Throughput</h2>
<figure><figcaption>Calls a second:${key('one', 'sent')}${key('two', 'answered')}${key('three', 'wrong or dropped')}</figcaption>${throughputChart(stretches)}</figure>
<h2>Latency over time</h2>
<figure><figcaption>Each second’s${key('one', 'median')}${key('two', '99th percentile')}</figcaption>${latencyChart(stretches)}</figure>
<h2>Latency bands</h2>
<figure><figcaption>How many answers took how long: the stronger, the more</figcaption>${heatChart(stretches)}</figure>
<h2>Latency by percentile</h2>
<figure><figcaption>So many of all answers took at most so long</figcaption>${percentileChart(report)}</figure>
<h2>Latency by door</h2>
${latencyTable(report)}
<h2>Answers</h2>
${answers(report)}
${audit(report)}
<h2>Settings</h2>
<table class="settings">${settingsTold(settings)
    .map((row) => cells('td', row))
    .join('')}</table>
</main></body>
</html>
`;
}

function verdictLine({ verdict, deaths }: LoadReport): string {
  const [death] = deaths;
  if (death !== undefined) return `<p class="verdict bad">Failed: a sending process died: ${escaped(death)}.</p>`;
  if (verdict.judged.length === 0) return '<p class="verdict">No thresholds were set.</p>';
  if (verdict.passed) return '<p class="verdict good">Passed: all thresholds held.</p>';
  return '<p class="verdict bad">Failed: a threshold was missed.</p>';
}

function facts({ done, seconds, rate_done, latency, error_rate, dropped_rate, errors, dropped }: LoadReport): string {
  const shown = [
    [`${rate_done.toFixed(1)}/s`, `${done} answered in ${secondsTold(seconds)}`],
    [msTold(latency.p50), 'median'],
    [msTold(latency.p99), '99th percentile'],
    [msTold(latency.max), 'slowest'],
    [partTold(error_rate), `${errors} errors`],
    [partTold(dropped_rate), `${dropped} dropped`],
  ] as const;
  const boxes = shown.map(([value, told]) => `<div><b>${escaped(value)}</b><span>${escaped(told)}</span></div>`);
  return `<div class="facts">${boxes.join('')}</div>`;
}

function thresholds({ verdict }: LoadReport): string {
  const rows = verdict.judged.map(({ threshold, limit, actual, passed }) => {
    const value = actual === undefined ? 'unknown' : String(Number(actual.toPrecision(3)));
    const word = `<td class="${passed ? 'good' : 'bad'}">${passed ? 'held' : 'missed'}</td>`;
    return `<tr><td>${escaped(threshold)}</td><td>${escaped(value)}</td><td>${escaped(limit)}</td>${word}</tr>`;
  });
  return table(['threshold', 'measured', 'allowed', 'verdict'], rows);
}

function latencyTable({ settings, latency, latency_by_door: byDoor, lateness }: LoadReport): string {
  const row = (name: string, { count, mean, p50, p90, p99, p99_9, max }: LatencySummary) =>
    cells('td', [name, String(count), ...[mean, p50, p90, p99, p99_9, max].map(msTold)]);
  const rows = doors.flatMap((door) => (byDoor[door] === undefined ? [] : [row(door, byDoor[door])]));
  const head = ['', 'calls', 'mean', 'p50', 'p90', 'p99', 'p99.9', 'max'];
  const late = settings.mode === 'open' ? [row('sent late by', lateness)] : [];
  return table(head, [...rows, row('all doors', latency), ...late]);
}

function answers({ outcomes, unanswered }: LoadReport): string {
  const rows = outcomes.map(({ outcome, count, wrong }) => cells('td', [outcome, String(count), String(wrong)]));
  if (unanswered > 0) rows.push(cells('td', ['given up', String(unanswered), String(unanswered)]));
  return table(['answer', 'calls', 'wrong'], rows);
}

function audit({ audit: counts }: LoadReport): string {
  if (counts === undefined) return '';
  const { acknowledged, lost, duplicated, changed, unreadable, kept, unacknowledged } = counts;
  const row = [acknowledged, lost, duplicated, changed, unreadable, kept, unacknowledged].map(String);
  const head = ['acknowledged', 'lost', 'duplicated', 'changed', 'unreadable', 'kept', 'kept unacknowledged'];
  return `<h2>Audit</h2>${table(head, [cells('td', row)])}`;
}

function table(head: readonly string[], rows: readonly string[]): string {
  return `<div class="wide"><table>${cells('th', head)}${rows.join('')}</table></div>`;
}

function cells(tag: 'td' | 'th', texts: readonly string[]): string {
  return `<tr>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>`;
}
