import { setTimeout as sleep } from 'node:timers/promises';

/** Work that no request starts. */
export interface BackgroundJob {
  readonly name: string;
  /** The pause after a run that left no work. */
  readonly everyMs: number;
  /** Resolves to `isDone: false` if it stopped at the limit of one run and more work may be left. */
  readonly run: (signal: AbortSignal) => Promise<{ readonly isDone: boolean }> | Promise<void>;
}

/**
 * Repeats jobs until `stop` is called, which aborts the signal and waits for the current runs. No job waits for another
 * one. Any number of processes may run the same jobs. After a failure, which is reported, a job pauses.
 */
export function repeatJobs(
  jobs: readonly BackgroundJob[],
  onFailure: (name: string, error: unknown) => void,
): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const repeat = async ({ name, everyMs, run }: BackgroundJob) => {
    while (!signal.aborted) {
      let isDone = true;
      try {
        const outcome = await run(signal);
        if (outcome) isDone = outcome.isDone;
      } catch (error) {
        onFailure(name, error);
      }
      if (isDone) await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  };
  const running = Promise.all(jobs.map(repeat));
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
