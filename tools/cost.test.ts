import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createTotals, kindOf } from './cost.ts';
import { mustSkip } from './skip-if-missing.ts';

/** A sample: the parent, the own CPU time, and the time of children that have ended. */
const sample = (parent: number, own: number, ofEnded = 0, startedAt = '1') => ({ parent, startedAt, own, ofEnded });

test('the time of every process counts once, even if it ends between two samples or is in no sample', () => {
  const commandLines = ['', '', 'vitest run', '/bin/postgres -D x', '', '/bin/tsc', '/bin/buf'];
  const totals = createTotals(1, (pid) => commandLines[pid] ?? '');
  const [tool, postgres] = [sample(0, 50), sample(2, 1.5, 4)];
  const add = (samples: Readonly<Record<string, ReturnType<typeof sample>>>) =>
    totals.add(new Map(Object.entries({ 1: tool, ...samples }).map(([pid, process]) => [Number(pid), process])));
  add({ 2: sample(1, 2), 3: sample(2, 1), 9: sample(0, 70) });
  // A session of PostgreSQL that no sample contains took 4 s.
  add({ 2: sample(1, 3), 3: postgres, 5: sample(2, 6) });
  // The compiler has ended, but its parent was read before it noticed that.
  add({ 2: sample(1, 3), 3: postgres });
  add({ 2: sample(1, 3, 7), 3: postgres });
  // The number of the compiler now belongs to another process.
  add({ 2: sample(1, 3, 7), 3: postgres, 5: sample(2, 1, 0, '2') });
  // A process and its child end between two samples.
  add({ 2: sample(1, 3, 8), 3: postgres, 5: sample(2, 1), 6: sample(5, 2) });
  add({ 2: sample(1, 3, 12), 3: postgres });
  expect(Object.fromEntries(totals.totals)).toEqual({
    'test code': { seconds: 3 + 1, processes: 1 },
    PostgreSQL: { seconds: 1.5 + 4, processes: 1 },
    tsc: { seconds: 6 + 1 + 1 + 1, processes: 3 },
    'npm, buf, knip, Biome, turbo': { seconds: 2, processes: 1 },
  });
});

test.each([
  ['/x/bin/postgres -D /dev/shm/x', 'PostgreSQL'],
  ['postgres: order_gateway db 127.0.0.1(5432) idle', 'PostgreSQL'],
  ['/usr/lib/chromium/chromium-headless-shell --type=renderer', 'Chromium'],
  ['/x/bin/node --v8-pool-size=0 src/main.ts', 'gateway and checkout processes'],
  ['node src/cli/orders.ts --help', 'command-line programs'],
  ['node /x/node_modules/vitest/dist/workers/forks.js', 'test code'],
  ['node tools/turbo.ts run test', 'npm, buf, knip, Biome, turbo'],
  ['sha256sum file', 'other programs'],
])('%s counts as %s', (commandLine, kind) => {
  expect(kindOf(commandLine)).toBe(kind);
});

test.skipIf(mustSkip('the cost of a command', process.platform === 'linux' ? undefined : 'there is no /proc'))(
  'test:cost passes on the exit code and the output, and measures a process',
  () => {
    const program = 'while (process.cpuUsage().user < 2e5); console.log("done"); process.exitCode = 3';
    const run = () =>
      execFileSync(process.execPath, ['tools/cost.ts', process.execPath, '-e', program], { stdio: 'pipe' });
    expect(run).toThrow(expect.objectContaining({ status: 3, stdout: expect.any(Buffer) }));
  },
);
