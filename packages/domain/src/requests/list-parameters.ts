import { hash } from 'node:crypto';
import type { AccountId } from '../accounts/account.ts';
import { type FieldError, fieldRules, textError } from '../fields/field-rules.ts';
import { checkTime, timeMaxMs } from '../fields/iso-time.ts';
import { type Metadata, metadataFilterMax, parseMetadata } from '../fields/metadata.ts';
import { orderStatuses } from '../orders/order.ts';
import { type EventType, eventTypes } from '../orders/order-states.ts';
import type { EventFilter, EventPosition, OrderFilter, OrderPosition } from '../orders/order-store.ts';
import { serviceOrderIdMax } from '../orders/service-order-id.ts';
import { failed, type Result, success } from '../result.ts';
import { type DeliveryStatus, deliveryStatuses } from '../webhooks/webhook-endpoint.ts';

/** The number of orders or events on a page. */
export const pageLimit = { max: 100, byDefault: 20 } as const;

/** The parameters of a list as an API received them: any values under any names. An empty text is the same as none. */
export type ListInput = Readonly<Record<string, unknown>>;

/** A page of a list, and the function that makes the cursor of the next page. */
export interface ListPage<Filter, Position> {
  readonly filter: Filter & { readonly limit: number };
  /** Returns the opaque cursor of the page after a position. It is valid for this merchant and these filters only. */
  cursorAfter(position: Position): string;
}

type Parsed<Filter, Position> = Result<ListPage<Filter, Position>, readonly FieldError<string>[]>;

/** Checks the parameters of a list of orders. Returns the page, or all parameters that are unknown or not valid. */
export function parseOrderList(merchantId: AccountId, input: ListInput): Parsed<OrderFilter, OrderPosition> {
  const { values, errors } = known(input, ['status', 'created_from', 'created_to', 'metadata', 'limit', 'cursor']);
  const status = orderStatuses.find((one) => one === values.status);
  if (values.status !== undefined && status === undefined) {
    errors.push({ field: 'status', code: 'not_allowed', message: `must be one of ${orderStatuses.join(', ')}` });
  }
  const filter = {
    status,
    createdFromMs: readTime('created_from', values.created_from, errors),
    createdToMs: readTime('created_to', values.created_to, errors),
    metadata: readMetadata(values.metadata, errors),
  };
  const limit = readLimit(values.limit, errors);
  const scope = scopeOf('orders', merchantId, filter);
  const [createdAt, id] = readCursor(values.cursor, scope, /^(\d{1,15})\.(\d{1,16})$/, errors) ?? [];
  const after = createdAt === undefined ? undefined : { createdAtMs: Number(createdAt), serviceOrderId: Number(id) };
  if (after !== undefined && (after.createdAtMs > timeMaxMs || after.serviceOrderId > serviceOrderIdMax)) {
    errors.push(cursorError);
  }
  if (errors.length > 0) return failed(errors);
  return success({
    filter: { ...filter, after, limit },
    cursorAfter: ({ createdAtMs, serviceOrderId }) => cursorOf(scope, createdAtMs, serviceOrderId),
  });
}

/** Checks the parameters of an event feed in the same way. Without a cursor the feed begins with the oldest event. */
export function parseEventList(
  merchantId: AccountId,
  input: ListInput,
): Parsed<EventFilter & { readonly after: EventPosition }, EventPosition> {
  const { values, errors } = known(input, ['type', 'order_id', 'limit', 'cursor']);
  const filter = { types: readTypes(values.type, errors), orderId: readOrderId(values.order_id, errors) };
  const limit = readLimit(values.limit, errors);
  const scope = scopeOf('events', merchantId, filter);
  const [position = '0', eventId = ''] =
    readCursor(values.cursor, scope, /^(\d{1,15})\.((?:evt_[0-9a-f]{32})?)$/, errors) ?? [];
  if (errors.length > 0) return failed(errors);
  return success({
    filter: { ...filter, after: { position: Number(position), eventId }, limit },
    cursorAfter: ({ position, eventId }) => cursorOf(scope, position, eventId),
  });
}

/** Checks that a list without parameters has none. */
export function parseCompleteList(input: ListInput): Result<undefined, readonly FieldError<string>[]> {
  const { errors } = known(input, []);
  return errors.length > 0 ? failed(errors) : success(undefined);
}

/** The filter of a list of deliveries. */
export interface DeliveryListFilter {
  readonly status: DeliveryStatus | undefined;
  /** The id of an event. */
  readonly after: string | undefined;
}

/** Checks the parameters of a list of an endpoint's deliveries in the same way. */
export function parseDeliveryList(
  merchantId: AccountId,
  endpointId: string,
  input: ListInput,
): Parsed<DeliveryListFilter, Pick<EventPosition, 'eventId'>> {
  const { values, errors } = known(input, ['id', 'status', 'limit', 'cursor']);
  const status = deliveryStatuses.find((one) => one === values.status);
  if (values.status !== undefined && status === undefined) {
    errors.push({ field: 'status', code: 'not_allowed', message: `must be one of ${deliveryStatuses.join(', ')}` });
  }
  const limit = readLimit(values.limit, errors);
  const scope = scopeOf(`deliveries ${endpointId}`, merchantId, { status });
  const [after] = readCursor(values.cursor, scope, /^(evt_[0-9a-f]{32})$/, errors) ?? [];
  if (errors.length > 0) return failed(errors);
  return success({
    filter: { status, after, limit },
    cursorAfter: ({ eventId }) => cursorOf(scope, eventId),
  });
}

