import type { AccountId } from '../accounts/account.ts';
import { fieldRules } from '../orders/order-field-rules.ts';
import { type EventType, eventTypes } from '../orders/order-states.ts';
import { unlessInvalid } from '../requests/check-field.ts';
import { type FieldError, notString, textError } from '../requests/field-rules.ts';
import {
  cursorOf,
  knownParameters,
  type ListInput,
  type ParsedList,
  readCursor,
  readLimit,
  scopeOf,
} from '../requests/list-parameters.ts';
import type { EventFilter, EventPosition } from './event-feed.ts';

/**
 * Checks the parameters of an event feed as `parseOrderList` does. Without a cursor, the feed begins with the oldest
 * event.
 */
export function parseEventList(
  merchantId: AccountId,
  input: ListInput,
): ParsedList<EventFilter & { readonly after: EventPosition }, EventPosition> {
  const { values, errors } = knownParameters(input, ['type', 'order_id', 'limit', 'cursor']);
  const filter = { types: readTypes(values.type, errors), orderId: readOrderId(values.order_id, errors) };
  const limit = readLimit(values.limit, errors);
  const scope = scopeOf('events', merchantId, filter);
  const [position = '0', eventId = ''] =
    readCursor(values.cursor, scope, /^(\d{1,15})\.((?:evt_[0-9a-f]{32})?)$/, errors) ?? [];
  return unlessInvalid(errors, {
    filter: { ...filter, after: { position: Number(position), eventId }, limit },
    cursorAfter: ({ position, eventId }) => cursorOf(scope, position, eventId),
  });
}

/** Reads a list of types, or a text in which commas separate them. An empty list or text selects all types. */
function readTypes(value: unknown, errors: FieldError<string>[]): readonly EventType[] | undefined {
  if (value === undefined) return undefined;
  const texts = [value].flat().flatMap((item) => (typeof item === 'string' ? item.split(',').filter(Boolean) : [item]));
  const types = eventTypes.filter((type) => texts.includes(type));
  if (texts.some((text) => !(types as unknown[]).includes(text))) {
    errors.push({ field: 'type', code: 'not_allowed', message: `must be some of ${eventTypes.join(', ')}` });
  }
  return types.length === 0 ? undefined : types;
}

/** Reads the filter by order_id. */
export function readOrderId(value: unknown, errors: FieldError<string>[]): string | undefined {
  if (value === undefined) return undefined;
  const broken = typeof value === 'string' ? textError(fieldRules.order_id, value) : notString;
  if (broken !== undefined) errors.push({ field: 'order_id', ...broken });
  return typeof value === 'string' ? value : undefined;
}
