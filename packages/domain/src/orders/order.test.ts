import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { validOrderFields } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import { createOrderToken } from '../links/order-token.ts';
import { formatTime, newOrder } from './order.ts';

const lastTimeMs = Date.parse('9999-12-31T23:59:59.999Z');

describe('newOrder', () => {
  it.each([null, 1_795_294_902_172])(
    'returns an unpaid order with the fields and the assigned values, expiry %s',
    (expiresAtMs) => {
      const fields = validOrderFields();
      const assigned = {
        merchantId: 7 as AccountId,
        serviceOrderId: 42,
        orderToken: createOrderToken(7 as AccountId, randomBytes),
        createdAtMs: 1_795_208_502_172,
        expiresAtMs,
        metadata: { cart: '17' },
      };

      expect(newOrder(fields, assigned)).toStrictEqual({
        ...assigned,
        fields,
        orderStatus: 'UN_PAID',
        lease: null,
        endedAttempts: [],
        payment: null,
        refusedPayments: [],
        reversals: { version: 0, refunds: [], disputes: [] },
        cancelledAtMs: null,
        erasedDigest: null,
      });
    },
  );
});

describe('formatTime', () => {
  it.each([
    [0, '1970-01-01T00:00:00.000+00:00'],
    [1, '1970-01-01T00:00:00.001+00:00'],
    [951_782_400_000, '2000-02-29T00:00:00.000+00:00'],
    [1_795_208_502_172, '2026-11-20T21:01:42.172+00:00'],
    [1_795_208_502_000, '2026-11-20T21:01:42.000+00:00'],
    [lastTimeMs, '9999-12-31T23:59:59.999+00:00'],
  ])('formats %i as %s', (ms, text) => {
    expect(formatTime(ms)).toBe(text);
  });

  it('formats every time of the years 1970 to 9999 with milliseconds and the UTC offset', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: lastTimeMs }), (ms) => {
        const text = formatTime(ms);
        expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
        expect(Date.parse(text)).toBe(ms);
      }),
    );
  });
});
