import { type Call, type History, isFinal, noOrder, type State, statesAfter, stepsOf } from './model.ts';

/** Shows why no serial order of the calls explains a history: the longest serial order of some calls, and its end. */
export interface Unexplained {
  /** The steps of the longest serial order, first to last. */
  readonly longest: readonly Call[];
  /** The state of the order after these steps. */
  readonly state: State;
  /**
   * The possible next steps, without those that need not have taken effect. Each contradicts the state, or the steps
   * after it do.
   */
  readonly next: readonly Call[];
}

/** The beginning of a serial order: the steps that it contains, and the state after them. */
interface Part {
  readonly done: bigint;
  readonly state: State;
  readonly last: number;
  readonly previous: Part | undefined;
}

/**
 * Searches for a serial order of the calls that is consistent with real time and explains every response and what is
 * stored. Returns `undefined` if there is one, and otherwise the longest order of some of the calls. Like Porcupine, it
 * uses the algorithm of Wing and Gong (1993), and remembers the states it has seen, as Lowe (2017) does.
 */
export function findUnexplained(history: History): Unexplained | undefined {
  const { stored } = history;
  const steps = stepsOf(history.calls.toSorted((a, b) => a.sentAt - b.sentAt));
  const required = steps.reduce(
    (bits, { receivedAt }, index) => (receivedAt < Infinity ? bits | bit(index) : bits),
    0n,
  );
  const twins = earlierTwins(steps);
  const isNew = createFilter(steps, required);
  const start: Part = { done: 0n, state: noOrder, last: -1, previous: undefined };
  // A step is optional if its `receivedAt` is infinite, because no response shows that it took effect. Parts with fewer
  // optional steps are examined first: the parts in `later` have one more of them than those in `pending`.
  let [pending, later]: [Part[], Part[]] = [[start], []];
  let longest = start;
  let longestLength = 0;
  for (;;) {
    if (pending.length === 0) [pending, later] = [later, []];
    const part = pending.pop();
    if (part === undefined) break;
    const { done, state } = part;
    if ((done & required) === required && isFinal(state, stored)) return undefined;
    if (!isNew(part)) continue;
    const length = lengthOf(part);
    if (length > longestLength) [longest, longestLength] = [part, length];
    const parts: Part[] = [];
    const latestMs = earliestEnd(steps, required & ~done);
    for (const index of nextSteps(steps, done)) {
      const twin = twins[index];
      if (twin !== undefined && (done & bit(twin)) === 0n) continue;
      const step = steps[index] as Call;
      const { during, receivedAt } = step;
      const call = receivedAt === Infinity ? { ...step, during: { ...during, toMs: latestMs } } : step;
      const needsNoOther = call.response !== undefined && call.request.kind !== 'end';
      for (const after of statesAfter(state, call, stored)) {
        const following = { done: done | bit(index), state: after, last: index, previous: part };
        // An optional step without an effect explains nothing, so it is skipped. If a step with a response has no
        // effect, every explanation can continue with it, so no other step is tried. A step that ends a lease may have
        // an effect later instead of now, with the same response, so other steps are tried too.
        if (after === state && call.receivedAt === Infinity) continue;
        if (after === state && needsNoOther) {
          parts.length = 0;
          parts.push(following);
          break;
        }
        parts.push(following);
      }
      if (needsNoOther && parts.at(-1)?.state === state) break;
    }
    for (const following of parts) {
      const isRequired = (required & bit(following.last)) !== 0n;
      (isRequired ? pending : later).push(following);
    }
  }
  const order: Call[] = [];
  for (let part = longest; part.previous !== undefined; part = part.previous) order.unshift(steps[part.last] as Call);
  return {
    longest: order,
    state: longest.state,
    next: nextSteps(steps, longest.done)
      .map((index) => steps[index] as Call)
      .filter(({ receivedAt }) => receivedAt < Infinity),
  };
}

/**
 * Returns, for each step without a response, the latest earlier one with the same request. In a serial order, the
 * earlier one can replace the later one, which can't have taken effect before it was sent. So the search uses the
 * earlier one first. Without this rule, each repetition of a call would multiply the states to search.
 */
function earlierTwins(steps: readonly Call[]): (number | undefined)[] {
  const latest = new Map<string, number>();
  return steps.map(({ request, receivedAt, after }, index) => {
    if (receivedAt < Infinity) return undefined;
    const key = JSON.stringify([request, after === undefined ? null : steps[after]?.request]);
    const twin = latest.get(key);
    latest.set(key, index);
    return twin;
  });
}

/**
 * Returns a function that says whether a part can lead to a new state. It cannot if an earlier part has the same state
 * and the same steps, or lacks only optional steps, because those can still follow. A step that must precede another
 * one does not count as optional here.
 */
function createFilter(steps: readonly Call[], required: bigint): (part: Part) => boolean {
  const seen = new Map<string, bigint[]>();
  const exact = steps.reduce((bits, { after }) => (after === undefined ? bits : bits | bit(after)), required);
  return ({ done, state }) => {
    const optional = done & ~exact;
    const earlier = seen.getOrInsertComputed(`${done & exact} ${JSON.stringify(state)}`, () => []);
    if (earlier.some((bits) => (bits & ~optional) === 0n)) return false;
    earlier.push(optional);
    return true;
  };
}

/**
 * Returns a smaller history that is still unexplained. Removes reads and the responses of other calls, one at a time,
 * as long as the history stays unexplained. The calls that still have a response contradict each other or what is
 * stored.
 */
export function smallest(history: History): History {
  let calls = [...history.calls];
  for (const call of history.calls) {
    const withoutCall = calls.filter((other) => other !== call);
    const unansweredCall = {
      ...call,
      receivedAt: Infinity,
      during: { ...call.during, toMs: Infinity },
      response: undefined,
    };
    const withUnanswered = calls.map((other) => (other === call ? unansweredCall : other));
    const isReading = call.request.kind === 'read';
    const smaller = isReading ? withoutCall : withUnanswered;
    if (findUnexplained({ ...history, calls: smaller }) !== undefined) calls = smaller;
  }
  return { ...history, calls };
}

/**
 * Returns the steps that can be next: those that were sent before the earliest response of all remaining steps. The
 * second step of a call can be next only after the first.
 */
function nextSteps(steps: readonly Call[], done: bigint): number[] {
  let earliestResponse = Number.POSITIVE_INFINITY;
  const remaining: number[] = [];
  for (const [index, { receivedAt }] of steps.entries()) {
    if ((done & bit(index)) !== 0n) continue;
    remaining.push(index);
    earliestResponse = Math.min(earliestResponse, receivedAt);
  }
  return remaining.filter((index) => {
    const { sentAt, after } = steps[index] as Call;
    return sentAt <= earliestResponse && (after === undefined || (done & bit(after)) !== 0n);
  });
}

/**
 * Returns the earliest end of the periods of the remaining required steps. A step without a response that is put before
 * them has taken effect by then.
 */
function earliestEnd(steps: readonly Call[], remaining: bigint): number {
  const ends = steps.filter((_, index) => (remaining & bit(index)) !== 0n).map(({ during }) => during.toMs);
  return Math.min(...ends);
}

function lengthOf({ done }: Part): number {
  return done.toString(2).replaceAll('0', '').length;
}

function bit(index: number): bigint {
  return 1n << BigInt(index);
}
