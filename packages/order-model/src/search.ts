import { type Call, type History, isFinal, nothing, type State, statesAfter, stepsOf } from './model.ts';

/** A history that no serial order of its calls explains, with the longest serial order of some of its calls. */
export interface Unexplained {
  /** The steps of the calls that can be put into an order, in that order. */
  readonly longest: readonly Call[];
  /** The order after them. */
  readonly state: State;
  /** The possible next steps. Each contradicts the state, or the steps after it do. */
  readonly next: readonly Call[];
}

/** A part of a serial order: which steps it has, and the state after them. */
interface Part {
  readonly done: bigint;
  readonly state: State;
  readonly last: number;
  readonly previous: Part | undefined;
}

/**
 * Searches for a serial order of the calls that is consistent with real time and explains every response and what is
 * stored: the algorithm of Wing and Gong (1993) with the memory of Lowe (2017), as in Porcupine. Returns `undefined` if
 * there is one.
 */
export function findUnexplained(history: History): Unexplained | undefined {
  const { stored } = history;
  const steps = stepsOf(history.calls.toSorted((a, b) => a.sentAt - b.sentAt));
  const required = steps.reduce(
    (bits, { receivedAt }, index) => (receivedAt < Infinity ? bits | bit(index) : bits),
    0n,
  );
  const seen = new Set<string>();
  const open: Part[] = [{ done: 0n, state: nothing, last: -1, previous: undefined }];
  let longest = open[0] as Part;
  let longestLength = 0;
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    const { done, state } = part;
    if ((done & required) === required && isFinal(state, stored)) return undefined;
    const key = `${done} ${JSON.stringify(state)}`;
    if (seen.has(key)) continue;
    seen.add(key);
    const length = lengthOf(part);
    if (length > longestLength) [longest, longestLength] = [part, length];
    const parts: Part[] = [];
    for (const index of nextSteps(steps, done)) {
      const call = steps[index] as Call;
      for (const after of statesAfter(state, call, stored)) {
        const following = { done: done | bit(index), state: after, last: index, previous: part };
        // A call without a response and without an effect explains nothing. With a response, it can be next in any
        // order. The second step of a call may have no effect yet, but one later.
        if (after === state && call.receivedAt === Infinity) continue;
        if (after === state && call.response !== undefined) {
          parts.length = 0;
          parts.push(following);
          break;
        }
        parts.push(following);
      }
      if (call.response !== undefined && parts.at(-1)?.state === state) break;
    }
    open.push(...parts);
  }
  const order: Call[] = [];
  for (let part = longest; part.previous !== undefined; part = part.previous) order.unshift(steps[part.last] as Call);
  return {
    longest: order,
    state: longest.state,
    next: nextSteps(steps, longest.done).map((index) => steps[index] as Call),
  };
}

/**
 * Makes an unexplained history smaller: removes the response of one call after another, as long as the history stays
 * unexplained. The calls that still have a response contradict each other or what is stored.
 */
export function smallest(history: History): History {
  let calls = [...history.calls];
  for (const call of history.calls) {
    const without = calls.filter((one) => one !== call);
    const forgotten = {
      ...call,
      receivedAt: Infinity,
      during: { ...call.during, toMs: Infinity },
      response: undefined,
    };
    const unknown = calls.map((one) => (one === call ? forgotten : one));
    const isReading = call.request.kind === 'read';
    const smaller = isReading ? without : unknown;
    if (findUnexplained({ ...history, calls: smaller }) !== undefined) calls = smaller;
  }
  return { ...history, calls };
}

/**
 * Returns the steps that can be next: those that were sent before the earliest response of all steps that are not done.
 */
function nextSteps(steps: readonly Call[], done: bigint): number[] {
  let earliest = Number.POSITIVE_INFINITY;
  const waiting: number[] = [];
  for (const [index, { receivedAt }] of steps.entries()) {
    if ((done & bit(index)) !== 0n) continue;
    waiting.push(index);
    earliest = Math.min(earliest, receivedAt);
  }
  return waiting.filter((index) => {
    const { sentAt, after } = steps[index] as Call;
    return sentAt <= earliest && (after === undefined || (done & bit(after)) !== 0n);
  });
}

function lengthOf({ done }: Part): number {
  return done.toString(2).replaceAll('0', '').length;
}

function bit(index: number): bigint {
  return 1n << BigInt(index);
}
