import { expect, test } from 'vitest';
import { parseIban } from './iban.ts';

test.each([
  ['DE89 3704 0044 0532 0130 00', 'DE89370400440532013000'],
  ['gb82west12345698765432', 'GB82WEST12345698765432'],
  ['FR14 2004 1010 0505 0001 3M02 606', 'FR1420041010050500013M02606'],
  ['NO93 8601 1117 947', 'NO9386011117947'],
  ['MT84 MALT 0110 0001 2345 MTLC AST0 01S', 'MT84MALT011000012345MTLCAST001S'],
])('%s is a valid account number', (text, iban) => {
  expect(parseIban(text)).toBe(iban);
});

test.each([
  ['two exchanged digits', 'DE89370400440532031000'],
  ['a missing digit', 'DE8937040044053201300'],
  ['a letter for a digit', 'DE8937040044053201300O'],
  ['a country outside SEPA', 'TR330006100519786457841326'],
  ['another character', 'DE89-3704-0044-0532-0130-00'],
  ['nothing', ''],
])('%s is not a valid account number', (_case, text) => {
  expect(parseIban(text)).toBeUndefined();
});
