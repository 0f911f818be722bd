import { createServer } from 'node:http';
import { loadFixtures } from '@gateway/fixtures/load-fixtures';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../../../../tools/test-resources.ts';
import { createCallMaker } from '../../src/load/calls/call-maker.ts';
import { openSender } from '../../src/load/calls/sender.ts';
import { arrivalsOf, constantRate } from '../../src/load/profile/arrivals.ts';
import { parseProfile } from '../../src/load/profile/profile.ts';
import { startClock } from '../../src/load/run/clock.ts';
import { type Execution, runClosedLoop, runOpenLoop } from '../../src/load/run/loops.ts';
import { createRecorder, type Recorder } from '../../src/load/run/recorder.ts';

const set = await loadFixtures();
const settings = { ...parseProfile({ phases: constantRate(1, 1) }), profile: 'none', seed: 1 };
const makeCall = createCallMaker(settings, set, [{ clientId: 'app_1', clientSecret: 'sk_1' }]);

const stallMs = 1_000;

/** Keeps a closed loop from using a whole core. */
const usualMs = 5;

/**
 * A server that responds quickly, and stalls once: from the first call that arrives at the given time or later, so that
 * this call waits for the whole stall, however busy the machine is. Ends with the test.
 */
async function stallingServer(stallsFromMs: number): Promise<string> {
  let stallEndsMs: number | undefined;
  const server = createServer((request, response) => {
    request.resume();
    const nowMs = Date.now();
    if (nowMs >= stallsFromMs) stallEndsMs ??= nowMs + stallMs;
    setTimeout(() => response.end('{}'), Math.max(usualMs, (stallEndsMs ?? nowMs) - nowMs));
  });
  return `http://127.0.0.1:${await listen(server)}`;
}

function execution(httpUrl: string, connections: number): Execution & { recorder: Recorder } {
  const sender = openSender({ httpUrl, grpcAddress: '127.0.0.1:1' }, connections);
  onTestFinished(() => sender.close());
  const { signal } = new AbortController();
  const recorder = createRecorder({ plannedSeconds: 10 });
  return { sender, recorder, clock: startClock(), signal, makeCall };
}

test('a stall of a second shows in the p99 of the open loop, and hides in the closed loop', async () => {
  // One loop after the other, each with its own server and stall: the closed one makes as many calls as it can.
  const begin = async () => execution(await stallingServer(Date.now() + 3_000), 4);
  const open = await begin();
  await runOpenLoop(open, arrivalsOf(constantRate(100, 5)), 1_000);
  const closed = await begin();
  await runClosedLoop(closed, 4, 10);

  const [openLoop, closedLoop] = [open.recorder, closed.recorder];
  openLoop.end();
  closedLoop.end();
  // A fifth of the calls was scheduled in the stall and waited for its end: half a second on average, a second at most.
  expect(openLoop.latencies.count).toBe(500);
  expect(openLoop.dropped).toBe(0);
  expect(openLoop.latencies.percentile(99)).toBeGreaterThan(0.8 * stallMs);
  expect(openLoop.latencies.percentile(90)).toBeGreaterThan(0.3 * stallMs);
  // Each of its four clients had one call in the stall: less than 1 % of the calls, too few for the p99. The maximum shows
  // its length.
  expect(4 / closedLoop.latencies.count).toBeLessThan(0.01);
  expect(closedLoop.latencies.percentile(99)).toBeLessThan(0.8 * stallMs);
  expect(closedLoop.latencies.max).toBeGreaterThan(0.8 * stallMs);
});

test('a scheduled call beyond the allowed pending calls is dropped and counted', async () => {
  const run = execution(await stallingServer(Date.now()), 2);
  await runOpenLoop(run, arrivalsOf(constantRate(100, 0.5)), 10);
  run.recorder.end();
  const { latencies, dropped } = run.recorder;
  expect(latencies.count).toBe(10);
  expect(dropped).toBe(40);
});
