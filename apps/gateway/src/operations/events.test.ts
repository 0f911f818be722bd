import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventFilter, EventPage, FeedEvent } from '@order-gateway/domain/events';
import { success } from '@order-gateway/domain/result';
import { createInMemoryOrderStore } from '@order-gateway/domain/testing/in-memory-order-store';
import { sampleOrder } from '@order-gateway/domain/testing/sample-orders';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { caller, fixedDeps, merchant } from '../../test/helpers/fixed-deps.ts';
import { createMemoryLogger } from '../../test/helpers/memory-logger.ts';
import type { Caller } from '../calls/operation.ts';
import { callTimeoutMs, eventWatchLimits } from '../limits.ts';
import { createWatchEvents, eventOperations, type Watcher } from './events.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const eventId = (position: number) => `evt_${String(position).padStart(32, '0')}`;

function eventAt(position: number): FeedEvent {
  const order = { ...sampleOrder(merchant.id), orderStatus: 'CANCELLED' as const, cancelledAtMs: 1 };
  return { position, eventId: eventId(position), type: 'order.cancelled', createdAtMs: 1, order };
}

function pageOf(...events: FeedEvent[]): EventPage {
  return { kind: 'found', events, scannedTo: events.at(-1) };
}

/** Returns the result of a read that was cut off at `position` before it found an event that the filter selects. */
function cutAt(position: number): EventPage {
  return { kind: 'found', events: [], scannedTo: { position, eventId: eventId(position) }, isCut: true };
}

const emptyPage = pageOf();

/** Creates a feed whose reads return these pages and then empty ones. `reads` contains the filter of each read. */
function createFeed(...pages: EventPage[]) {
  const reads: (EventFilter & { readonly timeoutMs: number })[] = [];
  const remaining = pages.values();
  const store = {
    ...createInMemoryOrderStore(),
    async listEvents(_id: AccountId, filter: EventFilter, timeoutMs: number) {
      reads.push({ ...filter, timeoutMs });
      return remaining.next().value ?? emptyPage;
    },
  };
  return { reads, deps: { ...fixedDeps(createMemoryLogger().logger), store } };
}

/** Starts a stream, and collects its messages until it ends or the caller disconnects. */
function startStream(feed: ReturnType<typeof createFeed>, watcher: Partial<Watcher> = {}, input = {}) {
  const disconnect = new AbortController();
  const stream = createWatchEvents(feed.deps);
  const messages: unknown[] = [];
  const run = async () => {
    const authenticate = async () => success(merchant);
    const { signal } = disconnect;
    const caller = { account: merchant, authenticate, readTimeoutMs: callTimeoutMs, signal, ...watcher };
    for await (const message of stream.handle(caller, input)) messages.push(message);
  };
  return { messages, ended: run(), disconnect, stream };
}

/** Lists events. `changes` replaces members of the caller. */
function list(feed: ReturnType<typeof createFeed>, input = {}, changes: Partial<Caller> = {}) {
  const [listEvents] = eventOperations(feed.deps);
  return listEvents?.handle(input, { ...caller, timeLeftMs: () => callTimeoutMs, ...changes });
}

const failureOf = (kind: string) => ({ ok: false, failure: expect.objectContaining({ kind }) });
const messageOf = (position: number) => ({
  ok: true,
  value: { event: expect.objectContaining({ id: eventId(position) }), cursor: expect.any(String) },
});
const heartbeat = { ok: true, value: { cursor: expect.any(String) } };

test('a stream reads page after page, each from the end of the one before, and ends when the gateway stops', async () => {
  const feed = createFeed(pageOf(eventAt(1), eventAt(2)), cutAt(5), pageOf(eventAt(6)));
  const { messages, ended } = startStream(feed, {}, { type: ['order.cancelled'] });
  await vi.advanceTimersByTimeAsync(1);
  expect(messages).toEqual([1, 2, 6].map(messageOf));
  const filter = { types: ['order.cancelled'], limit: eventWatchLimits.streamPageMax, timeoutMs: callTimeoutMs };
  expect(feed.reads).toMatchObject([0, 2, 5, 6].map((position) => ({ ...filter, after: { position } })));
  feed.deps.eventWatch.close();
  await ended;
  expect(messages.slice(3)).toEqual([failureOf('unavailable')]);
});

