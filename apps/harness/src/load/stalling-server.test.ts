import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { fixturesFolder, loadFixtures } from '../fixtures/load-fixtures.ts';
import { arrivalsOf, constantRate } from './arrivals.ts';
import { type Execution, runClosedLoop, runOpenLoop } from './executors.ts';
import { decodeLatencies, type Latencies } from './latencies.ts';
import { createCallMaker } from './make-calls.ts';
import { createRecorder, type Recorder } from './recorder.ts';
import { startClock } from './run-clock.ts';
import { createHttpSender } from './senders/http-pool.ts';
import { refusedReply } from './senders/sender.ts';

const set = await loadFixtures(fixturesFolder);
const settings = { protocol: 'json', merchants: 1, replayShare: 0, invalidShare: 0, seed: 1 } as const;
const makeCall = createCallMaker({ settings, set, credentials: [{ clientId: 'app_1', clientSecret: 'sk_1' }] });

const stallMs = 1_000;
const stallEveryMs = 5_000;

interface StallingServer {
  readonly url: string;
  /** How long the call that met the most of a stall was held. */
  readonly longestHoldMs: () => number;
}

/** A server that answers at once, but for the second from the third on in every five. Ends with the test. */
async function stallingServer(startAtMs: number): Promise<StallingServer> {
  let longestHoldMs = 0;
  const server = createServer((request, response) => {
    request.resume();
    const inPeriod = (Date.now() - startAtMs) % stallEveryMs;
    const stalled = inPeriod >= 3_000 && inPeriod < 3_000 + stallMs;
    const holdMs = stalled ? 3_000 + stallMs - inPeriod : 0;
    longestHoldMs = Math.max(longestHoldMs, holdMs);
    setTimeout(() => response.end('{}'), holdMs);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, longestHoldMs: () => longestHoldMs };
}

function execution(httpUrl: string, startAtMs: number, connections: number): Execution & { recorder: Recorder } {
  const sender = createHttpSender(httpUrl, connections, () => refusedReply('answered'));
  onTestFinished(() => sender.close());
  const { signal } = new AbortController();
  const recorder = createRecorder(undefined);
  return { sender, recorder, clock: startClock(startAtMs), signal, makeCall, first: 0, step: 1 };
}

function measured(recorder: Recorder): { readonly latencies: Latencies; readonly dropped: number } {
  const { latencies, dropped } = recorder.closeSecond(0);
  return { latencies: decodeLatencies(latencies.json ?? ''), dropped };
}

test('a second of standstill in five is in the p99 of the open loop, and hides in the closed loop, which stops asking', {
  timeout: 30_000,
}, async () => {
  const startAtMs = Date.now() + 100;
  // One for each loop, as what the closed loop's callers met is counted.
  const [forOpen, forClosed] = await Promise.all([stallingServer(startAtMs), stallingServer(startAtMs)]);
  const open = execution(forOpen.url, startAtMs, 4);
  const closed = execution(forClosed.url, startAtMs, 4);
  await Promise.all([runOpenLoop(open, arrivalsOf(constantRate(100, 5)), 1_000), runClosedLoop(closed, 4, 5)]);

  const openLoop = measured(open.recorder);
  const closedLoop = measured(closed.recorder);
  // A fifth of the calls was due in the stall and waited for its end: half a second on average, almost all of it at most.
  expect(openLoop.latencies.count).toBe(500);
  expect(openLoop.dropped).toBe(0);
  expect(openLoop.latencies.percentile(99)).toBeGreaterThan(0.8 * stallMs);
  expect(openLoop.latencies.percentile(90)).toBeGreaterThan(0.3 * stallMs);
  // Its four callers met the stall with one call each: less than 1 % of the calls, however slow the machine is, and so too few
  // for the p99; the longest tells the length.
  expect(4 / closedLoop.latencies.count).toBeLessThan(0.01);
  expect(closedLoop.latencies.percentile(99)).toBeLessThan(0.8 * stallMs);
  expect(forClosed.longestHoldMs()).toBeGreaterThan(0.3 * stallMs);
  // A timer may fire a millisecond early.
  expect(closedLoop.latencies.max).toBeGreaterThanOrEqual(forClosed.longestHoldMs() - 1);
});

test('what is due beyond the bound of calls under way is dropped and counted', { timeout: 30_000 }, async () => {
  const startAtMs = Date.now() - 3_000;
  const { url } = await stallingServer(startAtMs);
  const run = execution(url, Date.now(), 2);
  await runOpenLoop(run, arrivalsOf(constantRate(100, 0.5)), 10);
  const { latencies, dropped } = measured(run.recorder);
  expect(latencies.count).toBe(10);
  expect(dropped).toBe(40);
});
