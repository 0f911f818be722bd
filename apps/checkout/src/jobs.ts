import { type BackgroundJob, repeatJobs } from '@order-gateway/runtime/background-jobs';
import type { Logger } from '@order-gateway/runtime/logger';
import { errorCode } from './attempts/advance.ts';
import { inBackground } from './providers/paced.ts';

/** Repeats jobs, for whose calls of providers no customer waits, until `stop` is called. */
export function startJobs(jobs: readonly BackgroundJob[], logger: Logger) {
  return inBackground(() =>
    repeatJobs(jobs, (job, error) => logger.warn({ job, error: errorCode(error) }, 'background job failed')),
  );
}
