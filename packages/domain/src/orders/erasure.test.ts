import { expect, test } from 'vitest';
import { validOrderFields } from '../../testing/sample-orders.ts';
import type { AccountId } from '../accounts/account.ts';
import { erasureDigest } from './erasure.ts';

// The digests of erased orders are stored for years, and later versions must be able to compute them.
test('the digest of an erased order never changes', () => {
  const digest = erasureDigest(new Uint8Array(32).fill(7), 5 as AccountId, validOrderFields());
  expect(Buffer.from(digest).toString('hex')).toBe('060b431b1e028e02c9edec3c40019590cdf0241c77373847afdf8b606f36bff0');
});
