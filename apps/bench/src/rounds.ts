import { type LoadResult, median } from './load.ts';

/** What one contender came to over all rounds: medians. */
export interface Standing {
  readonly name: string;
  readonly ordersPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
}

/**
 * Runs every contender once a round, in an order that turns from round to round, so that whatever slows the machine for a while
 * slows them all.
 */
export async function runRounds<Contender extends { readonly name: string }>(
  contenders: readonly Contender[],
  rounds: number,
  runOne: (contender: Contender, round: number) => Promise<LoadResult>,
): Promise<Standing[]> {
  const results = new Map<string, LoadResult[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of turned(contenders, round)) {
      results.get(contender.name)?.push(await runOne(contender, round));
    }
  }
  return [...results].map(([name, runs]) => standingOf(name, runs));
}

function standingOf(name: string, runs: readonly LoadResult[]): Standing {
  return {
    name,
    ordersPerSecond: median(runs.map(({ answers, durationMs }) => (answers / durationMs) * 1_000)),
    p50Ms: median(runs.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(runs.map(({ p99Ms }) => p99Ms)),
    failed: runs.reduce((sum, { failed }) => sum + failed, 0),
  };
}

function turned<Item>(items: readonly Item[], by: number): Item[] {
  const start = by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}
