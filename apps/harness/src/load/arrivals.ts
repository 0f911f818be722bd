/** A stretch of a run in which the arrival rate goes in a straight line from one value to another. */
export interface Phase {
  readonly seconds: number;
  /** Calls a second at its start and at its end. */
  readonly rateFrom: number;
  readonly rateTo: number;
}

/** When each call of a run is due: known before the run begins, whatever the gateway does. */
export interface Arrivals {
  /** Calls in all. */
  readonly count: number;
  readonly seconds: number;
  /** The highest rate of any moment, in calls a second. */
  readonly peakRate: number;
  /** Milliseconds from the run's start until call `number`, counted from 0, is due. Never falls from one call to the next. */
  dueMs(number: number): number;
}

/** Stretches that end in a hair's breadth less than a whole call, by rounding, still make that call. */
const roundingMax = 1e-6;

/** The arrivals of phases one after the other. */
export function arrivalsOf(phases: readonly Phase[]): Arrivals {
  const stretches: { phase: Phase; startSeconds: number; callsBefore: number }[] = [];
  let seconds = 0;
  let calls = 0;
  for (const phase of phases) {
    stretches.push({ phase, startSeconds: seconds, callsBefore: calls });
    seconds += phase.seconds;
    calls += (phase.seconds * (phase.rateFrom + phase.rateTo)) / 2;
  }
  return {
    count: Math.max(0, Math.ceil(calls - roundingMax)),
    seconds,
    peakRate: Math.max(0, ...phases.flatMap(({ rateFrom, rateTo }) => [rateFrom, rateTo])),
    dueMs(number) {
      const stretch = lastBefore(stretches, number);
      if (stretch === undefined) return 0;
      const within = number - stretch.callsBefore;
      return (stretch.startSeconds + secondsUntil(stretch.phase, within)) * 1_000;
    },
  };
}

/** One rate all the time. */
export function constantRate(rate: number, seconds: number): Phase[] {
  return [{ seconds, rateFrom: rate, rateTo: rate }];
}

/** A base rate, and a higher one for the last `burstSeconds` of every `everySeconds`. */
export function bursts(options: {
  readonly rate: number;
  readonly seconds: number;
  readonly burstRate: number;
  readonly burstSeconds: number;
  readonly everySeconds: number;
}): Phase[] {
  const { rate, seconds, burstRate, burstSeconds, everySeconds } = options;
  const phases: Phase[] = [];
  for (let at = 0; at < seconds; at += everySeconds) {
    const calm = Math.min(everySeconds - burstSeconds, seconds - at);
    const high = Math.min(burstSeconds, seconds - at - calm);
    phases.push(...constantRate(rate, calm));
    if (high > 0) phases.push(...constantRate(burstRate, high));
  }
  return phases;
}

/** Binary search: a long run of bursts has thousands of stretches, and this is asked for every call. */
function lastBefore<Stretch extends { readonly callsBefore: number }>(
  stretches: readonly Stretch[],
  number: number,
): Stretch | undefined {
  let low = 0;
  let high = stretches.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((stretches[middle]?.callsBefore ?? 0) <= number) low = middle;
    else high = middle - 1;
  }
  return stretches[low];
}

/**
 * The seconds after which `calls` have arrived: the root of calls = from * t + slope / 2 * t², in the form that neither divides
 * by a slope of zero nor loses digits at a small one.
 */
function secondsUntil({ seconds, rateFrom, rateTo }: Phase, calls: number): number {
  if (calls <= 0) return 0;
  const slope = (rateTo - rateFrom) / seconds;
  const root = Math.sqrt(Math.max(0, rateFrom * rateFrom + 2 * slope * calls));
  return Math.min(seconds, (2 * calls) / (rateFrom + root));
}
