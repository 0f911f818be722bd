/** What one run of load came to. */
export interface LoadResult {
  /** Answers of success. */
  readonly answers: number;
  readonly failed: number;
  readonly durationMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** How a door is loaded. */
export interface LoadOptions {
  readonly port: number;
  /** Calls under way at a time. */
  readonly concurrency: number;
  readonly seconds: number;
  /** Part of every order_id, so that no two runs send the same order. */
  readonly run: string;
  readonly credentials: { readonly clientId: string; readonly clientSecret: string };
}

/** A sender on a schedule begins this long before it counts: its own start would be measured, and the calls that it held up. */
export const settlingSeconds = 2;

/** The last line of a program's output that is JSON. Throws where there is none: the program failed. */
export function resultIn(output: string): LoadResult {
  const line = output.split('\n').findLast((line) => line.startsWith('{'));
  if (line === undefined) throw new Error(`no result in:\n${output}`);
  return JSON.parse(line) as LoadResult;
}

/** A percentile of sorted numbers, by the nearest rank. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0;
}

export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}
