import type { Credentials } from '@gateway/fixtures/fill-call';
import type { GatewayAddresses } from '../gateway-process.ts';
import { arrivalsOf } from './arrivals.ts';
import { startJournal } from './journal.ts';
import { orderIdPrefix } from './plan-calls.ts';
import { createProgress, type ProgressOutput } from './progress.ts';
import type { LoadSettings } from './settings.ts';
import { startWorkers } from './start-workers.ts';
import { createTotals, type Totals } from './totals.ts';

export interface LoadRun {
  readonly settings: LoadSettings;
  readonly target: GatewayAddresses;
  readonly credentials: readonly Credentials[];
  /** Where acknowledgements are written; must not be there yet. */
  readonly journalFile: string | undefined;
  readonly progress: ProgressOutput;
}

export interface LoadOutcome {
  readonly totals: Totals;
  readonly startedAt: Date;
  readonly seconds: number;
  readonly interrupted: boolean;
  /** Why sending processes died, each with a sentence; none usually. */
  readonly deaths: readonly string[];
}

/** How often the progress line is told anew. */
const progressEveryMs = 500;

/** Sends a whole run and counts what became of it. When `signal` aborts, the run ends at once with what was counted so far. */
export async function runLoad(run: LoadRun, signal: AbortSignal): Promise<LoadOutcome> {
  const { settings, target, credentials, journalFile } = run;
  if (journalFile !== undefined) {
    const clientIds = credentials.map(({ clientId }) => clientId);
    startJournal(journalFile, { orderIdPrefix: orderIdPrefix(settings.seed), clientIds });
  }
  const totals = createTotals();
  const { httpUrl, grpcAddress } = target;
  const task = { settings, httpUrl, grpcAddress, credentials, journalFile };
  const workers = await startWorkers(task, (part) => totals.add(part));
  const startedAt = new Date(workers.startAtMs);
  const elapsedMs = () => Math.max(0, Date.now() - workers.startAtMs);
  const progress = createProgress(run.progress, totals, arrivalsOf(settings.phases).seconds);
  const ticking = setInterval(() => progress.update(elapsedMs()), progressEveryMs);
  const interrupt = () => void workers.stop();
  signal.addEventListener('abort', interrupt, { once: true });
  try {
    if (signal.aborted) interrupt();
    const died = await workers.ended;
    // What they told before counts.
    for (const { underWay } of died) totals.giveUp(underWay);
    const seconds = elapsedMs() / 1_000;
    return { totals, startedAt, seconds, interrupted: signal.aborted, deaths: died.map(({ reason }) => reason) };
  } finally {
    clearInterval(ticking);
    progress.end();
    signal.removeEventListener('abort', interrupt);
    await workers.stop();
  }
}
