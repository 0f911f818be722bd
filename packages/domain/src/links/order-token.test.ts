import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createOrderToken, orderTokenLength, parseOrderToken } from './order-token.ts';

describe('createOrderToken', () => {
  it('returns 32 base62 characters', () => {
    expect(orderTokenLength).toBe(32);
    expect(createOrderToken(randomBytes)).toMatch(/^[0-9A-Za-z]{32}$/);
  });

  it('uses the given random source only', () => {
    expect(createOrderToken((count) => new Uint8Array(count).fill(10))).toBe('A'.repeat(32));
  });
});

describe('parseOrderToken', () => {
  it('accepts every created token', () => {
    const token = createOrderToken(randomBytes);
    expect(parseOrderToken(token)).toBe(token);
  });

  it.each(['', 'A'.repeat(31), 'A'.repeat(33), `${'A'.repeat(31)}-`, `${'A'.repeat(31)}é`, `${'A'.repeat(32)}\n`, ' '])(
    'rejects %j',
    (text) => {
      expect(parseOrderToken(text)).toBeUndefined();
    },
  );
});
