import type { Meter } from '@opentelemetry/api';
import { type BackgroundJob, repeatJobs } from '@order-gateway/runtime/background-jobs';
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

/** The jobs. */
export interface BackgroundWork {
  expire(): Promise<{ readonly isDone: boolean }>;
  deleteOldEvents(): Promise<{ readonly isDone: boolean }>;
  readLateDays(): Promise<{ readonly isDone: boolean }>;
  /** Absent: orders are never erased. */
  readonly eraseOldOrders?: ((signal: AbortSignal) => Promise<{ readonly isDone: boolean }>) | undefined;
}

/** Runs the jobs in the background until `stop` is called. */
export function startBackgroundJobs(work: BackgroundWork, logger: Logger, meter: Meter): { stop(): Promise<void> } {
  const failures = meter.createCounter('order_gateway.background_job.failures', {
    description: 'Background jobs that failed',
  });
  const jobs: readonly BackgroundJob[] = [
    { name: 'expire', everyMs: expireEveryMs, run: work.expire },
    { name: 'deleteOldEvents', everyMs: deleteEventsEveryMs, run: work.deleteOldEvents },
    { name: 'readLateDays', everyMs: readLateDaysEveryMs, run: work.readLateDays },
    ...(work.eraseOldOrders ? [{ name: 'eraseOldOrders', everyMs: eraseEveryMs, run: work.eraseOldOrders }] : []),
  ];
  // Prometheus sees the first failure as an increase only if the counter existed before.
  for (const { name } of jobs) failures.add(0, { name });
  return repeatJobs(jobs, (job, err) => {
    failures.add(1, { name: job });
    logger.error({ err, job }, 'background job failed');
  });
}
