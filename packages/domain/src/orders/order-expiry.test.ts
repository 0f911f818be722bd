import { describe, expect, it } from 'vitest';
import { expiryOfNewOrder, expiryRangeError, parseExpiry } from './order-expiry.ts';

const nowMs = 1_795_208_502_172;

describe('parseExpiry', () => {
  it('reads a time, and returns undefined if none was sent', () => {
    expect(parseExpiry('2026-11-20T21:01:42.172Z')).toStrictEqual({ ok: true, value: nowMs });
    expect(parseExpiry(undefined)).toStrictEqual({ ok: true, value: undefined });
    expect(parseExpiry(null)).toStrictEqual({ ok: true, value: undefined });
  });

  it.each([
    [1_795_208_502, 'wrong_type'],
    [{}, 'wrong_type'],
    ['', 'bad_format'],
    ['tomorrow', 'bad_format'],
  ])('rejects %j as %s', (value, code) => {
    expect(parseExpiry(value)).toMatchObject({ ok: false, failure: { field: 'order_expires_at', code } });
  });
});

describe('expiryRangeError', () => {
  it('accepts 1 minute to 366 days ahead, to the millisecond', () => {
    const [minMs, maxMs] = [60_000, 366 * 86_400_000];
    for (const remainingMs of [minMs, maxMs]) expect(expiryRangeError(nowMs + remainingMs, nowMs)).toBeUndefined();
    for (const remainingMs of [minMs - 1, maxMs + 1, 0, -1]) {
      expect(expiryRangeError(nowMs + remainingMs, nowMs)).toMatchObject({
        field: 'order_expires_at',
        code: 'out_of_range',
        message: 'must be 1 minute to 366 days ahead',
      });
    }
  });
});

describe('expiryOfNewOrder', () => {
  it.each([
    ['the expiry that was sent', nowMs + 1, 3_600, nowMs + 1],
    ['the expiry that was sent, even if the merchant has no default lifetime', nowMs + 1, null, nowMs + 1],
    ["the end of the merchant's default lifetime", undefined, 3_600, nowMs + 3_600_000],
    ['null if there is neither', undefined, null, null],
  ])('returns %s', (_, sentMs, defaultLifetimeSeconds, expected) => {
    expect(expiryOfNewOrder(sentMs, { defaultLifetimeSeconds }, nowMs)).toBe(expected);
  });
});
