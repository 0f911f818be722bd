import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { beginJournaledRun } from '../../testing/journaled-run.ts';
import { auditJournal } from '../audit/audit-journal.ts';
import { constantRate } from './arrivals.ts';
import type { LoadSettings } from './settings.ts';

const auditProgram = fileURLToPath(new URL('../audit-orders.ts', import.meta.url));

const settings: LoadSettings = {
  ...{
    profile: 'none',
    mode: 'open',
    protocol: 'mixed',
    phases: constantRate(150, 8),
    connections: 4,
    underWayMax: 2_000,
  },
  ...{ merchants: 2, replayShare: 0.1, invalidShare: 0, seed: 20_261_120, workers: 1, thresholds: {} },
};

/** Acknowledged before the crash, and at least as many after it. */
const acknowledgedMin = 100;

/** Every line of a journal but its first is an acknowledgement. */
function acknowledgedIn(journalFile: string): number {
  return existsSync(journalFile) ? readFileSync(journalFile, 'utf8').trimEnd().split('\n').length - 1 : 0;
}

test('a gateway that is killed in the middle of a run has lost, doubled and changed nothing that it acknowledged', {
  timeout: 60_000,
}, async () => {
  const { gateway, journalFile, isOver, ended } = await beginJournaledRun(settings);
  const { databaseUrl } = gateway;
  while (acknowledgedIn(journalFile) < acknowledgedMin && !isOver()) await sleep(20);
  const acknowledgedBefore = acknowledgedIn(journalFile);
  await gateway.crash();
  const { totals } = await ended;

  // The crash was felt, and calls went well before and after it.
  expect(totals.errors).toBeGreaterThan(0);
  expect(totals.done).toBeGreaterThan(200);
  expect(acknowledgedBefore).toBeGreaterThanOrEqual(acknowledgedMin);
  expect(acknowledgedIn(journalFile) - acknowledgedBefore).toBeGreaterThanOrEqual(acknowledgedMin);
  const counts = await auditJournal(journalFile, databaseUrl);
  expect(counts).toMatchObject({ lost: 0, duplicated: 0, changed: 0 });
  expect(counts.acknowledged).toBeGreaterThan(200);

  // The command comes to the same, and finds one that was acknowledged and is not there.
  const audit = (file = journalFile) =>
    promisify(execFile)(process.execPath, [auditProgram, '--journal', file], {
      env: { DATABASE_URL: databaseUrl },
    });
  const clean = `audit  ${counts.acknowledged} acknowledged: 0 lost, 0 duplicated, 0 changed`;
  expect((await audit()).stdout).toContain(clean);
  appendFileSync(journalFile, `\n[0,"load-${settings.seed}-none",99,"token","1.00"]`);
  await expect(audit()).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining(': 1 lost, 0 duplicated') });

  // What it could not hold against the database is told, and no part of a good result.
  appendFileSync(journalFile, '\n[0,"load-');
  await expect(audit()).rejects.toMatchObject({ stdout: expect.stringContaining('1 unreadable in the journal') });
  const cut = `${journalFile}-cut`;
  writeFileSync(cut, readFileSync(journalFile, 'utf8').replace(/\n.*-none.*\n/, '\n'));
  await expect(audit(cut)).rejects.toMatchObject({
    code: 1,
    stdout: expect.stringContaining(': 0 lost, 0 duplicated'),
  });
  const empty = `${journalFile}-empty`;
  writeFileSync(empty, `${readFileSync(journalFile, 'utf8').split('\n')[0]}\n`);
  const told = 'the journal holds no acknowledgement to audit\n';
  await expect(audit(empty)).rejects.toMatchObject({ code: 2, stderr: told });
});
