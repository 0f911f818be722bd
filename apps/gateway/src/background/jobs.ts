import { setTimeout as sleep } from 'node:timers/promises';
import type { Meter } from '@opentelemetry/api';
import type { Logger } from '@order-gateway/runtime/logger';

/**
 * How often to look for orders past their expiry, and to store the expiry with its event. A call that reads such an
 * order stores its expiry immediately.
 */
const expireEveryMs = 1_000;

/** How often to look for events older than 30 days. */
const deleteEventsEveryMs = 3_600_000;

/** How often to look for orders past their retention. */
const eraseEveryMs = 3_600_000;

/** How often to read the settings of the checkout systems that order records show. */
const readLateDaysEveryMs = 60_000;

/** The jobs. A run resolves to `isDone: false` if it stopped at the limit of one run and more work may be left. */
export interface BackgroundWork {
  expire(): Promise<{ readonly isDone: boolean }>;
  deleteOldEvents(): Promise<{ readonly isDone: boolean }>;
  readLateDays(): Promise<{ readonly isDone: boolean }>;
  /** Absent: orders are never erased. */
  readonly eraseOldOrders?: ((signal: AbortSignal) => Promise<{ readonly isDone: boolean }>) | undefined;
}

/** Runs the jobs in the background until `stop` is called. Any number of processes may run them at the same time. */
export function startBackgroundJobs(work: BackgroundWork, logger: Logger, meter: Meter): { stop(): Promise<void> } {
  const failures = meter.createCounter('order_gateway.background_job.failures', {
    description: 'Background jobs that failed',
  });
  const stopping = new AbortController();
  const repeat = async (job: keyof BackgroundWork, everyMs: number) => {
    while (!stopping.signal.aborted) {
      const running = work[job]?.(stopping.signal);
      if (running === undefined) return;
      // Prometheus sees the first failure as an increase only if the counter existed before.
      failures.add(0, { name: job });
      const { isDone } = await running.catch((error: unknown) => {
        failures.add(1, { name: job });
        logger.error({ err: error, job }, 'background job failed');
        return { isDone: true };
      });
      if (isDone) await sleep(everyMs, undefined, { signal: stopping.signal }).catch(() => {});
    }
  };
  const jobs = Promise.all([
    repeat('expire', expireEveryMs),
    repeat('deleteOldEvents', deleteEventsEveryMs),
    repeat('eraseOldOrders', eraseEveryMs),
    repeat('readLateDays', readLateDaysEveryMs),
  ]);
  return {
    async stop() {
      stopping.abort();
      await jobs;
    },
  };
}
