import { setImmediate as nextTurn } from 'node:timers/promises';
import { loadFixtures } from '@order-gateway/fixtures';
import { expect, test } from 'vitest';
import { createCallMaker } from '../calls/call-maker.ts';
import { arrivalsOf, constantRate, parseProfile } from '../profile/profile.ts';
import { type Execution, runClosedLoop, runOpenLoop } from './loops.ts';
import { createRecorder, type Recorder } from './recorder.ts';

const settings = { ...parseProfile({ phases: constantRate(1, 1) }), profile: 'none', seed: 1 };
const makeCall = createCallMaker(settings, await loadFixtures(), [{ clientId: 'app_1', clientSecret: 'sk_1' }]);

const responseMs = 5;
const stallMs = 1_000;

/** Runs a loop in simulated time, against a server that responds after 5 ms, except during a stall of a second. */
async function simulate(stallFromMs: number, loop: (execution: Execution) => Promise<void>): Promise<Recorder> {
  let nowMs = 0;
  const waiting: { readonly atMs: number; readonly resume: () => void }[] = [];
  const until = (atMs: number) => new Promise<void>((resume) => waiting.push({ atMs, resume }));
  const send = async () => {
    const stallEndsMs = nowMs >= stallFromMs ? stallFromMs + stallMs : 0;
    await until(Math.max(nowMs + responseMs, stallEndsMs));
    return { outcome: 'created' };
  };
  const recorder = createRecorder({ plannedSeconds: 10 });
  const sender = { send, close: () => {} };
  const { signal } = new AbortController();
  const running = loop({ sender, recorder, clock: { now: () => nowMs, until }, signal, makeCall });
  for (;;) {
    await nextTurn();
    const next = waiting.sort((one, other) => other.atMs - one.atMs).pop();
    if (next === undefined) break;
    nowMs = next.atMs;
    next.resume();
  }
  await running;
  recorder.end();
  return recorder;
}

test('a stall of a second shows in the p99 of the open loop, but not in that of the closed loop', async () => {
  const open = await simulate(3_000, (run) => runOpenLoop(run, arrivalsOf(constantRate(100, 5)), 1_000));
  // A fifth of the calls was scheduled in the stall and waited for its end: half a second on average, a second at most.
  expect(open.latencies.count).toBe(500);
  expect(open.dropped).toBe(0);
  expect(open.latencies.percentile(99)).toBeGreaterThan(0.9 * stallMs);
  expect(open.latencies.percentile(90)).toBeGreaterThan(0.4 * stallMs);

  const closed = await simulate(3_000, (run) => runClosedLoop(run, 4, 10));
  // Each of the four clients had one call during the stall, which is too few to affect the p99. The maximum shows the
  // length of the stall.
  expect(closed.latencies.count).toBeGreaterThan(7_000);
  expect(closed.latencies.percentile(99)).toBeCloseTo(responseMs, 0);
  expect(closed.latencies.max).toBeGreaterThan(0.9 * stallMs);
});

test('a call that is scheduled while the maximum number of calls is pending is dropped and counted', async () => {
  const { latencies, dropped } = await simulate(0, (run) => runOpenLoop(run, arrivalsOf(constantRate(100, 0.5)), 10));
  expect(latencies.count).toBe(10);
  expect(dropped).toBe(40);
});