/** The values of the known parameters, and an error for each other name. */
function known<Name extends string>(input: ListInput, names: readonly Name[]) {
  const values: Partial<Record<Name, unknown>> = {};
  for (const name of names) {
    const value = input[name];
    if (value !== '' && value !== null) values[name] = value;
  }
  const unknown = Object.keys(input).filter((name) => !(names as readonly string[]).includes(name));
  const message = names.length === 0 ? 'is unknown' : `is unknown; the parameters are ${names.join(', ')}`;
  const errors = unknown.map((field): FieldError<string> => ({ field, code: 'unknown_field', message }));
  return { values, errors };
}

function readTime(field: string, value: unknown, errors: FieldError<string>[]): number | undefined {
  if (value === undefined) return undefined;
  // A plus sign that is not encoded in a URL arrives as a space.
  const time = checkTime(typeof value === 'string' ? value.replace(/ (?=\d\d:\d\d$)/, '+') : value);
  if (typeof time === 'object') errors.push({ field, ...time });
  else if (time >= 0 && time <= timeMaxMs) return time;
  else errors.push({ field, code: 'out_of_range', message: 'must be in the years 1970 to 9999' });
  return undefined;
}

/** The pairs of a filter. An empty value is the same as none. */
function readMetadata(value: unknown, errors: FieldError<string>[]): Metadata | undefined {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const pairs = isObject ? Object.fromEntries(Object.entries(value).filter(([, text]) => text !== '')) : value;
  const parsed = parseMetadata(pairs);
  if (!parsed.ok) errors.push(...parsed.failure);
  else if (parsed.value !== undefined && Object.keys(parsed.value).length > metadataFilterMax) {
    const message = `must have at most ${metadataFilterMax} keys in a filter`;
    errors.push({ field: 'metadata', code: 'too_long', message });
  } else return parsed.value;
  return undefined;
}

/** Types are a list, or a text with commas. An empty list is the same as an empty text. */
function readTypes(value: unknown, errors: FieldError<string>[]): readonly EventType[] | undefined {
  if (value === undefined) return undefined;
  const texts = [value].flat().flatMap((one) => (typeof one === 'string' ? one.split(',').filter(Boolean) : [one]));
  const types = eventTypes.filter((type) => texts.includes(type));
  if (texts.some((text) => !(types as unknown[]).includes(text))) {
    errors.push({ field: 'type', code: 'not_allowed', message: `must be some of ${eventTypes.join(', ')}` });
  }
  return types.length === 0 ? undefined : types;
}

function readOrderId(value: unknown, errors: FieldError<string>[]): string | undefined {
  if (value === undefined) return undefined;
  const broken =
    typeof value === 'string'
      ? textError(fieldRules.order_id, value)
      : ({ code: 'wrong_type', message: 'must be a string' } as const);
  if (broken !== undefined) errors.push({ field: 'order_id', ...broken });
  return typeof value === 'string' ? value : undefined;
}

/** A limit is text in a URL and a number in a message. */
function readLimit(value: unknown, errors: FieldError<string>[]): number {
  if (value === undefined) return pageLimit.byDefault;
  // An object may have no text: JSON can name a member `toString`.
  const text = typeof value === 'object' ? '' : String(value);
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : undefined;
  if (limit !== undefined && limit >= 1 && limit <= pageLimit.max) return limit;
  const code = limit === undefined && !/^-\d+$/.test(text) ? 'bad_format' : 'out_of_range';
  errors.push({ field: 'limit', code, message: `must be a whole number from 1 to ${pageLimit.max}` });
  return pageLimit.byDefault;
}

const cursorError: FieldError<string> = {
  field: 'cursor',
  code: 'bad_format',
  message: 'must be the next_cursor of a page of the same list with the same filters',
};

/** A short digest of the list that a cursor belongs to. It guards against mistakes only: a cursor reveals no more than its page. */
function scopeOf(list: string, merchantId: AccountId, filter: object = {}): string {
  return hash('sha256', JSON.stringify([list, merchantId, filter])).slice(0, 12);
}

function cursorOf(scope: string, ...position: readonly (string | number)[]): string {
  return Buffer.from([scope, ...position].join('.')).toString('base64url');
}

/** The parts of the position in a cursor. Adds an error if the text is not a cursor, or is the cursor of another list. */
function readCursor(
  cursor: unknown,
  scope: string,
  form: RegExp,
  errors: FieldError<string>[],
): readonly string[] | undefined {
  if (cursor === undefined) return undefined;
  const text = typeof cursor === 'string' ? Buffer.from(cursor, 'base64url').toString('latin1') : '';
  const position = text.startsWith(`${scope}.`) ? form.exec(text.slice(scope.length + 1)) : null;
  if (position === null) errors.push(cursorError);
  return position?.slice(1);
}
