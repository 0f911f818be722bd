import { expect, test } from 'vitest';
import { fieldRules } from '../orders/order-field-rules.ts';
import { characterAt, invisible, invisibleRanges, isBlank } from './characters.ts';

const characters = Array.from({ length: 0x10000 }, (_, code) => code)
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code));

test('the ranges cover exactly the invisible characters below U+10000, with or without the flag u', () => {
  for (const flags of ['', 'u']) {
    const inRanges = new RegExp(`^[${invisibleRanges}]$`, flags);
    const mismatches = characters.filter((character) => inRanges.test(character) !== invisible.test(character));
    expect(mismatches.map((character) => characterAt(character, 0))).toEqual([]);
  }
});

test.each([
  '',
  ' ',
  '\u200b',
  '\u200d',
  '\u3164',
  '\u2800',
  '\u00ad',
  '\u2060',
  '\u200e',
  '\ufeff',
  '\ufe0f',
  '\u{e0041}',
  '\u{1d159}',
  '\n\u0085',
])('%j is blank', (text) => {
  expect(isBlank(text)).toBe(true);
});

test.each(['a', '.', '\u0301', '\u200da', 'ا\u200c', '\u{1f468}', '\u0600', '\ue000', '\u2801'])(
  '%j is not blank',
  (text) => {
    expect(isBlank(text)).toBe(false);
  },
);

test('the published patterns match every character below U+10000 that the rules allow, except white space', () => {
  for (const { characters: rule } of [fieldRules.customer_phone, fieldRules.customer_email]) {
    if (rule === undefined) throw new Error('the field has no rule for its characters');
    const { pattern, firstForbidden } = rule;
    for (const flags of ['', 'u']) {
      const published = new RegExp(pattern.source, flags);
      const forbidden = characters.filter((character) => firstForbidden(character) < 0 && !published.test(character));
      // A pattern may reject white space, because the format of an address does not allow it.
      expect(forbidden.filter((character) => !/\s/.test(character))).toEqual([]);
    }
  }
});

test('a position counts code points, starting at 1', () => {
  expect(characterAt('😀é\u200b', 3)).toBe('U+200B at position 3');
  expect(characterAt('\u{e0020}', 0)).toBe('U+E0020 at position 1');
});
