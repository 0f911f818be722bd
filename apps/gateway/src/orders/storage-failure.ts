import type { Failure } from '@gateway/domain/failure';

/** The least that a client waits after `overloaded`: the queue is empty in a fraction of this. */
const overloadedRetryAfterMs = 500;

/** The failure of a call whose storage did not respond as it should. */
export function storageFailure(kind: 'overloaded' | 'unavailable' | 'deadline_exceeded'): Failure {
  return kind === 'overloaded' ? { kind, retryAfterMs: retryAfter(overloadedRetryAfterMs) } : { kind };
}

/** The most random time of a wait. */
const jitterMs = 2_000;

/** The time to wait before another attempt, in whole milliseconds. Its jitter keeps clients from coming back together. */
export function retryAfter(ms: number): number {
  return Math.ceil(ms + Math.random() * jitterMs);
}
