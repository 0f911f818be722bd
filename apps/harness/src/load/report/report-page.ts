import { latencyChart, percentileChart, throughputChart } from './charts.ts';
import type { LoadReport } from './report.ts';
import { type ReportSection, reportSections } from './report-text.ts';

const style = `
:root{color-scheme:light dark;--card:#f6f7f9;--rule:#dfe3e8;--passed:#d6f2dd;--failed:#fbd9d5}
@media(prefers-color-scheme:dark){:root{--card:#1c2027;--rule:#333a45;--passed:#133a21;--failed:#4a1712}}
body{max-width:1040px;margin:0 auto;padding:32px 20px 64px;font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px} h2{font-size:16px;margin:36px 0 8px}
pre,figure{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px 14px;margin:0;overflow-x:auto}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin-top:24px} p{white-space:pre-line}
svg{display:block;width:100%;height:auto}
.verdict{font-weight:700;border-radius:8px;padding:10px 14px} .passed{background:var(--passed)} .failed{background:var(--failed)}
table{border-collapse:collapse;margin-top:24px} th,td{border-bottom:1px solid var(--rule);padding:4px 16px 4px 0;text-align:start;vertical-align:top} td{overflow-wrap:anywhere}
@media(max-width:600px){th,td{padding-right:6px;font-size:12px}}
@media print{:root{color-scheme:light;--card:#fff} body{padding:0} figure,table{break-inside:avoid} .verdict{border:2px solid}}
`;

/** Columns that fit 390 px. A wider table is shown with one line for each column. */
const columnsMax = 8;

/** The report with its charts as one page without scripts that loads nothing. */
export function reportPage(report: LoadReport): string {
  const { settings, verdict } = report;
  const name = settings.profile === 'none' ? 'Load run' : `Load run ${settings.profile}`;
  const title = escaped(`${name} of ${report.started_at}: ${verdict.passed ? 'passed' : 'failed'}`);
  const figure = (heading: string, chart: string) => `<h2>${heading}</h2><figure>${chart}</figure>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>${style}</style>
</head>
<body>
<h1>${title}</h1>
<p class="verdict ${verdict.passed ? 'passed' : 'failed'}">${verdict.passed ? 'Passed' : 'Failed'}</p>
${figure('Throughput', throughputChart(report))}
${figure('Latency in each second', latencyChart(report))}
${figure('Latency by percentile', percentileChart(report))}
<h2>Report</h2>
${reportSections(report).map(sectionOf).join('\n')}
</body>
</html>
`;
}

function sectionOf(section: ReportSection): string {
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
