import { expect, test } from 'vitest';
import type { AuditResult } from '../../audit/audit.ts';
import { constantRate, type LoadSettings, parseProfile } from '../profile/profile.ts';
import { createRecorder, type Recorder } from '../run/recorder.ts';
import type { LoadOutcome } from '../run/run-load.ts';
import { comparisonSections } from './compare.ts';
import { judge, type LoadReport, type ReportedRun, reportOf } from './report.ts';
import { comparisonPage, reportPage } from './report-page.ts';
import { reportText, sectionText } from './report-text.ts';

const settings: LoadSettings = {
  ...parseProfile({
    phases: constantRate(10, 2),
    replay_share: 0.1,
    thresholds: { p99_ms: 50, error_rate: 0, lost: 0 },
  }),
  profile: 'smoke',
  seed: 7,
};
const environment = { machine: 'linux x64, 2 × CPU, 8 GiB', node: 'v26.10.0', gateway: '1.0.0', postgres: '18.1' };
const noStates = { changes: 0, unexplained: 0, undelivered: undefined, copies: undefined };
const noOrders = { acknowledged: 0, stored: 0, unacknowledged: 0, lost: 0, duplicated: 0, changed: 0, unreadable: 0 };
const noCounts = { ...noOrders, ...noStates };
const audit: AuditResult = { ...noCounts, acknowledged: 9, stored: 9, changed: 1, examples: [] };
const call = {
  ...({ protocol: 'json', operation: 'CreateOrder', method: 'POST', path: '/order', headers: {} } as const),
  bytes: undefined,
  request: {},
  expected: ['created'],
  order: undefined,
};

/** Returns the record of a run with ten calls per second. The last call has `outcome`, and all others succeed. */
function someRecorder(outcome: string, seconds = 2): Recorder {
  const recorder = createRecorder({ plannedSeconds: seconds });
  for (let number = 0; number < seconds * 10; number += 1) {
    const isLast = number === seconds * 10 - 1;
    recorder.recordSent(call, number * 100, 0.1);
    const latencyMs = 10 + (number % 10);
    recorder.recordReply(
      call,
      { outcome: isLast ? outcome : 'created', requestId: `request-${number}` },
      number * 100,
      latencyMs,
    );
    recorder.end();
  }
  return recorder;
}

function someReport(
  outcome: Partial<LoadOutcome> = {},
  more: Partial<ReportedRun> = {},
  lastOutcome = 'overloaded',
): LoadReport {
  const recorder = someRecorder(lastOutcome);
  const run = { recorder, startedAt: new Date(0), seconds: 2, interrupted: false, failure: undefined, ...outcome };
  return reportOf(run, { settings, target: 'http://localhost:1', environment, audit: undefined, ...more });
}

test('the report counts calls and errors, and a run without the required audit does not pass', () => {
  const report = someReport();
  expect(report).toMatchObject({
    scheduled: 20,
    sent: 20,
    done: 20,
    errors: 1,
    error_rate: 0.05,
    dropped: 0,
    rate_done: 10,
  });
  expect(report.latency.p50).toBeCloseTo(14, 1);
  expect(report.percentiles.at(-1)?.[1]).toBeCloseTo(19, 1);
  expect(report.by_second).toMatchObject([
    { sent: 10, done: 10 },
    { sent: 10, done: 10, wrong: 1 },
  ]);
  expect(report.verdict.judged).toEqual([
    { threshold: 'p99_ms', limit: 50, actual: report.latency.p99, passed: true },
    { threshold: 'error_rate', limit: 0, actual: 0.05, passed: false },
    { threshold: 'lost', limit: 0, actual: undefined, passed: false },
  ]);
  expect(report.verdict.passed).toBe(false);
});

test('a value equal to its limit meets a threshold, and the threshold lost includes changed orders', () => {
  const judged = someReport({}, { audit }).verdict.judged.at(-1);
  expect(judged).toEqual({ threshold: 'lost', limit: 0, actual: 1, passed: false });
  const manyLost = someReport({}, { audit: { ...audit, lost: 1_233 } });
  expect(reportText(manyLost)).toMatch(/^lost +1234 +at most 0 +MISSED$/m);
  const actuals = { p99_ms: 50, error_rate: 0, dropped_rate: undefined, lost: 0 };
  expect(judge(settings.thresholds, actuals).passed).toBe(true);
  expect(judge({ p99_ms: 50 }, { ...actuals, p99_ms: 50.1 }).passed).toBe(false);
  expect(judge({ p99_ms: 50 }, { ...actuals, p99_ms: undefined }).passed).toBe(false);
});

test('a run without a correct outcome misses the latency threshold, and an empty audit misses the threshold lost', () => {
  const recorder = createRecorder({ plannedSeconds: 1 });
  recorder.recordSent(call, 0, 0);
  recorder.recordReply(call, { outcome: 'unauthenticated' }, 1, 1);
  recorder.end();
  const limits = { ...settings, thresholds: { p99_ms: 50, lost: 0 } };
  const report = someReport({ recorder }, { settings: limits, audit: { ...noCounts, examples: [] } });
  expect(report.verdict).toEqual({
    passed: false,
    judged: [
      { threshold: 'p99_ms', limit: 50, actual: undefined, passed: false },
      { threshold: 'lost', limit: 0, actual: undefined, passed: false },
    ],
  });
});

