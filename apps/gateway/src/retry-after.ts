/** The longest part of a wait that is by chance. */
const jitterMs = 2_000;

/** The time to wait before another attempt, in whole milliseconds: longer by chance, so that clients do not come back together. */
export function retryAfter(ms: number): number {
  return Math.ceil(ms + Math.random() * jitterMs);
}
