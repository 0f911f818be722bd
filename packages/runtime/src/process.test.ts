import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { stopTimeoutMs } from './process.ts';

function runProgram(program: string) {
  const args = ['--input-type=module', '--eval', program];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: import.meta.dirname, encoding: 'utf8' });
  return [status, stdout, stderr];
}

test('if a stop exceeds its time limit, the process says so and exits with 1', () => {
  const program = `
    import { stopAndExit } from './process.ts';
    stopAndExit(() => new Promise((resolve) => setTimeout(resolve, 3_600_000)), ${10 - stopTimeoutMs});`;
  expect(runProgram(program)).toEqual([1, '', 'The stop did not end within 10 ms, so the process ends now.\n']);
});

// A package manager that ends can also forward the signal that ended it.
test.each([
  ['a signal during a stop that the program began has no effect', 'stopOnce()', [0, 'stopped', '']],
  ['a second signal ends the process at once', 'await signal()', [1, '', '']],
])('%s', (_, begin, outcome) => {
  const program = `
    import { once } from 'node:events';
    import { onStopSignal } from './process.ts';
    const { promise: released, resolve: release } = Promise.withResolvers();
    const stopOnce = onStopSignal(() => released.then(() => process.stdout.write('stopped')));
    const signal = async () => {
      const received = once(process, 'SIGTERM');
      process.kill(process.pid, 'SIGTERM');
      await received;
    };
    // Keeps the process running while it waits for a signal.
    setTimeout(() => {}, 3_600_000);
    ${begin};
    await signal();
    release();`;
  expect(runProgram(program)).toEqual(outcome);
});
