import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isoTime } from './iso-time.ts';

it('isoTime formats every time as ISO 8601, whichever was formatted before', () => {
  const moments = fc.array(fc.integer({ min: 1, max: Date.parse('9999-12-31T23:59:59.998Z') }), { minLength: 2 });
  fc.assert(
    fc.property(moments, (several) => {
      for (const ms of several.flatMap((ms) => [ms, ms + 1, ms, ms - 1]))
        expect(isoTime(ms)).toBe(new Date(ms).toISOString());
    }),
  );
  expect(isoTime(1_795_208_502_172)).toBe(isoTime(1_795_208_502_172));
});
