import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { mustSkip } from '../../../../tools/skip-if-missing.ts';
import type { FaultResult } from '../../src/reliability.ts';
import { faults } from './faults.ts';
import { expectNothingLost, type FaultRun, faultTable, faultyServer, runFaults, wrongOutcomes } from './run-faults.ts';

const { FAULTS_SEED = randomInt(2 ** 32), FAULTS_PERCENT = 100, FAULTS_PENDING, FAULTS_RESULT } = process.env;
const seed = Number(FAULTS_SEED);
process.stdout.write(`FAULTS_SEED=${seed} repeats the calls and the faults\n`);

const smallDisk = mkdtempSync(join(tmpdir(), 'small-disk-'));
const isSkipped = mustSkip('a full disk', canMount() ? undefined : 'only root can mount a small disk');
const runs: (FaultRun & Pick<FaultResult, 'name' | 'wrong'>)[] = [];

afterAll(() => {
  rmdirSync(smallDisk);
  process.stdout.write(faultTable(runs));
  const results = runs.map(({ recorder, ...run }): FaultResult => ({ ...run, calls: recorder.sent }));
  if (FAULTS_RESULT !== undefined) writeFileSync(FAULTS_RESULT, JSON.stringify(results));
});

for (const fault of faults) {
  test.skipIf(fault.onSmallDisk && isSkipped)(`${fault.name}: no acknowledged order or change is lost`, async () => {
    const times = Math.ceil((fault.times * Number(FAULTS_PERCENT)) / 100);
    process.stdout.write(`${fault.name}, ${times} times\n`);
    if (fault.onSmallDisk) {
      mount();
      onTestFinished(unmount);
    }
    const startDatabase = faultyServer(seed, [fault], fault.onSmallDisk ? smallDisk : undefined);
    const pendingMax = FAULTS_PENDING ? Number(FAULTS_PENDING) : undefined;
    const run = await runFaults({ seed, faults: [{ fault, times }], startDatabase, pendingMax });
    const isKilled = fault.name === 'gateway killed';
    runs.push({ name: fault.name, wrong: wrongOutcomes(run, isKilled), ...run });
    expectNothingLost(run, isKilled);
    expect(run.late).toBe(0);
  });
}

/** Mounts a small disk. The server's files need 50 MB, and its write-ahead log needs up to 64 MB. */
function mount(): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300m', 'tmpfs', smallDisk], { stdio: 'ignore' });
}

function unmount(): void {
  execFileSync('umount', ['--lazy', smallDisk]);
}

function canMount(): boolean {
  try {
    mount();
    unmount();
    return true;
  } catch {
    return false;
  }
}
