import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase } from '@gateway/dev-postgres/testing';
import { onTestFinished } from 'vitest';
import { type OwnGateway, startOwnGateway } from '../src/gateway/own-gateway.ts';
import { parseProfile } from '../src/load/profile.ts';
import { type LoadOutcome, runLoad } from '../src/load/run-load.ts';

/** A run in progress. */
export interface JournaledRun {
  readonly gateway: OwnGateway;
  readonly journalFile: string;
  readonly isOver: () => boolean;
  readonly ended: Promise<LoadOutcome>;
}

/** Starts a run with a journal at a gateway of its own, for a test that disturbs it meanwhile. Both end with the test. */
export async function startJournaledRun(seed: number, profile: object): Promise<JournaledRun> {
  const folder = mkdtempSync(join(tmpdir(), 'journaled-'));
  let gateway: OwnGateway | undefined;
  onTestFinished(async () => {
    await gateway?.stop();
    rmSync(folder, { recursive: true });
  }, 60_000);
  const { signal } = new AbortController();
  gateway = await startOwnGateway([{ name: 'First' }, { name: 'Second' }], signal, testDatabase);
  const journalFile = join(folder, 'journal.ndjson');
  const settings = { ...parseProfile({ merchants: 2, ...profile }), profile: 'none', seed };
  const { credentials } = gateway;
  const progress = { write: () => true };
  let isOver = false;
  const ended = runLoad({ settings, target: gateway, credentials, journalFile, progress }, signal).finally(() => {
    isOver = true;
  });
  return { gateway, journalFile, isOver: () => isOver, ended };
}

/** The number of entries in a journal: every line but its first is one. */
export function acknowledgedIn(journalFile: string): number {
  return existsSync(journalFile) ? readFileSync(journalFile, 'utf8').trimEnd().split('\n').length - 1 : 0;
}

/** A database of the server that all tests share. */
async function testDatabase() {
  const { url, drop } = await createTestDatabase();
  return { url, stop: drop };
}
