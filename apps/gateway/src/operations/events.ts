import { EventService } from '@order-gateway/contract/gateway/v1/event_service_pb';
import type { AccountId, Merchant, MerchantMode } from '@order-gateway/domain/accounts';
import { type EventPosition, type OrderEvent, orderAfter, parseEventList } from '@order-gateway/domain/events';
import type { Failure } from '@order-gateway/domain/failure';
import type { BaseUrl } from '@order-gateway/domain/links';
import { formatTime } from '@order-gateway/domain/orders';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { callTimeoutMs, eventWatchLimits } from '../limits.ts';
import { type Caller, type Members, type Operation, type OperationDeps, operationsOf } from './operation.ts';
import { orderRecord } from './orders.ts';
import { retryAfter, storageFailure } from './retry-after.ts';

type ListEventsDeps = Pick<OperationDeps, 'store' | 'eventWatch'>;

export function eventOperations(deps: ListEventsDeps & Pick<OperationDeps, 'baseUrl'>): Operation[] {
  return operationsOf(EventService, {
    async listEvents(members, caller: Caller<Merchant>) {
      const page = await listEvents(deps, caller, members);
      if (!page.ok) return page;
      const { nextCursor, waitSeconds } = page.value;
      const events = page.value.events.map((event) => eventResponse(event, caller.account.mode, deps.baseUrl()));
      const preferenceApplied = waitSeconds > 0 ? `wait=${waitSeconds}` : undefined;
      return success({ body: { events, next_cursor: nextCursor }, outcome: 'ok', preferenceApplied });
    },
  });
}

interface ListedEvents {
  readonly events: readonly OrderEvent[];
  readonly nextCursor: string;
  /** How long the call would have waited for a first event. */
  readonly waitSeconds: number;
}

/**
 * Lists the merchant's events, oldest first. Every page has a cursor for later events. The call waits for a first event
 * as long as the caller prefers. If a filtered scan has found no events yet, it continues while there is time.
 */
async function listEvents(
  { store, eventWatch }: ListEventsDeps,
  caller: Caller<Merchant>,
  input: Members,
): Promise<Result<ListedEvents, Failure>> {
  const { id } = caller.account;
  const parsed = parseEventList(id, input);
  if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
  const { filter, cursorAfter } = parsed.value;
  const endsAt = performance.now() + caller.waitMs;
  for (let { after } = filter; ; ) {
    const listed = await store.listEvents(id, { ...filter, after }, caller.timeLeftMs());
    if (listed.kind === 'cursor_expired') return failed({ kind: listed.kind });
    if (listed.kind !== 'found') return failed(storageFailure(listed.kind));
    const { events, scannedTo, isCut = false } = listed;
    after = scannedTo ?? after;
    const page = { events, nextCursor: cursorAfter(after), waitSeconds: caller.waitMs / 1_000 };
    if (events.length > 0) return success(page);
    if (isCut) {
      if (caller.timeLeftMs() < callTimeoutMs / 2) return success(page);
      continue;
    }
    const timeoutMs = endsAt - performance.now();
    if (timeoutMs <= 0) return success(page);
    if (!eventWatch.hasCapacity(id)) return success({ ...page, waitSeconds: 0 });
    const position = after;
    const hasEvents = await caller.pause((signal) => eventWatch.hasEventsAfter(id, position, { timeoutMs, signal }));
    if (!hasEvents) return success(page);
  }
}

/** The caller of a stream, and when the stream ends. */
export interface Watcher {
  readonly account: Merchant;
  /** Whether the credentials still work. */
  readonly authenticate: () => Promise<Result<unknown, Failure>>;
  readonly signal: AbortSignal;
}

/**
 * The operation that responds with a stream. It yields the JSON form of the messages to send, and a failure at the end.
 */
export type WatchEvents = ReturnType<typeof createWatchEvents>;

export function createWatchEvents({
  store,
  eventWatch,
  baseUrl,
}: Pick<OperationDeps, 'store' | 'eventWatch' | 'baseUrl'>) {
  const streams = new Map<AccountId, number>();

  async function* watch(
    { account, authenticate, signal }: Watcher,
    input: Members,
  ): AsyncGenerator<Result<object, Failure>, void> {
    const { id, mode } = account;
    const parsed = parseEventList(id, input);
    if (!parsed.ok) return yield failed({ kind: 'invalid_request', errors: parsed.failure });
    const { filter, cursorAfter } = parsed.value;
    const endsAt = performance.now() + eventWatchLimits.streamMs;
    const isEnding = () => signal.aborted || eventWatch.isClosed() || performance.now() >= endsAt;
    let after: EventPosition = filter.after;
    while (!isEnding()) {
      // A secret can be revoked, and a merchant disabled, while the stream is open.
      const authenticated = await authenticate();
      if (!authenticated.ok) return yield authenticated;
      const listed = await store.listEvents(
        id,
        { ...filter, after, limit: eventWatchLimits.streamPageMax },
        callTimeoutMs,
      );
      if (listed.kind === 'cursor_expired') return yield failed({ kind: listed.kind });
      if (listed.kind !== 'found') return yield failed(storageFailure(listed.kind));
      for (const event of listed.events) {
        if (isEnding()) break;
        yield success({ event: eventResponse(event, mode, baseUrl()), cursor: cursorAfter(event) });
      }
      after = listed.scannedTo ?? after;
      if (listed.events.length > 0 || listed.isCut) continue;
      const timeoutMs = eventWatchLimits.heartbeatMs;
      const hasEvents = await eventWatch.hasEventsAfter(id, after, { timeoutMs, signal });
      if (!hasEvents && !isEnding()) yield success({ cursor: cursorAfter(after) });
    }
    yield failed({ kind: 'unavailable' });
  }

  return {
    method: EventService.method.watchEvents,
    /** Sends the merchant's events until a failure. Every stream ends with one. */
    async *handle(watcher: Watcher, input: Members): AsyncGenerator<Result<object, Failure>, void> {
      const { id } = watcher.account;
      const open = streams.get(id) ?? 0;
      if (open >= eventWatchLimits.streamsPerMerchant) {
        return yield failed({ kind: 'rate_limited', retryAfterMs: retryAfter(eventWatchLimits.streamsRetryAfterMs) });
      }
      streams.set(id, open + 1);
      try {
        yield* watch(watcher, input);
      } finally {
        const remaining = (streams.get(id) ?? 1) - 1;
        if (remaining > 0) streams.set(id, remaining);
        else streams.delete(id);
      }
    },
  };
}

/** An event as feeds and webhooks contain it, with the order after the change. */
export function eventResponse(event: OrderEvent, mode: MerchantMode, baseUrl: BaseUrl) {
  return {
    id: event.eventId,
    type: event.type,
    timestamp: formatTime(event.createdAtMs),
    data: orderRecord(orderAfter(event), mode, baseUrl),
  };
}
