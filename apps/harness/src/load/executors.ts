import type { Arrivals } from './arrivals.ts';
import type { LoadCall } from './make-calls.ts';
import type { Recorder } from './recorder.ts';
import type { RunClock } from './run-clock.ts';
import type { Sender } from './senders/sender.ts';

/** What an executor works with. */
export interface Execution {
  readonly sender: Sender;
  readonly recorder: Recorder;
  readonly clock: RunClock;
  /** Ends the run at once. */
  readonly signal: AbortSignal;
  readonly makeCall: (number: number) => LoadCall;
  /** The part of the calls that is this process's: `first`, `first + step`, and so on. */
  readonly first: number;
  readonly step: number;
}

/**
 * Open loop: sends each call when it is due, whatever became of the others, and counts its latency from then; so a gateway that
 * stops for a while is charged for every call that would have come meanwhile. A call that is due while `underWayMax` are without
 * an answer is dropped. Resolves when all are answered, or the signal aborts.
 */
export async function runOpenLoop(
  { sender, recorder, clock, signal, makeCall, first, step }: Execution,
  arrivals: Arrivals,
  underWayMax: number,
): Promise<void> {
  const underWay = new Set<Promise<void>>();
  for (let number = first; number < arrivals.count; number += step) {
    const dueMs = arrivals.dueMs(number);
    const call = makeCall(number);
    if (clock.now() < dueMs) await clock.until(dueMs, signal);
    if (signal.aborted) break;
    if (recorder.underWay >= underWayMax) {
      recorder.dropped();
      continue;
    }
    recorder.sent(clock.now() - dueMs);
    const sending = sender.send(call).then((reply) => {
      underWay.delete(sending);
      if (!signal.aborted) recorder.answered(call, reply, clock.now() - dueMs);
    });
    underWay.add(sending);
    // A backlog must not keep answers from being read.
    if (clock.now() - dueMs > backlogMs) await nextTurn();
  }
  await Promise.race([Promise.all(underWay), aborted(signal)]);
}

/** Behind its schedule by this much, the loop lets answers in between two calls. */
const backlogMs = 1;

/**
 * Closed loop: so many callers, each of which sends its next call when its last is answered. A gateway that stops for a while is
 * asked nothing meanwhile, so one call for each caller shows it, however long it was.
 */
export async function runClosedLoop(execution: Execution, callers: number, seconds: number): Promise<void> {
  const { sender, recorder, clock, signal, makeCall, first, step } = execution;
  let next = first;
  const work = async () => {
    await clock.until(0, signal);
    while (!signal.aborted && clock.now() < seconds * 1_000) {
      const call = makeCall(next);
      next += step;
      const sentMs = clock.now();
      recorder.sent(0);
      const reply = await sender.send(call);
      if (!signal.aborted) recorder.answered(call, reply, clock.now() - sentMs);
    }
  };
  await Promise.race([Promise.all(Array.from({ length: callers }, work)), aborted(signal)]);
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
