import type { Failure } from '@gateway/domain/failure';

/** How long a client waits at least when the gateway is overloaded: its queue is empty in a fraction of this. */
const overloadedRetryAfterMs = 500;

/** The failure that a client gets where a storage did not respond as it should. */
export function storageFailure(kind: 'overloaded' | 'unavailable' | 'deadline_exceeded'): Failure {
  return kind === 'overloaded' ? { kind, retryAfterMs: retryAfter(overloadedRetryAfterMs) } : { kind };
}

/** The promise's value, or `deadline_exceeded` after `timeoutMs`. What the promise stands for is not stopped. */
export async function settledWithin<Value>(
  timeoutMs: number,
  promise: Promise<Value>,
): Promise<Value | 'deadline_exceeded'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'deadline_exceeded'>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, timeoutMs), 'deadline_exceeded');
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The longest part of a wait that is by chance. */
const jitterMs = 2_000;

/** The time to wait before another attempt, in whole milliseconds: longer by chance, so that clients do not come back together. */
export function retryAfter(ms: number): number {
  return Math.ceil(ms + Math.random() * jitterMs);
}
