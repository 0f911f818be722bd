import { auditTable } from '../audit/audit.ts';
import { formatMs, formatSeconds, formatShare } from '../command/text.ts';
import { latencyChart, percentileChart, throughputChart } from './charts.ts';
import type { LoadReport } from './report.ts';
import { latencyTable, outcomesTable, settingsTable, type Table, thresholdsTable } from './report-table.ts';

const style = `
:root{color-scheme:light dark;--card:#f6f7f9;--soft:#5c6573;--rule:#dfe3e8;--bad:#c0392b;--good:#1d7a46}
@media(prefers-color-scheme:dark){:root{--card:#1c2027;--soft:#9aa4b2;--rule:#333a45;--bad:#ff8a7a;--good:#62d295}}
body{max-width:1040px;margin:0 auto;padding:32px 20px 64px;font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px} h2{font-size:16px;margin:36px 0 8px} p{margin:0 0 8px;color:var(--soft)}
.good{color:var(--good);font-weight:600} .bad{color:var(--bad);font-weight:600}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:12px;margin:24px 0 0}
.facts div,figure{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px 14px;margin:0}
.facts b{display:block;font-size:20px} .facts span{color:var(--soft);font-size:13px}
figure,.wide{overflow-x:auto} svg{display:block;width:100%;min-width:680px;height:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:6px 10px;border-bottom:1px solid var(--rule);font-weight:400} th{color:var(--soft)}
`;

/** The report as one page without scripts that loads nothing. */
export function reportPage(report: LoadReport): string {
  const { settings, audit } = report;
  const title = `Load run ${settings.profile === 'none' ? '' : `${settings.profile} `}of ${report.started_at}`;
  const figure = (heading: string, chart: string) => `<h2>${heading}</h2><figure>${chart}</figure>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
<p>${escaped(report.target)}</p>
${report.interrupted ? '<p class="bad">Interrupted: this is what was done until then.</p>' : ''}
${verdict(report)}
${facts(report)}
${report.verdict.judged.length === 0 ? '' : `<h2>Thresholds</h2>${table(thresholdsTable(report))}`}
${figure('Throughput', throughputChart(report))}
${figure('Latency in each second', latencyChart(report))}
${figure('Latency by percentile', percentileChart(report))}
<h2>Latency by protocol</h2>${table(latencyTable(report))}
<h2>Outcomes</h2>${table(outcomesTable(report))}
${audit === undefined ? '' : `<h2>Audit</h2>${table(auditTable(audit))}`}
<h2>Settings</h2>${table(settingsTable(report))}
</body>
</html>
`;
}

function verdict({ verdict: { judged, passed }, failure }: LoadReport): string {
  if (failure !== undefined) return `<p class="bad">Failed: ${escaped(failure)}.</p>`;
  if (judged.length === 0) return '<p>No thresholds were set.</p>';
  return passed
    ? '<p class="good">Passed: all thresholds met.</p>'
    : '<p class="bad">Failed: a threshold was missed.</p>';
}

function facts({ latency, lateness, settings, ...report }: LoadReport): string {
  const shown = [
    [`${report.rate_done.toFixed(1)}/s`, `${report.done} done in ${formatSeconds(report.seconds)}`],
    [formatMs(latency.p50), 'median'],
    [formatMs(latency.p99), '99th percentile'],
    [formatMs(latency.max), 'slowest'],
    [formatShare(report.error_rate), `${report.errors} errors`],
    [formatShare(report.dropped_rate), `${report.dropped} dropped`],
    // In the closed loop nothing is due before it is sent.
    ...(settings.mode === 'open' ? [[formatMs(lateness.p99), 'sent late by, p99'] as const] : []),
  ] as const;
  const boxes = shown.map(([value, name]) => `<div><b>${escaped(value)}</b><span>${escaped(name)}</span></div>`);
  return `<div class="facts">${boxes.join('')}</div>`;
}

function table({ head, rows }: Table): string {
  return `<div class="wide"><table>${cells('th', head)}${rows.map((row) => cells('td', row)).join('')}</table></div>`;
}

function cells(tag: 'td' | 'th', texts: readonly string[]): string {
  return `<tr>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(value: string): string {
  return value.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');
}
