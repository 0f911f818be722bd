import { describe, expect, it } from 'vitest';
import { anotherOrderInput, sampleOrder, validOrderFields } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import { erasedValues, erasureDigest, personalFieldNames } from './erasure.ts';
import type { Order, OrderFields } from './order.ts';
import { orderDifference as differenceOf } from './order-difference.ts';
import { additionalFieldNames, orderFieldNames } from './order-fields.ts';
import type { ParsedOrder } from './parse-order.ts';

const merchantId = 7 as AccountId;
const orderDifference = (stored: OrderFields, received: OrderFields) =>
  differenceOf({ ...sampleOrder(merchantId), fields: stored }, sent(received));
const sent = (fields: OrderFields, optional: Partial<ParsedOrder> = {}): ParsedOrder => ({
  fields,
  expiresAtMs: undefined,
  metadata: undefined,
  ...optional,
});

describe('orderDifference of an erased order', () => {
  const key = new Uint8Array(32).fill(1);
  const fields = validOrderFields();
  const erased = {
    ...sampleOrder(merchantId),
    erasedDigest: erasureDigest(key, merchantId, fields),
    fields: { ...fields, ...erasedValues(fields) },
  };
  const personalNames = personalFieldNames.filter((name) => name !== 'order_checksum');

  it('is empty for the same order with any checksum', () => {
    expect(differenceOf(erased, sent(fields), [key])).toStrictEqual([]);
    expect(differenceOf(erased, sent(fields), [new Uint8Array(32), key])).toStrictEqual([]);
    expect(differenceOf(erased, sent({ ...fields, order_checksum: 'v1=another' }), [key])).toStrictEqual([]);
  });

  it.each(Object.entries(anotherOrderInput))('shows that %s differs', (field, value) => {
    const isPersonal = (personalNames as string[]).includes(field);
    // The digest also covers the order_id, so that no two orders of a merchant have the same digest.
    const names = orderFieldNames.filter(
      (name) => name === field || ((isPersonal || field === 'order_id') && (personalNames as string[]).includes(name)),
    );
    expect(differenceOf(erased, sent(validOrderFields({ [field]: value })), [key])).toStrictEqual(names);
  });

  it('contains all personal fields for a missing or wrong key, for the erased values, and for another merchant', () => {
    for (const wrongKeys of [[], [new Uint8Array(32)]])
      expect(differenceOf(erased, sent(fields), wrongKeys)).toStrictEqual(personalNames);
    expect(differenceOf(erased, sent(erased.fields), [key])).toStrictEqual(personalNames);
    expect(differenceOf({ ...erased, merchantId: 8 as AccountId }, sent(fields), [key])).toStrictEqual(personalNames);
  });
});

it('erasedValues keeps only the origin of the return URL from the personal fields', () => {
  const kept = Object.values(erasedValues(validOrderFields({ return_url: 'https://shop.example:8443/a?email=b#c' })));
  expect(new Set(kept)).toStrictEqual(new Set(['', 'https://shop.example:8443/']));
});

describe('orderDifference', () => {
  it('compares the expiry and the metadata only if they were sent, and the metadata only if it is not erased', () => {
    const stored = { ...sampleOrder(merchantId), expiresAtMs: 7, metadata: { cart: '7' } };
    const difference = (optional: Partial<ParsedOrder>, changes: Partial<Order> = {}) =>
      differenceOf({ ...stored, ...changes }, sent(stored.fields, optional));
    expect(difference({})).toStrictEqual([]);
    expect(difference({ expiresAtMs: 7, metadata: { cart: '7' } })).toStrictEqual([]);
    expect(difference({ expiresAtMs: 8, metadata: { cart: '8' } })).toStrictEqual(['order_expires_at', 'metadata']);
    const erasure = { erasedDigest: new Uint8Array(32), metadata: null };
    expect(difference({ metadata: { cart: '8' } }, erasure)).not.toContain('metadata');
  });

  it('is empty for the same order sent twice', () => {
    expect(orderDifference(validOrderFields(), validOrderFields())).toStrictEqual([]);
  });

  it.each(Object.entries(anotherOrderInput))('returns %s if only that field differs', (field, value) => {
    expect(orderDifference(validOrderFields(), validOrderFields({ [field]: value }))).toStrictEqual([field]);
  });

  it('returns all fields that differ, in the order of the API contract', () => {
    const backwards = Object.fromEntries(Object.entries(anotherOrderInput).reverse());
    const names = orderFieldNames.filter((name) => name !== 'order_checksum');

    expect(orderDifference(validOrderFields(), validOrderFields(backwards))).toStrictEqual(names);
    const alwaysCompared = names.filter((name) => !(additionalFieldNames as readonly string[]).includes(name));
    expect(orderDifference(validOrderFields(backwards), validOrderFields())).toStrictEqual(alwaysCompared);
  });

  it('ignores the checksum, because a rotated secret changes it', () => {
    expect(orderDifference(validOrderFields(), validOrderFields({ order_checksum: 'v1=another' }))).toStrictEqual([]);
  });
});
