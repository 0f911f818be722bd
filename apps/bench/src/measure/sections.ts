import type { Contender } from '../contenders.ts';
import type { LoadOptions } from '../load/send-load.ts';
import { measure, type Run } from './measure.ts';

export interface BenchContext {
  readonly rounds: number;
  readonly seconds: number;
  readonly only: readonly string[];
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
}

/** A part of the bench. Its contenders take turns, so that a temporary slowdown of the machine affects all of them. */
export interface Section extends Omit<LoadOptions, 'signal'> {
  readonly title: string;
  readonly rounds: number;
  /** Ratios of contenders that are not measured are omitted. */
  readonly ratios: readonly Ratio[];
}

/** The ratio of a metric of one contender (`of`) to the same metric of another (`to`). */
export interface Ratio {
  readonly metric: 'ordersPerSecond' | 'cpuMicroseconds' | 'allocatedBytes' | 'p50Ms' | 'p99Ms';
  readonly of: string;
  readonly to: string;
}

export interface Measured extends Section {
  /** The runs of each contender, one per round. */
  readonly runs: Readonly<Record<string, readonly Run[]>>;
  /** `median` is the median of the rounds' ratios, because the two runs of a round are closest in time. */
  readonly ratios: readonly (Ratio & { readonly median: number })[];
}

/** Measures a section. Each round begins with a different contender. */
export async function runSection(
  section: Section,
  contenders: readonly Contender[],
  { signal, progress }: BenchContext,
): Promise<Measured> {
  const { title, rounds, seconds } = section;
  progress(`${title}: ${contenders.length * rounds} runs of ${seconds} s`);
  const runs: Record<string, Run[]> = {};
  for (let round = 0; round < rounds; round += 1) {
    const start = round % contenders.length;
    for (const contender of [...contenders.slice(start), ...contenders.slice(0, start)]) {
      const run = await measure(contender, { ...section, signal });
      runs[contender.name] = [...(runs[contender.name] ?? []), run];
      const rate = `${Math.round(run.ordersPerSecond)} orders/s`;
      progress(`  round ${round + 1} of ${rounds}: ${contender.name} ${rate}`);
    }
  }
  const ratios = section.ratios.flatMap((ratio) => {
    const [of, to] = [runs[ratio.of], runs[ratio.to]];
    if (of === undefined || to === undefined) return [];
    const { metric } = ratio;
    return { ...ratio, median: median(of.map((run, round) => run[metric] / (to[round]?.[metric] ?? Number.NaN))) };
  });
  return { ...section, runs, ratios };
}

/** Returns the median, or NaN if the list is empty. */
export function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
