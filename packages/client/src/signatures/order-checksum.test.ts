import { formatAmount as formatHundredths, parseAmount } from '@order-gateway/domain/money';
import type { OrderFields } from '@order-gateway/domain/orders';
import { checksumOf } from '@order-gateway/domain/signing';
import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { NewOrder } from '../types.ts';
import { formatAmount, orderChecksum } from './order-checksum.ts';

/** All valid amounts, as hundredths. */
const hundredths = fc.bigInt({ min: 1n, max: 999_999_999_999_999n });

/** Text from all of Unicode in which the escaped characters are frequent. */
const text = fc.string({ unit: fc.oneof(fc.constantFrom('|', '\\'), fc.string({ unit: 'binary', maxLength: 1 })) });

/** Returns the checksum that the gateway computes. */
function gatewayChecksum(order: NewOrder, secret: string): string {
  const amount = parseAmount(String(order.order_amount));
  if (!amount.ok) throw new Error(amount.failure);
  const fields = { ...order, customer_address_line2: order.customer_address_line2 ?? '', order_amount: amount.value };
  return checksumOf(fields as unknown as OrderFields, secret);
}

test('orderChecksum returns the checksum that the gateway computes, for any texts and amount', async () => {
  const { order_amount, order_checksum, ...texts } = validOrderInput();
  const orders = fc.record({
    ...(Object.fromEntries(Object.keys(texts).map((name) => [name, text])) as Record<keyof typeof texts, typeof text>),
    customer_address_line2: fc.option(text),
    order_amount: hundredths.map((amount) => Number(formatHundredths(amount as never))),
  });
  const secrets = fc.string({ minLength: 1, unit: 'grapheme-ascii' });
  await fc.assert(
    fc.asyncProperty(orders, secrets, async (order, secret) => {
      expect(await orderChecksum(order as NewOrder, secret)).toBe(gatewayChecksum(order as NewOrder, secret));
    }),
  );
});

test('order_expires_at does not change the checksum', async () => {
  const { order_checksum, ...order } = validOrderInput({ service_type: 'DIGITAL' as const });
  const later = { ...order, order_expires_at: '2027-01-01T00:00:00Z' };
  expect(await orderChecksum(later, 'sk_x')).toBe(await orderChecksum(order, 'sk_x'));
});

test('formatAmount writes every amount exactly, whether it is a number or a text', () => {
  fc.assert(
    fc.property(hundredths, (amount) => {
      const digits = formatHundredths(amount as never);
      expect([formatAmount(digits), formatAmount(Number(digits))]).toEqual([digits, digits]);
    }),
  );
});

test.each([
  ['10.00', '10.00'],
  ['10.0', '10.00'],
  ['10', '10.00'],
  ['10.10000', '10.10'],
  [10, '10.00'],
  [1e1, '10.00'],
  [0.1, '0.10'],
  [1.005e2, '100.50'],
  [9_999_999_999_999.99, '9999999999999.99'],
])('formatAmount writes %o as %s', (amount, digits) => {
  expect(formatAmount(amount)).toBe(digits);
});

test.each([
  ...[0.1 + 0.2, 1.005, 10.001, -1, 1e21, 1e-7, Number.NaN, Number.POSITIVE_INFINITY],
  ...['10.001', '10.000000000000000001', '-1', '+1', '1e1', '010', '.5', '10.', '1,000.00', ' 10', '10\n', ''],
])('formatAmount rejects %o instead of rounding it', (amount) => {
  expect(() => formatAmount(amount)).toThrow(RangeError);
});
