import type { Failure } from '@gateway/domain/failure';

/** How long a caller is asked to wait when a storage is overloaded: its queue is worked off in a fraction of this. */
const overloadedRetryAfterSeconds = 1;

/** What a caller is told of a storage that did not do its part. */
export function storageFailure(kind: 'overloaded' | 'unavailable' | 'deadline_exceeded'): Failure {
  return kind === 'overloaded' ? { kind, retryAfterSeconds: overloadedRetryAfterSeconds } : { kind };
}
