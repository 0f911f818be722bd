import { build, decodeFromCompressedBase64, encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js';

/** An hour, in microseconds: no call takes as long, but one that is due while a machine sleeps may. */
const latencyMaxUs = 3_600_000_000;

/** Latencies of many calls, by which percentiles are right to three digits, in little memory. Milliseconds outside. */
export interface Latencies {
  record(ms: number): void;
  add(other: Latencies): void;
  readonly count: number;
  /** `undefined` where nothing was recorded. */
  percentile(percent: number): number | undefined;
  readonly max: number | undefined;
  readonly mean: number | undefined;
  /** As a text that {@link decodeLatencies} reads, for another process. */
  encode(): string;
  readonly histogram: Histogram;
}

export function createLatencies(): Latencies {
  return over(
    build({
      ...{ lowestDiscernibleValue: 1, highestTrackableValue: latencyMaxUs, numberOfSignificantValueDigits: 3 },
      ...{ bitBucketSize: 32, useWebAssembly: false },
    }),
  );
}

export function decodeLatencies(text: string): Latencies {
  return over(decodeFromCompressedBase64(text, 32));
}

function over(histogram: Histogram): Latencies {
  const ifAny = (us: () => number) => (histogram.totalCount === 0 ? undefined : us() / 1_000);
  return {
    histogram,
    record(ms) {
      histogram.recordValue(Math.min(latencyMaxUs, Math.max(0, Math.round(ms * 1_000))));
    },
    add: (other) => histogram.add(other.histogram),
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
    encode: () => encodeIntoCompressedBase64(histogram),
  };
}

/** Upper ends of the latency bands, in milliseconds; a last band holds what took longer. */
export const bandEndsMs = [0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000] as const;

/** The band of a latency. */
export function bandOf(ms: number): number {
  const band = bandEndsMs.findIndex((end) => ms < end);
  return band === -1 ? bandEndsMs.length : band;
}
