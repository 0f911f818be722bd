import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import manifest from '../../../../package.json' with { type: 'json' };
import { readText } from '../../../../tools/test-resources.ts';
import { environment, folder, load, program, useFolder } from './load-program.ts';

useFolder();

test('a short run in every protocol passes its thresholds, is audited, and writes its reports', async () => {
  // The folders do not exist yet.
  const fileOf = (ending: string) => join(folder, ending, `run.${ending}`);
  const [jsonFile, htmlFile, journal] = [fileOf('json'), fileOf('html'), fileOf('ndjson')];
  const files = ['--json', jsonFile, '--html', htmlFile, '--journal', journal];
  const shares = ['--replay-share', '0.1', '--invalid-share', '0.1', '--merchants', '2', '--connections', '2'];
  // The rate is low enough that even a slow machine sends each call in time.
  const rate = ['--protocol', 'mixed', '--rate', '20', '--duration', '3s'];
  const run = async () => {
    // A run does not overwrite the journal of another one.
    rmSync(journal, { force: true });
    const { code, stdout, stderr } = await load([...rate, ...shares, ...files, '--audit', '--seed', '5']);
    expect(`${stdout}${stderr}`).toContain('passed');
    expect(code).toBe(0);
    return { stdout, report: JSON.parse(readFileSync(jsonFile, 'utf8')) };
  };
  // On a busy machine, the calls for which the gateway opens its sessions can be late. Then the run is repeated.
  const isLate = ({ outcomes }: { outcomes: readonly { outcome: string; wrong: number }[] }) =>
    outcomes.some(({ outcome, wrong }) => wrong > 0 && /^(deadline_exceeded|unavailable)$/.test(outcome));
  let { stdout, report } = await run();
  for (let runs = 1; runs < 3 && isLate(report); runs += 1) ({ stdout, report } = await run());
  expect(report).toMatchObject({ scheduled: 60, done: 60, errors: 0, audit: { lost: 0, duplicated: 0, changed: 0 } });
  expect(report.outcomes.map(({ outcome }: { outcome: string }) => outcome)).toContain('replayed');
  expect(readFileSync(htmlFile, 'utf8')).toContain('passed');
  expect(report.by_second).toHaveLength(3);
  const sumOf = (name: 'sent' | 'done') =>
    report.by_second.reduce((sum: number, second: never) => sum + second[name], 0);
  expect([sumOf('sent'), sumOf('done')]).toEqual([60, 60]);
  const { acknowledged, stored } = report.audit;
  expect(stdout).toMatch(new RegExp(`^ +${acknowledged} +0 +0 +0 +0 +${stored} +0 +0 +0 +- +-$`, 'm'));
  expect(existsSync(journal)).toBe(true);
  // Every response has the id under which the gateway logged the call.
  expect(report.slowest).toHaveLength(10);
  for (const { request_id } of report.slowest) expect(request_id).toMatch(/^\S{16,}$/);
  expect(report.environment).toMatchObject({ gateway: manifest.version, postgres: expect.stringMatching(/^\d+\.\d/) });
  const compared = await load(['--compare', jsonFile, jsonFile, '--html', htmlFile]);
  expect(compared).toMatchObject({ code: 0, stdout: expect.stringMatching(/^p99 .* \+0\.0 %$/m) });
  expect(readFileSync(htmlFile, 'utf8')).toContain('(B)</title>');
});

test('orders that are paid, refunded, disputed and cancelled during a run are audited with their events and webhooks', async () => {
  const json = join(folder, 'run.json');
  const shares = ['--get-share', '0.2', '--pay-share', '0.2', '--cancel-share', '0.1', '--list-share', '0.1'];
  const attemptShares = ['--start-share', '0.1', '--end-share', '0.05', '--metadata-share', '0.5'];
  const refundShares = ['--refund-share', '0.1', '--report-share', '0.1', '--fail-share', '0.02'];
  // In a closed loop, later calls concern orders whose responses have arrived, regardless of how slow the machine is.
  const closed = '--protocol mixed --mode closed --connections 2 --merchants 2'.split(' ');
  const run = async (seconds: number) => {
    const args = [
      ...closed,
      '--duration',
      `${seconds}s`,
      ...shares,
      ...attemptShares,
      ...refundShares,
      '--audit',
      '--json',
      json,
    ];
    const { code, stdout, stderr } = await load(args);
    expect(`${stdout}${stderr}`).toContain('passed');
    expect(code).toBe(0);
    return JSON.parse(readFileSync(json, 'utf8'));
  };
  let report = await run(4);
  // A slow machine makes only a few calls in this time.
  if (report.audit.changes === 0) report = await run(60);
  const { audit, outcomes } = report;
  expect(audit).toMatchObject({ lost: 0, unexplained: 0, undelivered: 0 });
  expect(audit.changes).toBeGreaterThan(0);
  expect(outcomes.map(({ outcome }: { outcome: string }) => outcome)).toContain('ok');
});

test('Ctrl-C ends a run immediately with a report of the calls so far', async () => {
  const child = spawn(process.execPath, [program, '--rate', '50', '--duration', '10m', '--audit'], {
    env: environment(),
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const [stdout, progress] = [readText(child.stdout), readText(child.stderr)];
  await expect.poll(progress).toContain('pending');
  child.kill('SIGINT');
  // Without the signal, the run would take ten minutes, which is longer than a test may take.
  const [code] = await once(child, 'exit');
  expect(code).toBe(130);
  expect(stdout()).toContain('Interrupted: the report covers the time until then.');
  expect(stdout()).toMatch(/done +\d{2,} /);
  expect(stdout()).toMatch(/^audit +acknowledged +lost +duplicated +changed/);
});

test('neither a closed terminal followed by Ctrl-C nor a closed output leaves files of a run behind', async () => {
  const start = (duration: string) => {
    const started = spawn(process.execPath, [program, '--rate', '50', '--duration', duration], { env: environment() });
    onTestFinished(() => void started.kill());
    return started;
  };
  const child = start('10m');
  await expect.poll(readText(child.stderr)).toContain('pending');
  child.kill('SIGHUP');
  child.kill('SIGINT');
  expect((await once(child, 'exit'))[0]).toBe(130);
  expect(readdirSync(folder)).toEqual([]);

  const unread = start('1s');
  unread.stdout.destroy();
  unread.stderr.destroy();
  expect((await once(unread, 'exit'))[0]).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});
