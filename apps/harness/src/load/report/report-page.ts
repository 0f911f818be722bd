import { latencyChart, percentileChart, throughputChart } from './charts.ts';
import type { LoadReport } from './report.ts';
import { reportText } from './report-text.ts';

const style = `
:root{color-scheme:light dark;--card:#f6f7f9;--rule:#dfe3e8}
@media(prefers-color-scheme:dark){:root{--card:#1c2027;--rule:#333a45}}
body{max-width:1040px;margin:0 auto;padding:32px 20px 64px;font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px} h2{font-size:16px;margin:36px 0 8px}
pre,figure{background:var(--card);border:1px solid var(--rule);border-radius:8px;padding:10px 14px;margin:0;overflow-x:auto}
svg{display:block;width:100%;min-width:680px;height:auto}
`;

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
${figure('Throughput', throughputChart(report))}
${figure('Latency in each second', latencyChart(report))}
${figure('Latency by percentile', percentileChart(report))}
<h2>Report</h2><pre>${escaped(reportText(report))}</pre>
</body>
</html>
`;
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

function escaped(value: string): string {
  return value.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');
}
