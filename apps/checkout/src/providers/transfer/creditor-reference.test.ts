import fc from 'fast-check';
import { expect, test } from 'vitest';
import { creditorReferenceOf, creditorReferencesIn } from './creditor-reference.ts';
import { hasCheckDigits, inGroups } from './mod97.ts';

const serviceOrderIds = fc.maxSafeInteger().map((id) => Math.abs(id) || 1);

test.each([
  [539_007_547_034, 'RF18539007547034'],
  [2_348_231, 'RF712348231'],
])('the creditor reference of %i is %s', (serviceOrderId, reference) => {
  expect(creditorReferenceOf(serviceOrderId)).toBe(reference);
});

test.each(['RF45G72UUR', 'RF6518K5'])('%s has the check digits of ISO 11649', (reference) => {
  expect(hasCheckDigits(reference)).toBe(true);
});

test('every order has a reference of at most 25 characters, which is found in any notation', () => {
  fc.assert(
    fc.property(serviceOrderIds, fc.constantFrom('', ' 12', 'x', '\n2027-01-31', ' RF'), (id, rest) => {
      const reference = creditorReferenceOf(id);
      expect(reference.length).toBeLessThanOrEqual(25);
      expect(creditorReferencesIn(`/RFB/${inGroups(reference).toLowerCase()}${rest}`)).toContain(reference);
    }),
  );
});

test('no other digit, and no two exchanged digits, make a reference of another order', () => {
  fc.assert(
    fc.property(serviceOrderIds, fc.nat(), fc.integer({ min: 1, max: 9 }), (id, at, by) => {
      const reference = creditorReferenceOf(id);
      const position = 2 + (at % (reference.length - 2));
      const digit = (Number(reference[position]) + by) % 10;
      const mistyped = `${reference.slice(0, position)}${digit}${reference.slice(position + 1)}`;
      const next = reference.slice(position, position + 2);
      const exchanged = reference.slice(0, position) + [...next].reverse().join('') + reference.slice(position + 2);
      expect(hasCheckDigits(mistyped)).toBe(false);
      expect(hasCheckDigits(exchanged)).toBe(exchanged === reference);
    }),
  );
});

test.each(['', 'RF', 'RF18', 'RF18 5390 0754 703', 'RG18 5390 0754 7034', 'RF00539007547034'])(
  'a text without a reference has none: %s',
  (text) => {
    expect(creditorReferencesIn(text)).toEqual([]);
  },
);