test('a stream without events sends heartbeats, and ends after an hour', async () => {
  const { messages, ended } = startStream(createFeed());
  await vi.advanceTimersByTimeAsync(eventWatchLimits.heartbeatMs - 1);
  expect(messages).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(messages).toEqual([heartbeat]);
  await vi.advanceTimersByTimeAsync(eventWatchLimits.streamMs);
  await ended;
  expect(messages.slice(0, -1)).toEqual(
    Array(eventWatchLimits.streamMs / eventWatchLimits.heartbeatMs - 1).fill(heartbeat),
  );
  expect(messages.at(-1)).toEqual(failureOf('unavailable'));
});

test('a stream whose filter excludes every new event still sends heartbeats', async () => {
  const feed = createFeed(cutAt(1), ...[2, 3, 4, 5, 6, 7].map((position) => ({ ...cutAt(position), isCut: false })));
  const everyMs = eventWatchLimits.heartbeatMs * 0.4;
  const hasEventsAfter: typeof feed.deps.eventWatch.hasEventsAfter = async (_id, _after, { timeoutMs }) => {
    await new Promise((resolve) => setTimeout(resolve, Math.min(everyMs, timeoutMs)));
    return everyMs <= timeoutMs;
  };
  const deps = { ...feed.deps, eventWatch: { ...feed.deps.eventWatch, hasEventsAfter } };
  const { messages, ended } = startStream({ ...feed, deps }, {}, { type: 'order.paid' });
  await vi.advanceTimersByTimeAsync(eventWatchLimits.heartbeatMs * 2);
  expect(messages).toEqual([heartbeat, heartbeat]);
  feed.deps.eventWatch.close();
  await vi.advanceTimersByTimeAsync(eventWatchLimits.heartbeatMs);
  await ended;
});

test('a stream ends when its caller disconnects, even between two events of a page', async () => {
  const feed = createFeed(pageOf(eventAt(1), eventAt(2)));
  const { stream } = startStream(createFeed());
  const disconnect = new AbortController();
  const authenticate = async () => success(merchant);
  const watched = createWatchEvents(feed.deps).handle(
    { account: merchant, authenticate, readTimeoutMs: callTimeoutMs, signal: disconnect.signal },
    {},
  );
  expect(await watched.next()).toMatchObject({ value: messageOf(1) });
  disconnect.abort();
  expect(await watched.next()).toMatchObject({ value: failureOf('unavailable') });
  expect(feed.reads).toHaveLength(1);
  expect(stream.method.name).toBe('WatchEvents');

  const waiting = startStream(createFeed());
  await vi.advanceTimersByTimeAsync(1);
  waiting.disconnect.abort();
  await waiting.ended;
  expect(waiting.messages).toEqual([failureOf('unavailable')]);
});

test('a stream ends when its credentials are no longer valid', async () => {
  let isValid = true;
  const authenticate: Watcher['authenticate'] = async () =>
    isValid ? success(merchant) : { ok: false, failure: { kind: 'unauthenticated' } };
  const feed = createFeed(pageOf(eventAt(1)));
  const { messages, ended } = startStream(feed, { authenticate });
  await vi.advanceTimersByTimeAsync(1);
  isValid = false;
  await vi.advanceTimersByTimeAsync(eventWatchLimits.heartbeatMs);
  await ended;
  expect(messages).toEqual([messageOf(1), heartbeat, failureOf('unauthenticated')]);
  expect(feed.reads).toHaveLength(2);
});

