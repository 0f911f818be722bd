import type { Failure } from '@order-gateway/domain/failure';

/** The minimum wait of a client after `overloaded`. The queue drains in a fraction of this time. */
const overloadedRetryAfterMs = 500;

/** Converts an error of the store to the failure of a call. */
export function storageFailure(kind: 'overloaded' | 'unavailable' | 'deadline_exceeded'): Failure {
  return kind === 'overloaded' ? { kind, retryAfterMs: retryAfter(overloadedRetryAfterMs) } : { kind };
}

/** The maximum jitter of a wait. */
const jitterMs = 2_000;

/** Adds random jitter to a wait, so that clients don't retry at the same time. Returns whole milliseconds. */
export function retryAfter(ms: number): number {
  return Math.ceil(ms + Math.random() * jitterMs);
}
