import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@order-gateway/runtime/logger';
import { errorCode } from './attempts/advance.ts';
import { inBackground } from './providers/paced.ts';

/** Work that no request starts. */
export interface Job {
  readonly name: string;
  /** The pause after each run. */
  readonly everyMs: number;
  readonly run: (signal: AbortSignal) => Promise<unknown>;
}

/**
 * Repeats jobs until `stop` is called, which waits for the current runs. No job waits for another one. Any number of
 * processes may run the same jobs.
 */
export function startJobs(jobs: readonly Job[], logger: Logger) {
  const stopping = new AbortController();
  const { signal } = stopping;
  const repeat = async ({ name, everyMs, run }: Job) => {
    while (!signal.aborted) {
      await inBackground(() => run(signal)).catch((error: unknown) =>
        logger.warn({ job: name, error: errorCode(error) }, 'background job failed'),
      );
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  };
  const running = Promise.all(jobs.map(repeat));
  return {
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
}
