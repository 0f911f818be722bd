import { expect, test } from 'vitest';
import { constantRate } from './arrivals.ts';
import { reportPage } from './page/report-page.ts';
import { createProgress, progressLine } from './progress.ts';
import { createRecorder } from './recorder.ts';
import { judge, type LoadReport, type ReportFacts, reportOf } from './report.ts';
import { reportTable } from './report-table.ts';
import type { LoadSettings } from './settings.ts';
import { createTotals, type Totals } from './totals.ts';

const settings: LoadSettings = {
  ...{
    profile: 'smoke',
    mode: 'open',
    protocol: 'json',
    phases: constantRate(10, 2),
    connections: 4,
    underWayMax: 100,
  },
  ...{ merchants: 1, replayShare: 0.1, invalidShare: 0, seed: 7, workers: 1 },
  thresholds: { p99_ms: 50, error_rate: 0, lost: 0 },
};

/** Ten calls a second for two seconds, the last of which is refused with a text that is no code. */
function someTotals(outcome = 'overloaded'): Totals {
  const totals = createTotals();
  const recorder = createRecorder(undefined);
  const call = { path: '/order', headers: {}, body: new Uint8Array(), expected: ['created'], order: undefined };
  for (const second of [0, 1]) {
    for (let number = 0; number < 10; number += 1) {
      recorder.sent(0.1);
      const last = second === 1 && number === 9;
      const reply = { outcome: last ? outcome : 'created', acknowledged: undefined };
      recorder.answered({ ...call, number, door: 'json' }, reply, 10 + number);
    }
    totals.add(recorder.closeSecond(second));
  }
  return totals;
}

function someReport(more: Partial<ReportFacts> = {}, outcome?: string): LoadReport {
  return reportOf(someTotals(outcome), {
    ...{
      settings,
      target: 'http://localhost:1',
      startedAt: new Date(0),
      seconds: 2,
      interrupted: false,
      deaths: [],
      audit: undefined,
    },
    ...more,
  });
}

test('the report counts, and an audit that was not made does not pass', () => {
  const report = someReport();
  expect(report).toMatchObject({ due: 20, sent: 20, done: 20, errors: 1, error_rate: 0.05, dropped: 0, rate_done: 10 });
  expect(report.latency.p50).toBeCloseTo(14, 1);
  expect(report.percentiles.at(-1)?.[1]).toBeCloseTo(19, 1);
  expect(report.verdict.judged).toEqual([
    { threshold: 'p99_ms', limit: 50, actual: report.latency.p99, passed: true },
    { threshold: 'error_rate', limit: 0, actual: 0.05, passed: false },
    { threshold: 'lost', limit: 0, actual: undefined, passed: false },
  ]);
  expect(report.verdict.passed).toBe(false);
});

test('a limit is met by what is equal to it, and lost counts duplicated and changed orders too', () => {
  const audit = {
    acknowledged: 9,
    kept: 9,
    unacknowledged: 0,
    lost: 0,
    duplicated: 0,
    changed: 1,
    unreadable: 0,
    examples: [],
  };
  expect(someReport({ audit }).verdict.judged.at(-1)).toEqual({
    threshold: 'lost',
    limit: 0,
    actual: 1,
    passed: false,
  });
  const actuals = { p99_ms: 50, error_rate: 0, dropped_rate: undefined, lost: 0 };
  expect(judge(settings.thresholds, actuals).passed).toBe(true);
  expect(judge({ p99_ms: 50 }, { ...actuals, p99_ms: 50.1 }).passed).toBe(false);
  expect(judge({ p99_ms: 50 }, { ...actuals, p99_ms: undefined }).passed).toBe(false);
});

test('a run in which nothing went right passes no limit of latency, and an audit of nothing none of loss', () => {
  const totals = createTotals();
  const recorder = createRecorder(undefined);
  const call = { path: '/order', headers: {}, body: new Uint8Array(), expected: ['created'], order: undefined };
  recorder.sent(0);
  recorder.answered({ ...call, number: 0, door: 'json' }, { outcome: 'unauthenticated', acknowledged: undefined }, 1);
  totals.add(recorder.closeSecond(0));
  const audit = {
    acknowledged: 0,
    kept: 0,
    unacknowledged: 0,
    lost: 0,
    duplicated: 0,
    changed: 0,
    unreadable: 0,
    examples: [],
  };
  const limits = { ...settings, thresholds: { p99_ms: 50, lost: 0 } };
  const facts = {
    settings: limits,
    target: '',
    startedAt: new Date(0),
    seconds: 1,
    interrupted: false,
    deaths: [],
    audit,
  };
  expect(reportOf(totals, facts).verdict).toEqual({
    passed: false,
    judged: [
      { threshold: 'p99_ms', limit: 50, actual: undefined, passed: false },
      { threshold: 'lost', limit: 0, actual: undefined, passed: false },
    ],
  });
});

