import { expect, test } from 'vitest';
import type { AccountId } from '../accounts/account.ts';
import { createOrderToken } from '../links/order-token.ts';
import { parseRefund, parseReportedRefund } from './parse-refund.ts';

const order_token = createOrderToken(1 as AccountId, (count) => new Uint8Array(count));
const report = { order_token, payment_id: 'p-1', amount: 10 };

test.each([
  [{ status: 'FAILED', refund_id: 'r-1' }, 'valid'],
  [{ status: 'SUCCEEDED', provider_refund_id: 're_1' }, 'valid'],
  [{ status: 'SUCCEEDED', refund_id: 'r-1' }, 'provider_refund_id missing'],
  [{ status: 'PENDING', refund_id: 'r-1', provider_refund_id: '' }, 'provider_refund_id missing'],
  [{ status: 'FAILED' }, 'provider_refund_id missing'],
  [{ status: 'PENDING', provider_refund_id: ' ' }, 'provider_refund_id blank'],
  [{ status: 'FAILED', refund_id: ' ' }, 'refund_id blank'],
  [{ status: 'REFUND_STATUS_UNSPECIFIED', provider_refund_id: 're_1' }, 'status missing'],
  [{ status: 'DONE', provider_refund_id: 're_1' }, 'status not_allowed'],
])('a reported refund has the provider’s id, unless the merchant’s refund failed: %j is %s', (ids, expected) => {
  const parsed = parseReportedRefund(2 as AccountId, { ...report, ...ids });
  expect(parsed.ok ? 'valid' : parsed.failure.errors.map(({ field, code }) => `${field} ${code}`).join()).toBe(
    expected,
  );
});

test.each([
  [{ refund_id: 'r-1' }, { refundId: 'r-1', providerRefundId: null }],
  [{ provider_refund_id: 're_1' }, { refundId: null, providerRefundId: 're_1' }],
])('a reported refund keeps the ids of %j', (ids, expected) => {
  const parsed = parseReportedRefund(2 as AccountId, { ...report, status: 'FAILED', ...ids });
  expect(parsed).toMatchObject({ ok: true, value: expected });
});

test.each([
  [{}, { amount: undefined, note: undefined }],
  [
    { refund_amount: null, refund_note: '' },
    { amount: undefined, note: undefined },
  ],
  [
    { refund_amount: 4, refund_note: 'Torn\nat the seam' },
    { amount: 400n, note: 'Torn\nat the seam' },
  ],
])('a requested refund with %j is valid', (members, expected) => {
  expect(parseRefund({ refund_id: 'r-1', ...members })).toEqual({ ok: true, value: { refundId: 'r-1', ...expected } });
});
