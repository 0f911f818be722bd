import { describe, expect, it } from 'vitest';
import { anotherOrderInput, validOrderFields } from '../testing/sample-orders.ts';
import { NumberText } from './money.ts';
import { orderDifference } from './order-difference.ts';
import { orderFieldNames } from './order-fields.ts';

describe('orderDifference', () => {
  it('is empty for the same order sent twice', () => {
    expect(orderDifference(validOrderFields(), validOrderFields())).toStrictEqual([]);
  });

  it.each(Object.entries(anotherOrderInput))('returns %s if only that differs', (field, value) => {
    expect(orderDifference(validOrderFields(), validOrderFields({ [field]: value }))).toStrictEqual([field]);
  });

  it('returns all fields that differ, in the order of the interface', () => {
    const backwards = Object.fromEntries(Object.entries(anotherOrderInput).reverse());
    const names = orderFieldNames.filter((name) => name !== 'order_checksum');

    expect(orderDifference(validOrderFields(), validOrderFields(backwards))).toStrictEqual(names);
    expect(orderDifference(validOrderFields(backwards), validOrderFields())).toStrictEqual(names);
  });

  it('ignores the checksum, because a rotated secret changes it', () => {
    expect(orderDifference(validOrderFields(), validOrderFields({ order_checksum: 'v1=another' }))).toStrictEqual([]);
  });

  it.each(['10', '10.0', '10.00', '1e1'])('treats 10.00 and %s as the same amount', (digits) => {
    const first = validOrderFields({ order_amount: new NumberText('10.00') });

    expect(orderDifference(first, validOrderFields({ order_amount: new NumberText(digits) }))).toStrictEqual([]);
    expect(orderDifference(first, validOrderFields({ order_amount: 10 }))).toStrictEqual([]);
  });

  it('treats an absent, a null and an empty second address line as the same', () => {
    const absent = validOrderFields({ customer_address_line2: undefined });

    expect(orderDifference(absent, validOrderFields({ customer_address_line2: '' }))).toStrictEqual([]);
    expect(orderDifference(absent, validOrderFields({ customer_address_line2: null }))).toStrictEqual([]);
  });

  it.each([
    ['case', 'Noor', 'noor'],
    ['a trailing blank', 'Noor', 'Noor '],
    ['normalisation', 'Zoë', 'Zoe\u0308'],
  ])('returns a text that differs in %s', (_, one, other) => {
    const first = validOrderFields({ customer_name: one });

    expect(orderDifference(first, validOrderFields({ customer_name: other }))).toStrictEqual(['customer_name']);
  });
});
