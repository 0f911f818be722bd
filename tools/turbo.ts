import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { networkInterfaces, release } from 'node:os';
import { join } from 'node:path';
import { findProgram, optionalPrograms } from './skip-if-missing.ts';
import type { Tally } from './tally-reporter.ts';

// Runs turbo with the arguments of the command line, and prints the failures and the tally of all tests that ran. A
// cached result is valid only on the machine that produced it, and its tests are not in the tally.

const reports = join(import.meta.dirname, '../.reports');

/** The properties of this machine that tests can observe. An upgraded program is a different file. */
const machine = {
  system: [process.platform, process.arch, release(), process.version, process.getuid?.()],
  hasIpv6: Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1')),
  programs: optionalPrograms.map((program) => {
    const path = findProgram(program);
    return path && [path, statSync(path).mtimeMs];
  }),
};

mkdirSync(reports, { recursive: true });
/** The tallies of this run, apart from those of another run in the same folder. */
const tallies = mkdtempSync(join(reports, 'run-'));
const turbo = spawn('turbo', process.argv.slice(2), {
  stdio: 'inherit',
  env: {
    ...process.env,
    TEST_MACHINE: JSON.stringify(machine),
    TEST_REPORTS: tallies,
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
if (results.length > 0) {
  const sum = (count: (result: Tally) => number) => results.reduce((total, result) => total + count(result), 0);
  const failures = results.flatMap((result) => result.failures);
  writeFileSync(join(reports, 'failures'), failures.map((failure) => `${failure}\n`).join(''));
  const tally = `${sum(({ passed }) => passed)} passed, ${failures.length} failed\n`;
  writeFileSync(join(reports, 'tally'), tally);
  const skipped = `${sum((result) => result.skipped)} skipped: each has a line that starts with SKIPPED`;
  process.stdout.write(['', ...failures, skipped, tally].join('\n'));
}
