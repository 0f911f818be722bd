import type { Failure } from '@order-gateway/domain/failure';

/** The minimum wait of a client after `overloaded`. The queue is empty in a fraction of this time. */
const overloadedRetryAfterMs = 500;

/** The failure of a call for an error of the storage. */
export function storageFailure(kind: 'overloaded' | 'unavailable' | 'deadline_exceeded'): Failure {
  return kind === 'overloaded' ? { kind, retryAfterMs: retryAfter(overloadedRetryAfterMs) } : { kind };
}

/** The maximum jitter of a wait. */
const jitterMs = 2_000;

/** The time to wait before another attempt, in whole milliseconds. Its jitter keeps clients from retrying together. */
export function retryAfter(ms: number): number {
  return Math.ceil(ms + Math.random() * jitterMs);
}
