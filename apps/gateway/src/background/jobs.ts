import type { Meter } from '@opentelemetry/api';
import { type BackgroundJob, repeatJobs } from '@order-gateway/runtime/background-jobs';
import type { Logger } from '@order-gateway/runtime/logger';

/** The jobs, each with the pause in milliseconds after a run that left no work. */
const pausesMs = {
  /** Stores the expiry of orders, with its event. A call that reads an expired order stores its expiry immediately. */
  expire: 1_000,
  /** Deletes events that are older than 30 days. */
  deleteOldEvents: 3_600_000,
  /** Reads the settings of the checkout systems that order records show. */
  readLateDays: 60_000,
  /** Erases orders past their retention. */
  eraseOldOrders: 3_600_000,
};

/** The work of each job; `undefined`: there is no such job. */
type BackgroundWork = Readonly<Record<keyof typeof pausesMs, BackgroundJob['run'] | undefined>>;

/** Runs the jobs in the background until `stop` is called. */
export function startBackgroundJobs(work: BackgroundWork, logger: Logger, meter: Meter): { stop(): Promise<void> } {
  const failures = meter.createCounter('order_gateway.background_job.failures', {
    description: 'Background jobs that failed',
  });
  const jobs = Object.entries(pausesMs).flatMap(([name, everyMs]): BackgroundJob[] => {
    const run = work[name as keyof BackgroundWork];
    return run === undefined ? [] : [{ name, everyMs, run }];
  });
  // Prometheus sees the first failure as an increase only if the counter existed before.
  for (const { name } of jobs) failures.add(0, { name });
  return repeatJobs(jobs, (job, err) => {
    failures.add(1, { name: job });
    logger.error({ err, job }, 'background job failed');
  });
}
