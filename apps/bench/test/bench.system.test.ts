import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { missing, mustSkip } from '../../../tools/skip-if-missing.ts';
import { temporaryFolder } from '../../../tools/test-resources.ts';
import { allStored, bench, outcomes, program } from './run-bench.ts';

test('contenders are compared, and no temporary files are left behind', async () => {
  // Every contender runs in test:slow.
  const lacksWrk = mustSkip('fastify in the bench', missing('wrk'));
  const names = ['gateway-grpc', ...(lacksWrk ? [] : ['fastify'])];
  let seconds = 1;
  const outcomesOfLongerRun = async () => {
    const args = ['--only', 'gateway-grpc,fastify', '--rounds', '1', '--seconds', String(seconds)];
    const { stdout, sections } = await bench(...args);
    for (const name of names) expect(stdout).toContain(`| ${name} `);
    expect(sections[0]?.runs['gateway-grpc']?.[0]?.allocatedBytes).toBeGreaterThan(0);
    // A slow machine may store nothing in a second.
    seconds *= 4;
    return sections.map(outcomes);
  };
  const expected = [names, ['gateway-grpc', 'insert'], ['gateway-grpc']].map(allStored);
  await expect.poll(outcomesOfLongerRun).toEqual(expected);
});

test('after a signal, the bench stops with exit code 1, and no temporary files are left behind', async () => {
  const TMPDIR = await temporaryFolder();
  const args = [program, '--only', 'gateway-grpc', '--rounds', '1', '--seconds', '20'];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, TMPDIR },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  let last = '';
  for await (const line of createInterface(child.stderr)) {
    last = line;
    if (line.startsWith('warm-up')) child.kill('SIGTERM');
  }
  expect(last).toBe('Stopped.');
  expect(await exited).toEqual([1, null]);
  expect(await readdir(TMPDIR)).toEqual([]);
});

test.each([
  [['--rounds', '0'], "option '--rounds <number>' argument '0' is invalid. It must be a whole number above 0."],
  [
    ['--only', 'gateway-json,x'],
    "option '--only <names>' argument 'gateway-json,x' is invalid. Unknown contenders: x. The contenders are gateway-json",
  ],
  [['--growht', '1'], "unknown option '--growht'"],
])('%s is rejected with a message that describes the mistake', async (args, message) => {
  const outcome = promisify(execFile)(process.execPath, [program, ...args]);
  await expect(outcome).rejects.toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(message) });
});