test('the table has latencies, outcomes and the verdict, each under a heading', () => {
  const table = reportText(someReport({ interrupted: true }));
  const texts = ['Interrupted', '10/s for 2 s', 'overloaded  1      1', 'failed'];
  for (const text of texts) expect(table).toContain(text);
  expect(table).toMatch(/error_rate +0\.05 +at most 0 +MISSED/);
  for (const heading of ['setting +value$', 'calls +number$', 'latency +calls +mean', 'outcome +calls', 'threshold ']) {
    expect(table).toMatch(new RegExp(`^${heading}`, 'm'));
  }
});

test('a run that failed does not pass, and both reports contain the reason', () => {
  const report = someReport({ failure: 'the disk is full' }, { settings: { ...settings, thresholds: {} } });
  expect(report.verdict.passed).toBe(false);
  expect(reportText(report)).toMatch(/^The run ended early: the disk is full\..*\nfailed\n$/s);
  expect(reportPage(report)).toContain('The run ended early: the disk is full.');
});

test('the report of a closed loop has no lateness, and a short run is shown with its fraction of a second', () => {
  const open = someReport({ seconds: 0.352 });
  expect(reportText(open)).toContain('sent late by');
  expect(reportText(open)).toMatch(/scheduled +20 +in 0.35 s\n/);
  const closed = someReport({}, { settings: { ...settings, mode: 'closed' } });
  expect(reportText(closed)).not.toContain('sent late by');
});

test('the page is complete, loads nothing, and escapes every value', () => {
  const hostile = `<script>alert("x")</script>&'`;
  const changed = { target: hostile, settings: { ...settings, profile: hostile }, audit };
  const page = reportPage(someReport({}, changed, hostile));
  expect(page).not.toContain('<script');
  expect(page.split('&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;').length).toBeGreaterThan(4);
  expect(page.replaceAll(/ xmlns(?::xlink)?="[^"]*"/g, '')).not.toMatch(
    /\b(?:src|href)=|url\((?!#)|@import|https?:\/\//,
  );
  expect(page).toMatch(/<p class="verdict (passed">Passed|failed">Failed)<\/p>/);
  expect(page).toContain('<tr><th>outcome</th><th>calls</th><th>wrong</th></tr>');
  expect(page).toContain('prefers-color-scheme:dark');
  expect(page.match(/<svg /g)).toHaveLength(4);
  expect(page).not.toMatch(/NaN|undefined|Infinity/);
  // A table with many columns is shown with one line per column, so that it fits a narrow page.
  expect(page).toContain('<tr><th>acknowledged</th><td>9</td></tr><tr><th>lost</th><td>0</td></tr>');
});

test('the report has the slowest calls with their request ids, the slowest first, and the environment', () => {
  const { slowest } = someReport();
  expect(slowest.map(({ latency_ms }) => latency_ms)).toEqual([19, 19, 18, 18, 17, 17, 16, 16, 15, 15]);
  expect(slowest[0]).toMatchObject({ operation: 'CreateOrder', protocol: 'json', request_id: 'request-9' });
  const text = reportText(someReport());
  expect(text).toMatch(/^19\.0 ms +1\.9 s +CreateOrder +json +overloaded +request-19$/m);
  expect(text).toMatch(/^machine +linux x64, 2 × CPU, 8 GiB\n.*\nNode\.js +v26\.10\.0\nPostgreSQL +18\.1$/m);
});

test('two reports are compared by what was measured and by what was run', () => {
  const [a, b] = [someReport(), someReport({ seconds: 4 }, { environment: { ...environment, postgres: '17.7' } })];
  const text = comparisonSections(a, b).map(sectionText).join('\n');
  expect(text).toMatch(/^done +10\.0\/s +5\.0\/s +-50\.0 %$/m);
  expect(text).toMatch(/^p99 +19\.0 ms +19\.0 ms +\+0\.0 %$/m);
  expect(text).toMatch(/^dropped +0 % +0 % +-$/m);
  expect(text).toMatch(/^PostgreSQL +18\.1 +17\.7 +≠$/m);
  const page = comparisonPage(a, b);
  expect(page.match(/<svg /g)).toHaveLength(2);
  for (const name of ['A', 'B']) expect(page).toContain(`>${name}</text>`);
});

test('the charts have a line for each measured value', () => {
  const page = reportPage(someReport());
  for (const name of ['sent', 'done', 'wrong or dropped', 'p50', 'p90', 'p99', 'max', '90 %']) {
    expect(page).toContain(`>${name}</text>`);
  }
  // The charts have three lines of throughput, four of latency, one of errors and one of latency by percentile.
  expect(page.match(/<path d="M[^"]*L[^"]*" fill="none"[^>]* stroke="#(?:7fa6d9|2f7de1|d9534f|7b8794)"/g)?.length).toBe(
    9,
  );
});

test('the page can show a run without calls, a run of one second and a very long run', () => {
  const nothing = createRecorder({ plannedSeconds: 0 });
  expect(reportPage(someReport({ recorder: nothing, seconds: 0 }))).not.toMatch(/NaN|undefined|Infinity/);
  const report = someReport();
  const [second] = report.by_second;
  if (second === undefined) throw new Error('there is no second');
  const one = reportPage({ ...report, by_second: [second], verdict: { passed: true, judged: [] } });
  expect(one).not.toMatch(/NaN|undefined|Infinity/);
  expect(one).toContain('no thresholds were set');
  const long = Array.from({ length: 7_200 }, (_, index) => ({ ...second, second: index }));
  expect(reportPage({ ...report, seconds: 7_200, by_second: long }).length).toBeLessThan(300_000);
});
