import { build, type Histogram } from 'hdr-histogram-js';

/** An hour, in microseconds: no call takes as long, but one that is due while a machine sleeps may. */
const latencyMaxUs = 3_600_000_000;

/** Latencies in milliseconds. Percentiles are right to three digits, in little memory. */
export interface Latencies {
  record(ms: number): void;
  readonly count: number;
  /** `undefined` where nothing was recorded. */
  percentile(percent: number): number | undefined;
  readonly max: number | undefined;
  readonly mean: number | undefined;
}

/** An empty histogram. */
export function createLatencies(): Latencies {
  const histogram: Histogram = build({
    ...{ lowestDiscernibleValue: 1, highestTrackableValue: latencyMaxUs, numberOfSignificantValueDigits: 3 },
    ...{ bitBucketSize: 32, useWebAssembly: false },
  });
  const ifAny = (us: () => number) => (histogram.totalCount === 0 ? undefined : us() / 1_000);
  return {
    record: (ms) => histogram.recordValue(Math.min(latencyMaxUs, Math.max(0, Math.round(ms * 1_000)))),
    get count() {
      return histogram.totalCount;
    },
    percentile: (percent) => ifAny(() => histogram.getValueAtPercentile(percent)),
    get max() {
      return ifAny(() => histogram.maxValue);
    },
    get mean() {
      return ifAny(() => histogram.mean);
    },
  };
}
