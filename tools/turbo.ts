import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { networkInterfaces, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { findProgram, optionalPrograms } from './skip-if-missing.ts';
import type { Tally } from './tally-reporter.ts';

// Runs turbo with the arguments of the command line, and prints the failures and the tally of all tests that ran, and
// the failed tasks, which may be no tests. A cached result is valid only on the machine that produced it, and its tests
// are not in the tally. If TEST_REPORTS names a folder, these results and the files with skipped tests are also stored
// there.

/** The properties of this machine that tests can observe. An upgraded program is a different file. */
const machine = {
  system: [process.platform, process.arch, release(), process.version, process.getuid?.()],
  hasIpv6: Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1')),
  programs: optionalPrograms.map((program) => {
    const path = findProgram(program);
    return path && [path, statSync(path).mtimeMs];
  }),
};

const reports = process.env.TEST_REPORTS;
/** The tallies of the tasks. */
const tallies = mkdtempSync(join(tmpdir(), 'test-tallies-'));
const turbo = spawn('turbo', process.argv.slice(2), {
  stdio: 'inherit',
  env: {
    ...process.env,
    TEST_MACHINE: JSON.stringify(machine),
    TEST_REPORTS: tallies,
    TURBO_RUN_SUMMARY: 'true',
    TURBO_TELEMETRY_DISABLED: '1',
  },
});
// The terminal also sends Ctrl-C to turbo, which first ends its tasks.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => turbo.kill());
const [code] = await once(turbo, 'exit');
process.exitCode = code ?? 1;

const results: Tally[] = readdirSync(tallies).map((name) => JSON.parse(readFileSync(join(tallies, name), 'utf8')));
rmSync(tallies, { recursive: true });
const failedTasks = takeFailedTasks();
if (results.length > 0) {
  const sum = (count: (result: Tally) => number) => results.reduce((total, result) => total + count(result), 0);
  const failedTests = results.flatMap((result) => result.failures);
  const failures = [...failedTests, ...(failedTasks.length > 0 ? [`Failed tasks: ${failedTasks.join(', ')}`] : [])];
  const tally = `${sum(({ passed }) => passed)} passed, ${failedTests.length} failed\n`;
  if (reports !== undefined) {
    mkdirSync(reports, { recursive: true });
    const store = (name: string, lines: readonly string[]) => writeFileSync(join(reports, name), lines.join('\n'));
    store('tally', [tally]);
    store('failures', [...failures, '']);
    store(
      'skipped',
      results.flatMap((result) => result.skippedFiles),
    );
  }
  const skipped = `${sum((result) => result.skipped)} skipped: each has a line that starts with SKIPPED`;
  process.stdout.write(['', ...failures, skipped, tally].join('\n'));
}

/**
 * Returns the names of the tasks that failed, and deletes turbo's summary of the run, which has them. The hash of
 * TEST_REPORTS tells the summary from that of another run in the same working tree.
 */
function takeFailedTasks(): string[] {
  const folder = '.turbo/runs';
  const variable = `TEST_REPORTS=${createHash('sha256').update(tallies).digest('hex')}`;
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const file = join(folder, name);
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    if (!text.includes(variable)) continue;
    rmSync(file);
    const { tasks }: RunSummary = JSON.parse(text);
    return tasks.filter(({ execution }) => execution && execution.exitCode !== 0).map(({ taskId }) => taskId);
  }
  return [];
}

/** The parts of turbo's summary that are used. A task that did not start has no execution. */
interface RunSummary {
  readonly tasks: readonly { readonly taskId: string; readonly execution?: { readonly exitCode?: number } | null }[];
}
