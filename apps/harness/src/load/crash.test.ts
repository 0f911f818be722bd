import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { auditJournal } from '../audit/audit-journal.ts';
import { constantRate } from './arrivals.ts';
import { type LoadGateway, startLoadGateway } from './load-gateway.ts';
import { runLoad } from './run-load.ts';
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

function linesOf(file: string): number {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0;
}

test('a gateway that is killed in the middle of a run has lost, doubled and changed nothing that it acknowledged', {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'crash-'));
  let gateway: LoadGateway | undefined;
  onTestFinished(async () => {
    await gateway?.stop();
    rmSync(folder, { recursive: true });
  }, 60_000);
  const { signal } = new AbortController();
  gateway = await startLoadGateway(settings.merchants, signal);
  const { credentials, databaseUrl, crash } = gateway;
  const journalFile = join(folder, 'journal.ndjson');
  const progress = { write: () => true };
  const running = runLoad({ settings, target: gateway, credentials, journalFile, progress }, signal);
  let isOver = false;
  const ended = running.finally(() => {
    isOver = true;
  });
  while (linesOf(journalFile) < acknowledgedMin && !isOver) await sleep(20);
  const linesBefore = linesOf(journalFile);
  await crash();
  const { totals } = await ended;

  // The crash was felt, and calls went well before and after it.
  expect(totals.errors).toBeGreaterThan(0);
  expect(linesBefore).toBeGreaterThanOrEqual(acknowledgedMin);
  expect(linesOf(journalFile) - linesBefore).toBeGreaterThanOrEqual(acknowledgedMin);
  const counts = await auditJournal(journalFile, databaseUrl);
  expect(counts).toMatchObject({ lost: 0, duplicated: 0, changed: 0 });
  expect(counts.acknowledged).toBeGreaterThanOrEqual(2 * acknowledgedMin);

  // The command comes to the same, and finds one that was acknowledged and is not there.
  const audit = () =>
    promisify(execFile)(process.execPath, [auditProgram, '--journal', journalFile], {
      env: { DATABASE_URL: databaseUrl },
    });
  const clean = `audit  ${counts.acknowledged} acknowledged: 0 lost, 0 duplicated, 0 changed`;
  expect((await audit()).stdout).toContain(clean);
  appendFileSync(journalFile, `[0,"load-${settings.seed}-none",99,"token","1.00"]\n`);
  await expect(audit()).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining(': 1 lost, 0 duplicated') });
});
