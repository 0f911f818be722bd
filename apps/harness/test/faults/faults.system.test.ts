import { randomInt } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { testLimitMs } from '../../../../tools/test-limits.ts';
import { faults } from './faults.ts';
import { expectNothingLost, faultTable, faultyServer, runFaults } from './run-faults.ts';

// The gateway recovers from one fault after another, which took more than 10 minutes at half a core.
vi.setConfig({ testTimeout: 3 * testLimitMs });

test('under a few faults of most kinds, no acknowledged order or change is lost, duplicated or altered', async () => {
  const seed = Number(process.env.FAULTS_SEED ?? randomInt(2 ** 32));
  process.stdout.write(`FAULTS_SEED=${seed} repeats the calls and the faults\n`);
  const planned = faults.filter(({ timesInShort }) => timesInShort > 0);
  const run = await runFaults({
    seed,
    faults: planned.map((fault) => ({ fault, times: fault.timesInShort })),
    startDatabase: faultyServer(seed, planned),
    // Few enough calls are in flight that each gets its response before the client gives up, even on part of one core.
    pendingMax: 8,
  });
  process.stdout.write(faultTable([{ name: 'all', ...run }]));
  expectNothingLost(run, true);
  // Some calls failed, so the faults had an effect.
  expect(run.recorder.errors).toBeGreaterThan(0);
});
