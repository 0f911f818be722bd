import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { AccountId } from '../accounts/account.ts';
import { createOrderToken, merchantIdOf, orderTokenLength, parseOrderToken } from './order-token.ts';

const merchantId = 417 as AccountId;

describe('createOrderToken', () => {
  it('returns 32 base62 characters', () => {
    expect(orderTokenLength).toBe(32);
    expect(createOrderToken(merchantId, randomBytes)).toMatch(/^[0-9A-Za-z]{32}$/);
  });

  it('uses only the given random source', () => {
    const token = createOrderToken(merchantId, (count) => new Uint8Array(count).fill(10));
    // 417 is 6 * 62 + 45, and A is 10.
    expect(token).toBe(`${'A'.repeat(26)}tGAAAA`);
  });
});

describe('merchantIdOf', () => {
  it.each([1, 61, 62, 417, 62 ** 6 - 1])('returns the merchant %i of a token', (id) => {
    expect(merchantIdOf(createOrderToken(id as AccountId, randomBytes))).toBe(id);
  });

  it('does not make tokens of one merchant recognizable: every last character is equally likely', () => {
    const counts = new Map<string, number>();
    for (let made = 0; made < 62_000; made += 1) {
      const last = createOrderToken(merchantId, randomBytes).slice(-1);
      counts.set(last, (counts.get(last) ?? 0) + 1);
    }
    expect(counts.size).toBe(62);
    // The tolerance is eight standard deviations.
    for (const count of counts.values()) expect(Math.abs(count - 1_000)).toBeLessThan(8 * Math.sqrt(1_000));
  });
});

describe('parseOrderToken', () => {
  it('accepts every created token', () => {
    const token = createOrderToken(merchantId, randomBytes);
    expect(parseOrderToken(token)).toBe(token);
  });

  it.each(['', 'A'.repeat(31), 'A'.repeat(33), `${'A'.repeat(31)}-`, `${'A'.repeat(31)}é`, `${'A'.repeat(32)}\n`, ' '])(
    'rejects %j',
    (text) => {
      expect(parseOrderToken(text)).toBeUndefined();
    },
  );
});
