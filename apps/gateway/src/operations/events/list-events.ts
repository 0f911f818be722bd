import { EventService } from '@order-gateway/contract/gateway/v1/event_service_pb';
import type { Merchant } from '@order-gateway/domain/accounts/account';
import type { Failure } from '@order-gateway/domain/failure';
import type { OrderEvent } from '@order-gateway/domain/orders/order-store';
import { parseEventList } from '@order-gateway/domain/requests/list-parameters';
import { failed, type Result, success } from '@order-gateway/domain/result';
import { callTimeoutMs } from '../../limits.ts';
import type { Caller, Members, Operation, OperationDeps } from '../operation.ts';
import { eventResponse } from '../orders/order-response.ts';
import { storageFailure } from '../retry-after.ts';

type ListEventsDeps = Pick<OperationDeps, 'store' | 'eventWatch'>;

export function listEventsOperation(deps: ListEventsDeps & Pick<OperationDeps, 'baseUrl'>): Operation {
  return {
    method: EventService.method.listEvents,
    async handle(members, caller: Caller<Merchant>) {
      const page = await listEvents(deps, caller, members);
      if (!page.ok) return page;
      const { nextCursor, waitSeconds } = page.value;
      const events = page.value.events.map((event) => eventResponse(event, caller.account.mode, deps.baseUrl()));
      const preferenceApplied = waitSeconds > 0 ? `wait=${waitSeconds}` : undefined;
      return success({ body: { events, next_cursor: nextCursor }, outcome: 'ok', preferenceApplied });
    },
  };
}

interface ListedEvents {
  readonly events: readonly OrderEvent[];
  readonly nextCursor: string;
  /** How long the call would have waited for a first event. */
  readonly waitSeconds: number;
}

/**
 * Lists the merchant's events, oldest first. Every page has a cursor, after which later events follow. The call waits for a
 * first event as long as the caller prefers, and continues a filtered page without events while there is time.
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
