import { EventService } from '@gateway/contract/gateway/v1/event_service_pb';
import type { Failure } from '@gateway/domain/failure';
import { parseEventList } from '@gateway/domain/list-parameters';
import type { Merchant, MerchantMode } from '@gateway/domain/merchant';
import { formatTime } from '@gateway/domain/order';
import { orderAfter } from '@gateway/domain/order-states';
import type { OrderEvent } from '@gateway/domain/order-store';
import type { BaseUrl } from '@gateway/domain/payment-link';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Caller, Members, Operation, OperationDeps } from '../orders/operation.ts';
import { orderRecord } from '../orders/order-response.ts';
import { storageFailure } from '../orders/storage-failure.ts';

export function listEventsOperation(deps: Pick<OperationDeps, 'store' | 'baseUrl'>): Operation {
  return {
    method: EventService.method.listEvents,
    async handle(members, caller: Caller<Merchant>) {
      const page = await listEvents(deps, caller, members);
      if (!page.ok) return page;
      const events = page.value.events.map((event) => eventResponse(event, caller.account.mode, deps.baseUrl()));
      return success({ body: { events, next_cursor: page.value.nextCursor }, outcome: 'ok' });
    },
  };
}

/** Lists the merchant's events, oldest first. Every page has a cursor: later events follow it. */
async function listEvents(
  { store }: Pick<OperationDeps, 'store'>,
  caller: Caller<Merchant>,
  input: Members,
): Promise<Result<{ readonly events: readonly OrderEvent[]; readonly nextCursor: string }, Failure>> {
  const { id } = caller.account;
  const parsed = parseEventList(id, input);
  if (!parsed.ok) return failed({ kind: 'invalid_request', errors: parsed.failure });
  const { filter, cursorAfter } = parsed.value;
  const listed = await store.listEvents(id, filter, caller.timeLeftMs());
  if (listed.kind === 'cursor_expired') return failed({ kind: listed.kind });
  if (listed.kind !== 'found') return failed(storageFailure(listed.kind));
  const end = listed.scannedTo ?? listed.events.at(-1) ?? filter.after;
  return success({ events: listed.events, nextCursor: cursorAfter(end) });
}

/** An event as a feed and a webhook carry it, with the order as it was after the change. */
export function eventResponse(event: OrderEvent, mode: MerchantMode, baseUrl: BaseUrl) {
  return {
    id: event.eventId,
    type: event.type,
    timestamp: formatTime(event.createdAtMs),
    data: orderRecord(orderAfter(event.type, event.order), mode, baseUrl),
  };
}
