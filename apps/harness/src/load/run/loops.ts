import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { LoadCall } from '../calls/call-maker.ts';
import type { Sender } from '../calls/sender.ts';
import type { Arrivals } from '../profile/profile.ts';
import type { Recorder } from './recorder.ts';

export interface Execution {
  readonly sender: Sender;
  readonly recorder: Recorder;
  readonly clock: RunClock;
  /** Ends the run immediately. */
  readonly signal: AbortSignal;
  readonly makeCall: (number: number) => LoadCall;
}

/** If the open loop is further behind its schedule than this, it reads responses between two calls. */
const backlogMs = 1;

/**
 * Open loop: sends each call on schedule, regardless of earlier outcomes, and measures its latency from the scheduled
 * time. A stall of the gateway therefore counts for every call scheduled during it. A call is dropped if `maxPending`
 * calls have no response at its scheduled time. Resolves when all calls have a response, or when the signal aborts.
 */
export async function runOpenLoop(
  { sender, recorder, clock, signal, makeCall }: Execution,
  arrivals: Arrivals,
  maxPending: number,
): Promise<void> {
  const pending = new Set<Promise<void>>();
  for (let number = 0; number < arrivals.count; number += 1) {
    const scheduledMs = arrivals.scheduledMs(number);
    const call = makeCall(number);
    if (clock.now() < scheduledMs) await clock.until(scheduledMs, signal);
    if (signal.aborted) break;
    if (recorder.pending >= maxPending) {
      recorder.recordDropped(clock.now());
      continue;
    }
    recorder.recordSent(call, clock.now(), clock.now() - scheduledMs);
    const sending = sender.send(call).then((reply) => {
      pending.delete(sending);
      if (!signal.aborted) recorder.recordReply(call, reply, clock.now(), clock.now() - scheduledMs);
    });
    pending.add(sending);
    if (clock.now() - scheduledMs > backlogMs) await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.race([Promise.all(pending), aborted(signal)]);
}

/**
 * Closed loop: each client sends its next call after the response to its previous one. A stalled gateway receives no
 * new calls, so a stall of any length shows up as one slow call per client. Resolves when all calls sent within
 * `seconds` have a response, or when the signal aborts.
 */
export async function runClosedLoop(
  { sender, recorder, clock, signal, makeCall }: Execution,
  clients: number,
  seconds: number,
): Promise<void> {
  let next = 0;
  const work = async () => {
    while (!signal.aborted && clock.now() < seconds * 1_000) {
      const call = makeCall(next);
      next += 1;
      const sentMs = clock.now();
      recorder.recordSent(call, sentMs, 0);
      const reply = await sender.send(call);
      if (!signal.aborted) recorder.recordReply(call, reply, clock.now(), clock.now() - sentMs);
    }
  };
  await Promise.race([Promise.all(Array.from({ length: clients }, work)), aborted(signal)]);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

type RunClock = ReturnType<typeof startClock>;

/** Node.js timers can fire this late, so the last part of each wait spins the event loop instead. */
const timerSlackMs = 2;

export function startClock() {
  const start = performance.now();
  /** Milliseconds since the run's start. */
  const now = () => performance.now() - start;
  return {
    now,
    /** Waits until a time or until the signal aborts; at most a fraction of a millisecond late. */
    async until(atMs: number, signal: AbortSignal): Promise<void> {
      for (;;) {
        const remainingMs = atMs - now();
        if (remainingMs <= 0 || signal.aborted) return;
        if (remainingMs > timerSlackMs) await sleep(remainingMs - timerSlackMs, undefined, { signal }).catch(() => {});
        else await nextTurn();
      }
    },
  };
}
