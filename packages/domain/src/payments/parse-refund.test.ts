import { expect, test } from 'vitest';
import type { AccountId } from '../accounts/account.ts';
import { createOrderToken } from '../links/order-token.ts';
import { parseReportedRefund } from './parse-refund.ts';

const order_token = createOrderToken(1 as AccountId, (count) => new Uint8Array(count));
const report = { order_token, payment_id: 'p-1', amount: 10 };

test.each([
  [{ status: 'FAILED', refund_id: 'r-1' }, 'valid'],
  [{ status: 'SUCCEEDED', provider_refund_id: 're_1' }, 'valid'],
  [{ status: 'SUCCEEDED', refund_id: 'r-1' }, 'provider_refund_id missing'],
  [{ status: 'PENDING', refund_id: 'r-1', provider_refund_id: '' }, 'provider_refund_id missing'],
  [{ status: 'FAILED' }, 'provider_refund_id missing'],
])('a reported refund has the provider’s id, unless the merchant’s refund failed: %j is %s', (ids, expected) => {
  const parsed = parseReportedRefund(2 as AccountId, { ...report, ...ids });
  expect(parsed.ok ? 'valid' : parsed.failure.errors.map(({ field, code }) => `${field} ${code}`).join()).toBe(
    expected,
  );
});
