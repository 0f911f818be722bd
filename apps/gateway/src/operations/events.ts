import { EventService } from '@order-gateway/contract/gateway/v1/event_service_pb';
import type { AccountId, Merchant, MerchantMode } from '@order-gateway/domain/accounts';
import {
  type EventPosition,
  type FeedEvent,
  type OrderEvent,
  orderAfter,
  parseEventList,
} from '@order-gateway/domain/events';
import type { Failure } from '@order-gateway/domain/failure';
import { formatTime } from '@order-gateway/domain/orders';
import { failed, type Result, success } from '@order-gateway/domain/result';
import type { JsonFormOf } from '../calls/json-form.ts';
import type { Caller, Members, Operation } from '../calls/operation.ts';
import { retryAfter, storageFailure } from '../calls/store-failure.ts';
import { eventWatchLimits } from '../limits.ts';
import { orderRecord, type RecordDeps } from './orders.ts';
import { fittingCount } from './refunds.ts';
import { type Handled, type OperationDeps, operationsOf } from './service.ts';

type EventDeps = Pick<OperationDeps, 'store' | 'eventWatch'> & RecordDeps;

export function eventOperations(deps: EventDeps): Operation[] {
  return operationsOf(EventService, {
    listEvents: (members, caller: Caller<Merchant>) => listEvents(deps, caller, members),
  });
}

/**
 * Lists the merchant's events, oldest first. Every page has a cursor for later events. If there are no events yet, the
 * call waits for the first one for as long as the caller prefers. If a filtered scan was cut off before it found an
 * event, the page is empty, and the next call continues the scan, so that every call costs as much as the others.
 */
async function listEvents(
  { store, eventWatch, ...deps }: EventDeps,
  caller: Caller<Merchant>,
  input: Members,
): Handled<typeof EventService.method.listEvents> {
  const { id, mode } = caller.account;
  const parsed = parseEventList(id, input);
  if (!parsed.ok) return parsed;
  const { filter, cursorAfter } = parsed.value;
  /** `waitMs` is the preferred wait for a first event if the call was allowed to wait, and otherwise 0. */
  const pageOf = (listed: readonly FeedEvent[], after: EventPosition, waitMs = caller.waitMs) => {
    const page = listed.map((event) => eventResponse(event, mode, deps));
    const events = page.slice(0, fittingCount(page.map(({ data }) => data)));
    const last = listed.length > events.length ? listed[events.length - 1] : undefined;
    return success({
      body: { events, next_cursor: cursorAfter(last ?? after) },
      outcome: 'ok',
      preferenceApplied: waitMs > 0 ? `wait=${waitMs / 1_000}` : undefined,
    });
  };
  const endsAt = performance.now() + caller.waitMs;
  for (let { after } = filter; ; ) {
    const listed = await store.listEvents(id, { ...filter, after }, caller.timeLeftMs());
    if (listed.kind === 'cursor_expired') return failed({ kind: listed.kind });
    if (listed.kind !== 'found') return failed(storageFailure(listed.kind));
    const { events, scannedTo, isCut = false } = listed;
    after = scannedTo ?? after;
    if (events.length > 0 || isCut) return pageOf(events, after);
    const timeoutMs = endsAt - performance.now();
    if (timeoutMs <= 0) return pageOf([], after);
    if (!eventWatch.hasCapacity(id)) return pageOf([], after, 0);
    const position = after;
    const hasEvents = await caller.pause((signal) => eventWatch.hasEventsAfter(id, position, { timeoutMs, signal }));
    if (!hasEvents) return pageOf([], after);
  }
}

type WatchEventsBody = JsonFormOf<typeof EventService.method.watchEvents.output>;

/** The caller of a stream. */
export interface Watcher {
  readonly account: Merchant;
  /** Checks whether the credentials are still valid. */
  readonly authenticate: () => Promise<Result<unknown, Failure>>;
  /** The time limit of each read of events. */
  readonly readTimeoutMs: number;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

/**
 * The operation that responds with a stream. It yields the messages to send, in their JSON form, and a failure at the
 * end.
 */
export type WatchEvents = ReturnType<typeof createWatchEvents>;

export function createWatchEvents({ store, eventWatch, ...deps }: EventDeps) {
  /** The merchants of the open streams, each listed once per stream. */
  const streaming: AccountId[] = [];

  async function* watch(
    { account, authenticate, readTimeoutMs, signal }: Watcher,
    input: Members,
  ): AsyncGenerator<Result<WatchEventsBody, Failure>, void> {
    const { id, mode } = account;
    const parsed = parseEventList(id, input);
    if (!parsed.ok) return yield parsed;
    const { filter, cursorAfter } = parsed.value;
    const endsAt = performance.now() + eventWatchLimits.streamMs;
    const isEnding = () => signal.aborted || eventWatch.isClosed() || performance.now() >= endsAt;
    let after: EventPosition = filter.after;
    let sentAt = performance.now();
    while (!isEnding()) {
      // A secret can be revoked, and a merchant disabled, while the stream is open.
      const authenticated = await authenticate();
      if (!authenticated.ok) return yield authenticated;
      const listed = await store.listEvents(
        id,
        { ...filter, after, limit: eventWatchLimits.streamPageMax },
        readTimeoutMs,
      );
      if (listed.kind === 'cursor_expired') return yield failed({ kind: listed.kind });
      if (listed.kind !== 'found') return yield failed(storageFailure(listed.kind));
      for (const event of listed.events) {
        if (isEnding()) break;
        yield success({ event: eventResponse(event, mode, deps), cursor: cursorAfter(event) });
        sentAt = performance.now();
      }
      after = listed.scannedTo ?? after;
      // Counts from the last message, because a filter can exclude all new events of a busy merchant.
      const timeoutMs = sentAt + eventWatchLimits.heartbeatMs - performance.now();
      if (listed.events.length > 0 || (listed.isCut && timeoutMs > 0)) continue;
      const hasEvents = timeoutMs > 0 && (await eventWatch.hasEventsAfter(id, after, { timeoutMs, signal }));
      if (hasEvents || isEnding()) continue;
      yield success({ event: undefined, cursor: cursorAfter(after) });
      sentAt = performance.now();
    }
    yield failed({ kind: 'unavailable' });
  }

  return {
    method: EventService.method.watchEvents,
    /** Yields the merchant's events. Every stream ends with a failure. */
    async *handle(watcher: Watcher, input: Members): AsyncGenerator<Result<WatchEventsBody, Failure>, void> {
      const { id } = watcher.account;
      if (streaming.filter((merchantId) => merchantId === id).length >= eventWatchLimits.streamsPerMerchant) {
        return yield failed({ kind: 'rate_limited', retryAfterMs: retryAfter(eventWatchLimits.streamsRetryAfterMs) });
      }
      streaming.push(id);
      try {
        yield* watch(watcher, input);
      } finally {
        streaming.splice(streaming.indexOf(id), 1);
      }
    },
  };
}

/** Builds the form of an event in feeds and webhooks. It contains the order after the change. */
export function eventResponse(event: OrderEvent, mode: MerchantMode, deps: RecordDeps) {
  return {
    id: event.eventId,
    type: event.type,
    timestamp: formatTime(event.createdAtMs),
    data: orderRecord(orderAfter(event), mode, deps),
  };
}
