import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isoTime, parseTime } from './iso-time.ts';

const nowMs = 1_795_208_502_172;

it('isoTime formats every time as ISO 8601, regardless of which time was formatted before', () => {
  const anyTimes = fc.array(fc.integer({ min: 1, max: Date.parse('9999-12-31T23:59:59.998Z') }), { minLength: 2 });
  fc.assert(
    fc.property(anyTimes, (times) => {
      for (const ms of times.flatMap((ms) => [ms, ms + 1, ms, ms - 1]))
        expect(isoTime(ms)).toBe(new Date(ms).toISOString());
    }),
  );
  expect(isoTime(nowMs)).toBe(isoTime(nowMs));
});

describe('parseTime', () => {
  it.each([
    ['2026-11-20T21:01:42.172+00:00', nowMs],
    ['2026-11-20T21:01:42.172Z', nowMs],
    ['2026-11-20T22:01:42.172999999+01:00', nowMs],
    ['2026-11-20T15:31:42.172-05:30', nowMs],
    ['2026-11-20T21:01Z', 1_795_208_460_000],
    ['2026-11-20t21:01:42.172z', nowMs],
    ['1970-01-01T00:00:00Z', 0],
    ['0000-01-01T00:00:00Z', -62_167_219_200_000],
    ['9999-12-31T23:59:59-00:01', 253_402_300_859_000],
    ['9999-12-31T23:59:59.999Z', 253_402_300_799_999],
  ])('reads %s', (text, ms) => {
    expect(parseTime(text)).toBe(ms);
  });

  it.each([
    '',
    '2026-11-20',
    '2026-11-20T21:01:42',
    '2026-11-20T21:01:42+0000',
    '2026-11-20T21:01:42+00',
    '2026-11-20 21:01:42Z',
    '2026-02-30T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-11-20T24:00:00Z',
    '2026-11-20T21:61:00Z',
    '2026-11-20T21:01:42.Z',
    '2026-11-20T21:01:42.1234567890Z',
    '2026-11-20T21:01:42+25:00',
    '+012026-11-20T21:01:42Z',
    '2026-11-20T21:01:42Z[UTC]',
    ' 2026-11-20T21:01:42Z',
    '2026-11-20T21:01:42Z\n',
    '1795208502172',
  ])('rejects %j', (text) => {
    expect(parseTime(text)).toBeUndefined();
  });
});