test('the table tells latencies, outcomes and the verdict', () => {
  const table = reportTable(someReport({ interrupted: true }));
  for (const told of ['Interrupted', '10/s for 2 s', 'overloaded  1      1', 'MISSED  error_rate  0.05', 'failed']) {
    expect(table).toContain(told);
  }
  const ofTwo = reportTable(someReport({ settings: { ...settings, workers: 2 } }));
  expect(ofTwo).toMatch(/connections +4 to each door for each process\n/);
});

test('a run whose sending process died does not pass, and both reports tell why', () => {
  const report = someReport({ settings: { ...settings, thresholds: {} }, deaths: ['the disk is full'] });
  expect(report.verdict.passed).toBe(false);
  expect(reportTable(report)).toMatch(/^A sending process died: the disk is full\..*\nfailed\n$/s);
  expect(reportPage(report)).toContain('Failed: a sending process died: the disk is full.');
});

test('a closed loop, which sends nothing late, tells no lateness, and a short run tells its fraction of a second', () => {
  const open = someReport({ seconds: 0.352 });
  expect(reportTable(open)).toContain('sent late by');
  expect(reportTable(open)).toMatch(/due +20 +in 0.35 s\n/);
  expect(reportPage(open)).toContain('20 answered in 0.35 s');
  const closed = someReport({ settings: { ...settings, mode: 'closed' } });
  expect(reportTable(closed)).not.toContain('sent late by');
  expect(reportPage(closed)).not.toContain('sent late by');
});

test('the page is whole, asks for nothing, and escapes every value that it shows', () => {
  const hostile = `<script>alert("x")</script>&'`;
  const page = reportPage(someReport({ target: hostile, settings: { ...settings, profile: hostile } }, hostile));
  expect(page).not.toContain('<script');
  expect(page.split('&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;&#39;').length).toBeGreaterThan(4);
  expect(page).not.toMatch(/\b(?:src|href)=|url\(|@import|https?:\/\//);
  expect(page).toContain('prefers-color-scheme:dark');
  expect(page.match(/<svg /g)).toHaveLength(4);
  expect(page).not.toMatch(/NaN|undefined|Infinity/);
});

test('a run of one second is drawn too, as dashes, and one that nothing was asked of is not told as good', () => {
  const report = someReport();
  const page = reportPage({ ...report, by_second: report.by_second.slice(0, 1), verdict: judge({}, noneKnown) });
  expect(page.match(/class="line (?:sent|done|failed|p50|p99)" d="M[\d.]+ [\d.]+m-3 0h6"/g)).toHaveLength(5);
  expect(page).toContain('<p class="verdict">No thresholds were set.</p>');
});

const noneKnown = { p99_ms: undefined, error_rate: undefined, dropped_rate: undefined, lost: undefined };

test('a page of nothing, and one of a very long run, are drawn too', () => {
  const facts = {
    settings,
    target: '',
    startedAt: new Date(0),
    seconds: 0,
    interrupted: true,
    deaths: [],
    audit: undefined,
  };
  expect(reportPage(reportOf(createTotals(), facts))).not.toMatch(/NaN|undefined|Infinity/);
  const report = someReport();
  const [second] = report.by_second;
  if (second === undefined) throw new Error('there is no second');
  const long = { ...report, by_second: Array.from({ length: 7_200 }, (_, at) => ({ ...second, second: at })) };
  expect(reportPage(long).length).toBeLessThan(100_000);
  expect(reportPage(long)).toContain('120 min');
});

test('progress writes over one line in a terminal, and lines far apart elsewhere', () => {
  const written: string[] = [];
  const output = (isTTY: boolean) => ({ isTTY, write: (text: string) => written.push(text) });
  const terminal = createProgress(output(true), someTotals(), 2);
  terminal.update(500);
  terminal.update(1_000);
  terminal.end();
  expect(written.map((text) => text.slice(0, 5))).toEqual(
    ['\r\u001b[2K', '\r\u001b[2K', '\n'].map((text) => text.slice(0, 5)),
  );
  written.length = 0;
  const log = createProgress(output(false), someTotals(), 20);
  for (let at = 500; at <= 10_000; at += 500) log.update(at);
  log.end();
  expect(written.map((line) => line.split('  ')[0])).toEqual(['5 s of 20 s', '10 s of 20 s']);
  const line = progressLine(61_000, 120, { sent: 10.4, done: 9.6 }, someTotals());
  expect(line).toContain(
    '1 min 01 s of 2 min 00 s  10/s sent, 10/s done  0 under way  1 errors  0 dropped  p50 14.0 ms',
  );
});
