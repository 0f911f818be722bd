import type { Failure } from '@gateway/domain/failure';
import type { FieldError } from '@gateway/domain/field-rules';
import { parseTime, timeMaxMs, timeMessage } from '@gateway/domain/iso-time';
import { type Order, orderStatuses } from '@gateway/domain/order';
import type { OrderPosition } from '@gateway/domain/order-store';
import { failed, type Result, success } from '@gateway/domain/result';
import { serviceOrderIdMax } from '@gateway/domain/service-order-id';
import type { Call } from '../call.ts';
import type { GatewayDeps } from '../gateway-deps.ts';
import { storageFailure } from '../storage-outcome.ts';
import { cursorError, decodeCursor, encodeCursor, readLimit } from './page.ts';

/** The parameters of a list as an API received them: any values under their names. */
export type ListInput = Readonly<
  Partial<Record<'status' | 'created_from' | 'created_to' | 'limit' | 'cursor', unknown>>
>;

/** Lists the merchant's orders, newest first; the last page has no cursor. All invalid parameters are reported at once. */
export async function listOrders(
  { store }: GatewayDeps,
  call: Call,
  input: ListInput,
): Promise<Result<{ readonly orders: readonly Order[]; readonly nextCursor: string | undefined }, Failure>> {
  const errors: FieldError<string>[] = [];
  const status = orderStatuses.find((one) => one === input.status);
  if (input.status !== undefined && status === undefined) {
    errors.push({ field: 'status', code: 'not_allowed', message: `must be one of ${orderStatuses.join(', ')}` });
  }
  const readTime = (field: 'created_from' | 'created_to') => {
    const value = input[field];
    // A plus sign that is not encoded arrives as a blank.
    const timeMs = typeof value === 'string' ? parseTime(value.replace(/ (?=\d\d:\d\d$)/, '+')) : undefined;
    if (value !== undefined && timeMs === undefined) errors.push({ field, code: 'bad_format', message: timeMessage });
    return timeMs;
  };
  const createdFromMs = readTime('created_from');
  const createdToMs = readTime('created_to');
  const limit = readLimit(input.limit, errors);
  const after = input.cursor === undefined ? undefined : positionOf(input.cursor);
  if (input.cursor !== undefined && after === undefined) errors.push(cursorError);
  if (errors.length > 0) return failed({ kind: 'invalid_request', errors });
  const filter = { status, createdFromMs, createdToMs, after, limit: limit + 1 };
  const listed = await store.list(call.client.merchant.id, filter, call.timeLeftMs());
  if (listed.kind !== 'found') return failed(storageFailure(listed.kind));
  const orders = listed.orders.slice(0, limit);
  const last = listed.orders.length > limit ? orders.at(-1) : undefined;
  const nextCursor = last === undefined ? undefined : encodeCursor(last.createdAtMs, last.serviceOrderId);
  return success({ orders, nextCursor });
}

function positionOf(cursor: unknown): OrderPosition | undefined {
  const [, createdAtMs, serviceOrderId] = /^(\d{1,15})\.(\d{1,16})$/.exec(decodeCursor(cursor)) ?? [];
  const position = { createdAtMs: Number(createdAtMs), serviceOrderId: Number(serviceOrderId) };
  return position.createdAtMs <= timeMaxMs && position.serviceOrderId <= serviceOrderIdMax ? position : undefined;
}
