import { expect, test } from 'vitest';
import { readPreferences } from './preferences.ts';

test.each([
  ['handling=strict', { handling: 'strict' }],
  ['Handling = Strict', { handling: 'Strict' }],
  ['respond-async, handling="strict"', { 'respond-async': '', handling: 'strict' }],
  ['wait=5, handling=strict; x="a,b"; y, return=minimal', { wait: '5', handling: 'strict', return: 'minimal' }],
  ['handling=lenient, handling=strict', { handling: 'lenient' }],
  ['wait=1,wait=2', { wait: '1' }],
  ['a="handling=strict"', { a: 'handling=strict' }],
  ['a="\\"", handling=strict', { a: '"', handling: 'strict' }],
  ['a; handling=strict', { a: '' }],
  ['x handling=strict', {}],
  ['', {}],
  [', ,', {}],
  ['handling="strict', {}],
])('reads %s', (prefer, expected) => {
  expect(Object.fromEntries(readPreferences(prefer))).toEqual(expected);
});

test.each([';', '\\', '"', '="', ';"', ' ', 'a', ',', 'a=', '; ', '\\"'])(
  'does not hang on 16,384 repetitions of %s',
  (part) => {
    const long = part.repeat(16_384);

    for (const prefer of [long, `a${long}`, `a=${long}\0`, `a;${long}\0`, `a="${long}`])
      expect(readPreferences(prefer).size).toBeLessThan(2);
  },
);
