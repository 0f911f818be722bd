/** A part of a run in which the rate of calls changes linearly from `rate` to `to`, in calls per second. */
export interface Phase {
  readonly seconds: number;
  readonly rate: number;
  readonly to: number;
}

/** The time at which each call is scheduled, fixed before the run begins and independent of the gateway. */
export type Arrivals = ReturnType<typeof arrivalsOf>;

/** Rounding errors raise the sum of the phases by less than this. Such an error must not add a call. */
const roundingMax = 1e-6;

/** Returns the schedule of consecutive phases. */
export function arrivalsOf(phases: readonly Phase[]) {
  const starts: { phase: Phase; seconds: number; calls: number }[] = [];
  let seconds = 0;
  let calls = 0;
  for (const phase of phases) {
    starts.push({ phase, seconds, calls });
    seconds += phase.seconds;
    calls += (phase.seconds * (phase.rate + phase.to)) / 2;
  }
  // Numbers usually ascend, so the search begins at the phase of the previous call.
  let current = 0;
  return {
    /** The number of calls. */
    count: Math.max(0, Math.ceil(calls - roundingMax)),
    seconds,
    /**
     * Returns the milliseconds from the run's start until call `number`, counted from 0, is scheduled. Never decreases
     * from one call to the next.
     */
    scheduledMs(number: number): number {
      if ((starts[current]?.calls ?? 0) > number) current = 0;
      while ((starts[current + 1]?.calls ?? Number.POSITIVE_INFINITY) <= number) current += 1;
      const start = starts[current];
      return start === undefined ? 0 : (start.seconds + secondsUntil(start.phase, number - start.calls)) * 1_000;
    },
  };
}

export function constantRate(rate: number, seconds: number): Phase[] {
  return [{ seconds, rate, to: rate }];
}

/**
 * Returns the seconds of a phase after which `calls` have arrived: the root of calls = rate * t + slope / 2 * t², in
 * the form that neither divides by a slope of zero nor loses digits if the slope is small.
 */
function secondsUntil({ seconds, rate, to }: Phase, calls: number): number {
  if (calls <= 0) return 0;
  const slope = (to - rate) / seconds;
  const root = Math.sqrt(Math.max(0, rate * rate + 2 * slope * calls));
  return Math.min(seconds, (2 * calls) / (rate + root));
}
