import { build } from 'hdr-histogram-js';

/** An hour, in microseconds: no call takes as long, unless the machine sleeps. */
const latencyMaxUs = 3_600_000_000;

/** Latencies in milliseconds, which need little memory. Percentiles are accurate to three significant digits. */
export type Latencies = ReturnType<typeof createLatencies>;

/** Creates an empty histogram. Its percentiles, maximum and mean are `undefined` if nothing was recorded. */
export function createLatencies() {
  const histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: latencyMaxUs,
    numberOfSignificantValueDigits: 3,
    bitBucketSize: 32,
    useWebAssembly: false,
  });
  const ifAny = (us: () => number) => (histogram.totalCount === 0 ? undefined : us() / 1_000);
  return {
    record: (ms: number) => histogram.recordValue(Math.min(latencyMaxUs, Math.max(0, Math.round(ms * 1_000)))),
    percentile: (percent: number) => ifAny(() => histogram.getValueAtPercentile(percent)),
    get count() {
      return histogram.totalCount;
    },
    get max() {
      return ifAny(() => histogram.maxValue);
    },
    get mean() {
      return ifAny(() => histogram.mean);
    },
  };
}
