import {
  comparedLatencyChart,
  comparedPercentileChart,
  errorChart,
  latencyChart,
  percentileChart,
  throughputChart,
} from './charts.ts';
import { comparisonSections, startTime } from './compare.ts';
import type { LoadReport } from './report.ts';
import { type ReportSection, reportSections, verdictSection } from './report-text.ts';

const style = `
:root{color-scheme:light dark;--card:#f6f7f9;--rule:#dfe3e8;--passed:#d6f2dd;--failed:#fbd9d5}
@media(prefers-color-scheme:dark){:root{--card:#1c2027;--rule:#333a45;--passed:#133a21;--failed:#4a1712}}
body{max-width:1040px;margin:0 auto;padding:32px 20px 64px;font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px}
pre,figure{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px 14px;margin:0;overflow-x:auto}
figcaption{font-weight:600;margin-bottom:4px}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin-top:24px} p{white-space:pre-line}
svg{display:block;width:100%;height:auto}
.verdict{font-weight:700;border-radius:8px;padding:10px 14px} .passed{background:var(--passed)} .failed{background:var(--failed)}
table{border-collapse:collapse;margin-top:24px} th,td{border-bottom:1px solid var(--rule);padding:4px 16px 4px 0;text-align:start;vertical-align:top} td{overflow-wrap:break-word} td:last-child{overflow-wrap:anywhere}
.charts{display:grid;gap:24px;margin-top:24px} figure{min-width:0}
@media(min-width:900px){.charts{grid-template-columns:1fr 1fr}}
@media(max-width:600px){th,td{padding-right:6px;font-size:12px}}
@media print{.charts{grid-template-columns:1fr 1fr;gap:12px} :root{color-scheme:light;--card:#fff} body{padding:0} figure,table{break-inside:avoid} .verdict{border:2px solid}}
`;

/** Columns that fit 390 px. A wider table is shown with one line for each column. */
const columnsMax = 8;

/** Returns the report with its charts as an HTML page that has no scripts and loads nothing. */
export function reportPage(report: LoadReport): string {
  const { settings, verdict } = report;
  const name = settings.profile === 'none' ? 'Load run' : `Load run ${settings.profile}`;
  return htmlPage(`${name} of ${startTime(report)}: ${verdict.passed ? 'passed' : 'failed'}`, [
    verdictOf(verdict.passed),
    sectionOf(verdictSection(report)),
    '<div class="charts">',
    figure('Throughput', throughputChart(report)),
    figure('Latency in each second', latencyChart(report)),
    figure('Errors in each second', errorChart(report)),
    figure('Latency by percentile', percentileChart(report)),
    '</div>',
    ...reportSections(report).map(sectionOf),
  ]);
}

/** Returns two reports side by side as an HTML page. */
export function comparisonPage(a: LoadReport, b: LoadReport): string {
  return htmlPage(`Load runs of ${startTime(a)} (A) and ${startTime(b)} (B)`, [
    ...comparisonSections(a, b).map(sectionOf),
    '<div class="charts">',
    figure('p99 in each second', comparedLatencyChart(a, b)),
    figure('Latency by percentile', comparedPercentileChart(a, b)),
    '</div>',
  ]);
}

function figure(heading: string, chart: string): string {
  return `<figure><figcaption>${heading}</figcaption>${chart}</figure>`;
}

export function verdictOf(hasPassed: boolean): string {
  return `<p class="verdict ${hasPassed ? 'passed' : 'failed'}">${hasPassed ? 'Passed' : 'Failed'}</p>`;
}

/** Returns an HTML page with a title above parts that are HTML. */
export function htmlPage(title: string, parts: readonly string[]): string {
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
${parts.join('\n')}
</body>
</html>
`;
}

/** Returns a section as HTML. */
export function sectionOf(section: ReportSection): string {
  if (typeof section === 'string') return `<pre>${escaped(section)}</pre>`;
  const [heading = [], ...rows] = section.rows;
  const cellsOf = (name: 'th' | 'td', cells: readonly string[]) =>
    cells.map((cell) => `<${name}>${escaped(cell)}</${name}>`).join('');
  const columnOf = (index: number) => rows.map((cells) => cells[index] ?? '');
  const lines =
    heading.length > columnsMax
      ? heading.map((name, index) => cellsOf('th', [name]) + cellsOf('td', columnOf(index)))
      : [cellsOf('th', heading), ...rows.map((cells) => cellsOf('td', cells))];
  const note = section.note === undefined ? '' : `<p>${escaped(section.note)}</p>`;
  return `<table>${lines.map((cells) => `<tr>${cells}</tr>`).join('')}</table>${note}`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(value: string): string {
  return value.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');
}
