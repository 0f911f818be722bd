import type { AmountHundredths } from '@order-gateway/domain/money';
import { expect, test } from 'vitest';
import { withRefundId } from './provider.ts';

const attempt = { orderId: 'order-1', serviceOrderId: 17 };

test.each<[metadata: unknown, refundId: string | undefined]>([
  [{ order_id: 'order-1', refund_id: 'r-1', attempt_id: 'a' }, 'r-1'],
  [{ service_order_id: '17', refund_id: 'r-1' }, 'r-1'],
  [{ order_id: 'order-2', refund_id: 'r-1' }, undefined],
  [{ refund_id: 'r-1' }, undefined],
  [{ order_id: 'order-1' }, undefined],
  [{ order_id: 'order-1', refund_id: '' }, undefined],
  [{ order_id: 'order-1', refund_id: 'x'.repeat(129) }, undefined],
  [{ service_order_id: '17', refund_id: 1 }, undefined],
  ['{"order_id":"order-1","refund_id":"r-1"}', undefined],
  [null, undefined],
  [undefined, undefined],
])('the metadata %j of a provider’s refund name the merchant’s refund %s', (metadata, refundId) => {
  const refund = { providerRefundId: 're-1', status: 'PENDING', amount: 1n as AmountHundredths } as const;
  expect(withRefundId({ ...refund, metadata }, attempt)).toEqual({ ...refund, refundId });
});
