import type { AccountId } from '../accounts/account.ts';
import { unlessInvalid } from '../requests/check-field.ts';
import type { FieldError } from '../requests/field-rules.ts';
import { timeMaxMs } from '../requests/iso-time.ts';
import {
  cursorError,
  cursorOf,
  knownParameters,
  type ListInput,
  type ParsedList,
  readChoice,
  readCursor,
  readLimit,
  readTime,
  scopeOf,
} from '../requests/list-parameters.ts';
import { type Metadata, metadataFilterMax, parseMetadata } from './metadata.ts';
import { orderStatuses } from './order.ts';
import { fieldRules } from './order-field-rules.ts';
import type { OrderFilter, OrderPosition } from './order-store.ts';
import { serviceOrderIdMax } from './service-order-id.ts';

/**
 * Checks the parameters of a list of orders. Returns which page to read, or an error for each parameter that is unknown
 * or invalid.
 */
export function parseOrderList(merchantId: AccountId, input: ListInput): ParsedList<OrderFilter, OrderPosition> {
  const { values, errors } = knownParameters(input, [
    'status',
    'currency',
    'created_from',
    'created_to',
    'metadata',
    'limit',
    'cursor',
  ]);
  const filter = {
    status: readChoice('status', values.status, { values: orderStatuses }, errors),
    currency: readChoice('currency', values.currency, fieldRules.order_currency, errors),
    createdFromMs: readTime('created_from', values.created_from, errors),
    createdToMs: readTime('created_to', values.created_to, errors),
    metadata: readMetadata(values.metadata, errors),
  };
  const limit = readLimit(values.limit, errors);
  const scope = scopeOf('orders', merchantId, filter);
  const after = readPosition(values.cursor, scope, errors);
  return unlessInvalid(errors, {
    filter: { ...filter, after, limit },
    cursorAfter: ({ createdAtMs, serviceOrderId }) => cursorOf(scope, createdAtMs, serviceOrderId),
  });
}

/** Reads the position in a list that is sorted by time of creation and order. */
export function readPosition(cursor: unknown, scope: string, errors: FieldError<string>[]): OrderPosition | undefined {
  const [createdAt, id] = readCursor(cursor, scope, /^(\d{1,15})\.(\d{1,16})$/, errors) ?? [];
  if (createdAt === undefined) return undefined;
  const position = { createdAtMs: Number(createdAt), serviceOrderId: Number(id) };
  // Only a forged cursor has a position that PostgreSQL can't compare.
  if (position.createdAtMs > timeMaxMs || position.serviceOrderId > serviceOrderIdMax) errors.push(cursorError);
  return position;
}

/** Reads the pairs of a filter. A pair with an empty value is ignored. */
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
