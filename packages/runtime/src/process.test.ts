import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { stopTimeoutMs } from './process.ts';

test('if a stop exceeds its time limit, the process says so and exits with 1', () => {
  const program = `
    import { stopAndExit } from './process.ts';
    stopAndExit(() => new Promise((resolve) => setTimeout(resolve, 3_600_000)), ${10 - stopTimeoutMs});`;
  const args = ['--input-type=module', '--eval', program];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: import.meta.dirname, encoding: 'utf8' });
  expect([status, stdout, stderr]).toEqual([1, '', 'The stop did not end within 10 ms, so the process ends now.\n']);
});
