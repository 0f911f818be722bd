import { basename } from 'node:path';
import { failures } from '@gateway/domain/failure';
import type { Credentials } from '@gateway/fixtures/fill-call';
import { writeJson } from '@gateway/fixtures/json-number';
import type { Arrivals } from '../load/arrivals.ts';
import { runOpenLoop } from '../load/executors.ts';
import type { LoadCall } from '../load/make-calls.ts';
import { createRecorder } from '../load/recorder.ts';
import { type LoadReport, reportOf } from '../load/report.ts';
import { startClock } from '../load/run-clock.ts';
import { createHttpSender } from '../load/senders/http-pool.ts';
import { readJsonReply } from '../load/senders/read-replies.ts';
import type { LoadSettings } from '../load/settings.ts';
import { createTotals } from '../load/totals.ts';
import type { RecordedRequest } from './read-recording.ts';

export interface PlayOptions {
  readonly file: string;
  readonly speed: number;
  readonly freshOrderIds: boolean;
  readonly httpUrl: string;
  readonly credentials: Credentials;
  /** Apart from those of every other run. */
  readonly runId: string;
}

/** Bounds of a replay: the recording decides everything else. */
const connections = 64;
const underWayMax = 2_000;

/** The method, the path and the credentials are the replay's own: such an answer tells of a wrong address or secret. */
const ownFaults = ['unauthenticated', 'not_found', 'method_not_allowed'];

/** Recorded traffic may hold refusals; what it may not bring about is a failure of the gateway's own. */
const answersExpected = [
  'created',
  'replayed',
  ...Object.entries(failures).flatMap(([code, { httpStatus }]) =>
    httpStatus < 500 && !ownFaults.includes(code) ? [code] : [],
  ),
];

/** Headers that belong to the connection of then, or are made anew. */
const ownHeaders = ['host', 'connection', 'content-length', 'transfer-encoding', 'keep-alive', 'expect', 'upgrade'];

/** Plays a recording at `speed` times its own pace, each request when it is due, whatever became of the others. */
export async function playRecording(
  requests: readonly RecordedRequest[],
  options: PlayOptions,
  signal: AbortSignal,
): Promise<LoadReport> {
  const { file, speed, httpUrl } = options;
  const calls = callsOf(requests, options);
  const seconds = (requests.at(-1)?.offsetMs ?? 0) / 1_000 / speed;
  const arrivals: Arrivals = {
    ...{ count: calls.length, seconds, peakRate: 0 },
    dueMs: (number) => (requests[number]?.offsetMs ?? 0) / speed,
  };
  const recorder = createRecorder(undefined);
  const sender = createHttpSender(httpUrl, connections, readJsonReply);
  const startedAt = new Date();
  const clock = startClock(startedAt.getTime());
  const makeCall = (number: number): LoadCall => {
    const call = calls[number];
    if (call === undefined) throw new RangeError(`there is no request ${number}`);
    return call;
  };
  await runOpenLoop({ sender, recorder, clock, signal, makeCall, first: 0, step: 1 }, arrivals, underWayMax);
  recorder.giveUp();
  sender.close();
  const totals = createTotals();
  totals.add(recorder.closeSecond(0));
  const facts = { startedAt, seconds: clock.now() / 1_000, interrupted: signal.aborted, deaths: [], audit: undefined };
  return reportOf(totals, { settings: settingsOf(file, calls.length, seconds), target: httpUrl, ...facts });
}

function settingsOf(file: string, count: number, seconds: number): LoadSettings {
  const rate = Number((count / Math.max(seconds, 0.001)).toPrecision(3));
  return {
    ...{ profile: basename(file), mode: 'open', protocol: 'json', phases: [{ seconds, rateFrom: rate, rateTo: rate }] },
    ...{ connections, underWayMax, merchants: 1, replayShare: 0, invalidShare: 0, seed: 0, workers: 1 },
    thresholds: { error_rate: 0, dropped_rate: 0 },
  };
}

/** The requests as calls. Exported for its own test: equal order ids stay equal, so that a recorded retry remains one. */
export function callsOf(
  requests: readonly RecordedRequest[],
  { credentials, freshOrderIds, runId }: Pick<PlayOptions, 'credentials' | 'freshOrderIds' | 'runId'>,
): LoadCall[] {
  const freshIds = new Map<string, string>();
  const freshId = (orderId: string): string => {
    const fresh = freshIds.get(orderId) ?? `replay-${runId}-${freshIds.size}`;
    freshIds.set(orderId, fresh);
    return fresh;
  };
  return requests.map(({ headers, body }, number) => {
    const orderId = orderIdIn(body);
    const sentId = freshOrderIds && orderId !== undefined && typeof body === 'object' ? freshId(orderId) : orderId;
    const text =
      typeof body === 'string' ? body : writeJson(sentId === undefined ? body : { ...body, order_id: sentId });
    const kept = Object.entries(headers).filter(([name]) => !ownHeaders.includes(name));
    const own = { 'x-client-id': credentials.clientId, 'x-client-secret': credentials.clientSecret };
    return {
      ...{ number, door: 'json', path: '/order', body: Buffer.from(text), expected: answersExpected },
      headers: { 'content-type': 'application/json', ...Object.fromEntries(kept), ...own },
      order: sentId === undefined ? undefined : { merchant: 0, orderId: sentId, amount: '' },
    };
  });
}

function orderIdIn(body: RecordedRequest['body']): string | undefined {
  if (typeof body !== 'string') return typeof body.order_id === 'string' ? body.order_id : undefined;
  try {
    const { order_id: orderId } = JSON.parse(body);
    return typeof orderId === 'string' ? orderId : undefined;
  } catch {
    return undefined;
  }
}
