import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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

rmSync(reports, { recursive: true, force: true });
const turbo = spawn('turbo', process.argv.slice(2), {
  stdio: 'inherit',
  env: { ...process.env, TEST_MACHINE: JSON.stringify(machine), TURBO_TELEMETRY_DISABLED: '1' },
});
// The terminal also sends Ctrl-C to turbo, which first ends its tasks.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => turbo.kill());
const [code] = await once(turbo, 'exit');
process.exitCode = code ?? 1;

try {
  const tallies: Tally[] = readdirSync(reports).map((name) => JSON.parse(readFileSync(join(reports, name), 'utf8')));
  const passed = tallies.reduce((total, tally) => total + tally.passed, 0);
  const failures = tallies.flatMap((tally) => tally.failures);
  writeFileSync(join(reports, 'failures'), failures.map((failure) => `${failure}\n`).join(''));
  const tally = `${passed} passed, ${failures.length} failed\n`;
  writeFileSync(join(reports, 'tally'), tally);
  process.stdout.write(['', ...failures, tally].join('\n'));
} catch (error) {
  // No test ran.
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
