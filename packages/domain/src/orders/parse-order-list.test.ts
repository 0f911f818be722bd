import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AccountId } from '../accounts/account.ts';
import { parseEventList } from '../events/parse-event-list.ts';
import { parseRefundList } from '../payments/parse-refund.ts';
import type { ListInput } from '../requests/list-parameters.ts';
import { parseOrderList } from './parse-order-list.ts';

const merchantId = 1 as AccountId;
const position = { createdAtMs: 1_795_208_502_172, serviceOrderId: 7 };

function errorsOf(input: ListInput): string[] {
  const list = parseOrderList(merchantId, input);
  return list.ok ? [] : list.failure.errors.map(({ field, code }) => `${field} ${code}`);
}

function cursorOf(input: ListInput): string {
  const list = parseOrderList(merchantId, input);
  if (!list.ok) throw new Error('the list is not valid');
  return list.value.cursorAfter(position);
}

const times = ['2026-01-01T00:00Z', '2026-01-01T01:00+01:00', '2027-01-01T00:00:00Z'];
const anyFilters = fc.record(
  {
    status: fc.constantFrom('PAID', 'UN_PAID', ''),
    created_from: fc.constantFrom(...times, ''),
    created_to: fc.constantFrom(...times, ''),
  },
  { requiredKeys: [] },
);

/** Returns a string that is the same for filters with the same meaning, even if they are written differently. */
function meaningOf({ status, created_from, created_to }: ListInput): string {
  return JSON.stringify([
    status || null,
    ...[created_from, created_to].map((time) => (time ? Date.parse(String(time)) : null)),
  ]);
}

describe('parseOrderList', () => {
  it('accepts a cursor with equal filters and a different limit, and rejects it with other filters', () => {
    fc.assert(
      fc.property(anyFilters, anyFilters, (filters, otherFilters) => {
        const cursor = cursorOf(filters);
        const sent = { ...otherFilters, cursor, limit: 5 };
        const isSame = meaningOf(filters) === meaningOf(otherFilters);
        expect(errorsOf(sent)).toStrictEqual(isSame ? [] : ['cursor bad_format']);
        if (!isSame) return;
        expect(parseOrderList(merchantId, sent)).toMatchObject({ value: { filter: { after: position, limit: 5 } } });
      }),
    );
  });

  it('returns cursors that the list of events rejects', () => {
    expect(parseEventList(merchantId, { cursor: cursorOf({}) }).ok).toBe(false);
  });

  it.each<[ListInput, string[]]>([
    [{ order_status: 'PAID' }, ['order_status unknown_field']],
    [{ order_status: '', limit: 0, x: 1 }, ['order_status unknown_field', 'x unknown_field', 'limit out_of_range']],
    [{ status: '', created_from: '', created_to: null, limit: '', cursor: '' }, []],
    [{ created_from: '1969-12-31T23:59:59Z' }, ['created_from out_of_range']],
    [{ created_to: '9999-12-31T23:59:59-01:00' }, ['created_to out_of_range']],
    [{ created_to: '2026-01-01T00:00 00:00' }, []],
    [{ status: ['PAID', 'PAID'] }, ['status not_allowed']],
    [{ created_from: times }, ['created_from wrong_type']],
    [{ cursor: 5 }, ['cursor bad_format']],
  ])('for %j, returns the errors %j', (input, errors) => {
    expect(errorsOf(input)).toStrictEqual(errors);
  });

  it('never throws', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('status', 'created_from', 'limit', 'cursor', 'x'), fc.anything()),
        (input) => {
          const list = parseOrderList(merchantId, input);
          if (list.ok) expect(list.value.filter.limit).toBeGreaterThan(0);
        },
      ),
    );
  });

  it.each([
    [{ createdAtMs: Date.UTC(9999, 11, 31, 23, 59, 59, 999), serviceOrderId: Number.MAX_SAFE_INTEGER }, true],
    [{ createdAtMs: Date.UTC(10_000, 0), serviceOrderId: 1 }, false],
    [{ createdAtMs: 1, serviceOrderId: Number.MAX_SAFE_INTEGER + 1 }, false],
    [{ createdAtMs: 1, serviceOrderId: 1e16 }, false],
    [{ createdAtMs: -1, serviceOrderId: 1 }, false],
  ])('a cursor of orders or refunds can hold the position %o: %s', (after, isPossible) => {
    for (const parse of [parseOrderList, parseRefundList]) {
      const list = parse(merchantId, {});
      const cursor = list.ok ? list.value.cursorAfter(after) : '';
      const failure = isPossible ? undefined : { errors: [{ field: 'cursor', code: 'bad_format' }] };
      expect(parse(merchantId, { cursor })).toMatchObject(failure === undefined ? { ok: true } : { failure });
    }
  });

  it.each<[unknown, unknown]>([
    [undefined, { ok: true, value: { filter: { metadata: undefined } } }],
    [
      { cart: '7', shop: '' },
      { ok: true, value: { filter: { metadata: { cart: '7' } } } },
    ],
    [
      { a: '1', b: '2' },
      { ok: true, value: { filter: { metadata: { a: '1', b: '2' } } } },
    ],
    [{ a: '1', b: '2', c: '3' }, { failure: { errors: [{ field: 'metadata', code: 'too_long' }] } }],
    [['7'], { failure: { errors: [{ field: 'metadata', code: 'wrong_type' }] } }],
    ['7', { failure: { errors: [{ field: 'metadata', code: 'wrong_type' }] } }],
  ])('reads or rejects the metadata %o', (metadata, expected) => {
    expect(parseOrderList(merchantId, { metadata } as ListInput)).toMatchObject(expected as object);
  });
});