test('a merchant has a limited number of streams, and each stream that ends frees a slot for another', async () => {
  const feed = createFeed();
  const { handle } = createWatchEvents(feed.deps);
  const start = (account = merchant) => {
    const disconnect = new AbortController();
    const authenticate = async () => success(account);
    const { signal } = disconnect;
    const stream = handle({ account, authenticate, readTimeoutMs: callTimeoutMs, signal }, {});
    return { stream, first: stream.next(), disconnect };
  };
  const streams = Array.from({ length: eventWatchLimits.streamsPerMerchant }, () => start());
  const rejected = { ok: false, failure: { kind: 'rate_limited', retryAfterMs: expect.any(Number) } };
  for (let round = 0; round < 2; round += 1) {
    expect(await start().first).toEqual({ done: false, value: rejected });
    await vi.advanceTimersByTimeAsync(1);
    streams[round]?.disconnect.abort();
    expect(await streams[round]?.first).toMatchObject({ value: failureOf('unavailable') });
    expect(await streams[round]?.stream.next()).toEqual({ done: true });
    streams.push(start());
  }
  expect(await start().first).toMatchObject({ value: rejected });
  const other = start({ ...merchant, id: 8 as AccountId });
  feed.deps.eventWatch.close();
  expect(await other.first).toMatchObject({ value: failureOf('unavailable') });
});

test.each([
  ['cursor_expired', 'cursor_expired'],
  ['overloaded', 'overloaded'],
  ['unavailable', 'unavailable'],
] as const)('a read that fails with %s ends a stream and a list with the failure %s', async (kind, failure) => {
  const { messages, ended } = startStream(createFeed({ kind }));
  await ended;
  expect(messages).toEqual([failureOf(failure)]);
  expect(await list(createFeed({ kind }))).toEqual(failureOf(failure));
});

test('an invalid parameter is reported before anything is read', async () => {
  const feed = createFeed();
  const { messages, ended } = startStream(feed, {}, { cursor: 'x' });
  await ended;
  const invalid = { kind: 'invalid_request', errors: [expect.objectContaining({ field: 'cursor' })] };
  expect(messages).toEqual([{ ok: false, failure: invalid }]);
  expect(await list(feed, { cursor: 'x' })).toEqual({ ok: false, failure: invalid });
  expect(feed.reads).toEqual([]);
});

test('a list reads the feed once, and the next call continues a scan that was cut off', async () => {
  const feed = createFeed(cutAt(3), pageOf(eventAt(7)));
  const reply = await list(feed, {}, { waitMs: 20_000 });
  expect(reply).toMatchObject({ ok: true, value: { body: { events: [] }, outcome: 'ok' } });
  expect(feed.reads).toHaveLength(1);
  const { next_cursor } = Object(reply).value.body;
  expect(await list(feed, { cursor: next_cursor })).toMatchObject({
    value: { body: { events: [{ id: eventId(7) }] } },
  });
  expect(feed.reads).toMatchObject([{ after: { position: 0 } }, { after: { position: 3, eventId: eventId(3) } }]);
});

test('a list waits for its first event without its permit, and says which wait it honoured', async () => {
  const feed = createFeed(emptyPage, pageOf(eventAt(1)));
  const waits: boolean[] = [];
  const pause: Caller['pause'] = async (wait) => {
    waits.push(true);
    return wait(new AbortController().signal);
  };
  const found = { ...feed.deps, eventWatch: { ...feed.deps.eventWatch, hasEventsAfter: async () => true } };
  const reply = await list({ ...feed, deps: found }, {}, { waitMs: 2_000, pause });
  expect(reply).toMatchObject({ value: { body: { events: [{ id: eventId(1) }] }, preferenceApplied: 'wait=2' } });
  expect(waits).toEqual([true]);

  const withoutWait = await list(createFeed(), {}, { pause });
  expect(withoutWait).toEqual(success({ body: { events: [], next_cursor: expect.any(String) }, outcome: 'ok' }));
  expect(waits).toEqual([true]);

  const ending = list(createFeed(), {}, { waitMs: 2_000 });
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await ending).toMatchObject({ value: { body: { events: [] }, preferenceApplied: 'wait=2' } });

  const full = { ...feed.deps, eventWatch: { ...feed.deps.eventWatch, hasCapacity: () => false } };
  const immediate = await list({ ...createFeed(), deps: full }, {}, { waitMs: 2_000, pause });
  expect(Object(immediate).value.preferenceApplied).toBeUndefined();
  expect(waits).toEqual([true]);
});
