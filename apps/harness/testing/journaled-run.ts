import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type LoadGateway, startLoadGateway } from '../src/load/load-gateway.ts';
import { type LoadOutcome, runLoad } from '../src/load/run-load.ts';
import type { LoadSettings } from '../src/load/settings.ts';

export interface JournaledRun {
  readonly gateway: LoadGateway;
  readonly journalFile: string;
  readonly isOver: () => boolean;
  readonly ended: Promise<LoadOutcome>;
}

/** Begins a run with a journal against a gateway of its own, for a test that does it harm meanwhile. Both end with the test. */
export async function beginJournaledRun(settings: LoadSettings): Promise<JournaledRun> {
  const folder = mkdtempSync(join(tmpdir(), 'journaled-'));
  let gateway: LoadGateway | undefined;
  onTestFinished(async () => {
    await gateway?.stop();
    rmSync(folder, { recursive: true });
  }, 60_000);
  const { signal } = new AbortController();
  gateway = await startLoadGateway(settings.merchants, signal);
  const journalFile = join(folder, 'journal.ndjson');
  const run = {
    settings,
    target: gateway,
    credentials: gateway.credentials,
    journalFile,
    progress: { write: () => true },
  };
  let isOver = false;
  const ended = runLoad(run, signal).finally(() => {
    isOver = true;
  });
  return { gateway, journalFile, isOver: () => isOver, ended };
}
