import { expect, test } from 'vitest';
import type { AccountId } from '../accounts/account.ts';
import { type EventPosition, parseEventList } from '../events/index.ts';
import { parseOrderList } from '../orders/parse-order-list.ts';
import { parseRefundList } from '../payments/parse-refund.ts';
import { parseDeliveryList } from '../webhooks/index.ts';
import type { FieldError } from './field-rules.ts';
import { type ListInput, parseCompleteList, readLimit, readTime } from './list-parameters.ts';

const merchantId = 1 as AccountId;
const eventId = `evt_${'0a'.repeat(16)}`;

/** The parsers of the lists with cursors. */
const parsers = {
  events: (input: ListInput, id = merchantId) => parseEventList(id, input),
  deliveries: (input: ListInput, id = merchantId) => parseDeliveryList(id, 'we_1', input),
  orders: (input: ListInput, id = merchantId) => parseOrderList(id, input),
  refunds: (input: ListInput, id = merchantId) => parseRefundList(id, input),
};

/** Sends back the cursor of the page after a position. Returns the position that is read from it, or the errors. */
function positionAfter(list: 'events' | 'deliveries', position: EventPosition, input: ListInput = {}) {
  const first = parsers[list](input);
  if (!first.ok) return first.failure;
  const next = parsers[list]({ ...input, cursor: first.value.cursorAfter(position) });
  return next.ok ? next.value.filter.after : next.failure.errors.map(({ field, code }) => `${field} ${code}`);
}

test.each([
  { position: 1, eventId },
  { position: 999_999_999_999_999, eventId: '' },
])('a feed continues after %o', (position) => {
  expect(positionAfter('events', position)).toEqual(position);
  expect(positionAfter('events', position, { type: 'order.paid', order_id: 'A-1' })).toEqual(position);
});

test('a feed begins with the oldest event, and a list of deliveries with the newest', () => {
  expect(parsers.events({})).toMatchObject({ value: { filter: { after: { position: 0, eventId: '' } } } });
  expect(parsers.deliveries({})).toMatchObject({ value: { filter: { after: undefined } } });
});

test.each([
  ['events', { position: 1e15, eventId }],
  ['events', { position: -1, eventId }],
  ['events', { position: 1, eventId: eventId.slice(1) }],
  ['events', { position: 1, eventId: `${eventId}0` }],
  ['events', { position: 1, eventId: eventId.toUpperCase() }],
  ['deliveries', { position: 1, eventId: '' }],
  ['deliveries', { position: 1, eventId: `x${eventId}` }],
  ['deliveries', { position: 1, eventId: `${eventId}0` }],
  ['deliveries', { position: 1, eventId: `evt_${'g'.repeat(32)}` }],
] as const)('a cursor of %s cannot hold %o', (list, position) => {
  expect(positionAfter(list, position)).toEqual(['cursor bad_format']);
});

test.each(['events', 'deliveries', 'orders', 'refunds'] as const)(
  'a list of %s accepts only cursors of its account',
  (list) => {
    const first = parsers[list]({});
    const cursor = first.ok ? first.value.cursorAfter({ position: 1, eventId, createdAtMs: 1, serviceOrderId: 1 }) : '';
    expect(parsers[list]({ cursor })).toMatchObject({ ok: true });
    expect(parsers[list]({ cursor }, 2 as AccountId)).toMatchObject({
      failure: { errors: [{ field: 'cursor', code: 'bad_format' }] },
    });
  },
);

test('a list of deliveries continues after its cursor, which another endpoint, status or list rejects', () => {
  expect(positionAfter('deliveries', { position: 1, eventId }, { status: 'failed', order_id: 'A-1' })).toBe(eventId);
  const list = parsers.deliveries({ status: 'failed' });
  const cursor = list.ok ? list.value.cursorAfter({ eventId }) : '';
  const errors = { failure: { errors: [{ field: 'cursor', code: 'bad_format' }] } };
  expect(parsers.deliveries({ cursor })).toMatchObject(errors);
  expect(parseDeliveryList(merchantId, 'we_2', { status: 'failed', cursor })).toMatchObject(errors);
  expect(parseEventList(merchantId, { cursor })).toMatchObject(errors);
});

test.each<[unknown, unknown]>([
  [undefined, undefined],
  ['', undefined],
  [[], undefined],
  ['order.expired,order.paid', ['order.paid', 'order.expired']],
  [
    ['order.expired', 'order.paid,,'],
    ['order.paid', 'order.expired'],
  ],
])('the types of events %o are read as %o', (type, types) => {
  expect(parsers.events({ type })).toMatchObject({ ok: true, value: { filter: { types } } });
});

test.each<[unknown, number | string]>([
  [undefined, 20],
  ['1', 1],
  [100, 100],
  ['0', 'out_of_range'],
  ['101', 'out_of_range'],
  ['-1', 'out_of_range'],
  ['999999999', 'out_of_range'],
  ['1000000000', 'bad_format'],
  ['-1x', 'bad_format'],
  ['x-1', 'bad_format'],
  ['5x', 'bad_format'],
  ['x5', 'bad_format'],
  [{ toString: 1 }, 'bad_format'],
])('the limit %o is read as %o', (value, expected) => {
  const errors: FieldError<string>[] = [];
  const limit = readLimit(value, errors);
  expect(errors.length === 0 ? limit : errors[0]?.code).toBe(expected);
});

test.each<[unknown, number | string]>([
  ['1970-01-01T00:00:00Z', 0],
  ['2026-01-01T01:00:00 01:00', Date.UTC(2026, 0)],
  ['9999-12-31T23:59:59.999Z', Date.UTC(9999, 11, 31, 23, 59, 59, 999)],
  ['1969-12-31T23:59:59.999Z', 'out_of_range'],
  ['2026-01-01', 'bad_format'],
  [7, 'wrong_type'],
])('the time %o is read as %o', (value, expected) => {
  const errors: FieldError<string>[] = [];
  const time = readTime('created_from', value, errors);
  expect(errors.length === 0 ? time : errors[0]?.code).toBe(expected);
});

test('a list without parameters rejects every parameter, and any other list names its parameters in the error', () => {
  expect(parseCompleteList({})).toEqual({ ok: true, value: undefined });
  expect(parseCompleteList({ limit: 5 })).toMatchObject({
    failure: { errors: [{ field: 'limit', message: 'is unknown' }] },
  });
  const message = 'is unknown; the parameters are type, order_id, limit, cursor';
  expect(parsers.events({ status: 'PAID' })).toMatchObject({ failure: { errors: [{ field: 'status', message }] } });
});

test('a choice that is given twice must be given only once', () => {
  expect(parsers.deliveries({ status: ['pending', 'failed'] })).toMatchObject({
    failure: { errors: [{ field: 'status', code: 'not_allowed', message: 'must be given only once' }] },
  });
});

test('a list of deliveries accepts only a known status', () => {
  for (const status of ['pending', 'delivered', 'failed', undefined])
    expect(parsers.deliveries({ status })).toMatchObject({ ok: true, value: { filter: { status } } });
  const message = 'must be one of pending, delivered, failed';
  expect(parsers.deliveries({ status: 'lost' })).toEqual({
    ok: false,
    failure: { kind: 'invalid_request', errors: [{ field: 'status', code: 'not_allowed', message }] },
  });
});
