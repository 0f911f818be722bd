import type { AmountHundredths } from '@order-gateway/domain/money';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { creditorReferenceOf } from './creditor-reference.ts';
import { epcQrContent, transferRange } from './epc-qr-code.ts';

const details = {
  name: 'Käse & Wein e. K.',
  iban: 'DE89370400440532013000',
  amount: 1230n as AmountHundredths,
  reference: 'RF18539007547034',
};

test('the code has the lines of EPC069-12, version 002, and no line of text behind the structured reference', () => {
  expect(epcQrContent(details)?.split('\n')).toEqual([
    'BCD',
    '002',
    '1',
    'SCT',
    '',
    'Käse & Wein e. K.',
    'DE89370400440532013000',
    'EUR12.30',
    '',
    'RF18539007547034',
  ]);
});

test.each([
  ['no amount', { amount: 0n as AmountHundredths }],
  ['a billion', { amount: 100_000_000_000n as AmountHundredths }],
  ['a name of 71 characters', { name: 'n'.repeat(71) }],
  ['a name of two lines', { name: 'Shop\nEUR0.01' }],
  ['a name with spaces around it', { name: ' Shop' }],
  ['more than 331 bytes', { name: '🧀'.repeat(70) }],
])('%s does not fit a code', (_case, change) => {
  expect(epcQrContent({ ...details, ...change })).toBeUndefined();
});

test('every amount that a transfer can have fits a code, with its exact value', () => {
  const [min, max] = transferRange;
  fc.assert(
    fc.property(fc.bigInt({ min, max }), fc.maxSafeInteger(), (amount, id) => {
      const reference = creditorReferenceOf(Math.abs(id) || 1);
      const content = epcQrContent({ ...details, amount: amount as AmountHundredths, reference }) ?? '';
      const [, euros = '', cents = ''] = /^EUR(\d{1,9})\.(\d{2})$/m.exec(content) ?? [];
      expect(BigInt(euros + cents)).toBe(amount);
      expect(content.endsWith(`\n\n${reference}`)).toBe(true);
    }),
  );
});
