import { expect, test } from 'vitest';
import { readTypedAmount } from './typed-amount.ts';

test.each([
  ['49,90', '49.90'],
  ['49.90', '49.90'],
  [' 49 ', '49'],
  ['0,500', '0.500'],
  ['0.500', '0.500'],
  ['1500,00', '1500.00'],
  ['1500.5', '1500.5'],
  ['1,249.50', '1249.50'],
  ['1.249,50', '1249.50'],
  ['1 249,50', '1249.50'],
  ['1\u202f249,50', '1249.50'],
  ['1’249.50', '1249.50'],
  ['1.234.567', '1234567'],
  ['1,234,567.89', '1234567.89'],
  ['12,34,567.89', '1234567.89'],
  ['1249,500', '1249.500'],
  ['١٬٢٤٩٫٥٠', '1249.50'],
  ['۴۹٫۹۰', '49.90'],
  ['1e3', '1e3'],
])('an amount that is written as %j is read as %s', (typed, digits) => {
  expect(readTypedAmount(typed)).toBe(digits);
});

test.each(['1,500', '1.500', '149,900', '12.345'])('%j is ambiguous', (typed) => {
  expect(readTypedAmount(typed)).toBeUndefined();
});

test.each(['1,2,3', '1.2.3', '1,23.456,7', '1,249.500.000', '1.249,50,', '', 'EUR 5', '-1', '1,,5'])(
  '%j is not read as a number',
  (typed) => {
    expect(readTypedAmount(typed)).not.toMatch(/^\d+(\.\d+)?$/);
  },
);
