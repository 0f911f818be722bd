import type { Failure } from '@gateway/domain/failure';
import type { FieldError } from '@gateway/domain/field-rules';
import type { MerchantMode } from '@gateway/domain/merchant';
import { formatTime } from '@gateway/domain/order';
import { orderAfter } from '@gateway/domain/order-states';
import type { EventPosition, OrderEvent } from '@gateway/domain/order-store';
import type { BaseUrl } from '@gateway/domain/payment-link';
import { failed, type Result, success } from '@gateway/domain/result';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { storageFailure } from '../storage-outcome.ts';
import { orderRecord } from './order-response.ts';
import { cursorError, decodeCursor, encodeCursor, readLimit } from './page.ts';

/** Lists the merchant's events, oldest first. Every page has a cursor: later events follow it. */
export async function listEvents(
  { store }: GatewayDeps,
  call: Call,
  input: Readonly<Partial<Record<'limit' | 'cursor', unknown>>>,
): Promise<Result<{ readonly events: readonly OrderEvent[]; readonly nextCursor: string }, Failure>> {
  const errors: FieldError<string>[] = [];
  const limit = readLimit(input.limit, errors);
  const after = input.cursor === undefined ? start : positionOf(input.cursor);
  if (after === undefined) errors.push(cursorError);
  if (after === undefined || errors.length > 0) return failed({ kind: 'invalid_request', errors });
  const listed = await store.listEvents(call.client.merchant.id, { after, limit }, call.timeLeftMs());
  if (listed.kind !== 'found') return failed(storageFailure(listed.kind));
  const last = listed.events.at(-1) ?? after;
  return success({ events: listed.events, nextCursor: encodeCursor(last.transactionId, last.eventId) });
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

const start: EventPosition = { transactionId: '0', eventId: '' };

const transactionIdMax = 2n ** 64n - 1n;

function positionOf(cursor: unknown): EventPosition | undefined {
  const [, transactionId, eventId] = /^(\d{1,20})\.((?:evt_[0-9a-f]{32})?)$/.exec(decodeCursor(cursor)) ?? [];
  if (transactionId === undefined || BigInt(transactionId) > transactionIdMax) return undefined;
  return { transactionId, eventId: eventId ?? '' };
}
