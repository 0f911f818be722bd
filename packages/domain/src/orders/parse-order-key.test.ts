import { expect, it } from 'vitest';
import { parseOrderKey, parseOrderLookupKey } from './parse-order-key.ts';

it.each([
  [{ order_id: 'a' }, { by: 'order_id', orderId: 'a' }],
  [{ order_id: '' }, { by: 'order_id', orderId: '' }],
  [
    { order_id: 'a', service_order_id: null },
    { by: 'order_id', orderId: 'a' },
  ],
  [{ service_order_id: 7n }, { by: 'service_order_id', serviceOrderId: 7n }],
  [{ service_order_id: 7 }, { by: 'service_order_id', serviceOrderId: 7n }],
  [
    { service_order_id: '7', order_id: null },
    { by: 'service_order_id', serviceOrderId: 7n },
  ],
  [{ service_order_id: -1 }, { by: 'service_order_id', serviceOrderId: -1n }],
])('parseOrderKey reads %o', (input, key) => {
  expect(parseOrderKey(input)).toStrictEqual({ ok: true, value: key });
});

it.each([
  [{}, 'order_id', 'missing'],
  [{ order_id: null }, 'order_id', 'missing'],
  [{ order_id: 5 }, 'order_id', 'wrong_type'],
  [{ order_id: {} }, 'order_id', 'wrong_type'],
  [{ service_order_id: 'a' }, 'service_order_id', 'wrong_type'],
  [{ service_order_id: 1.5 }, 'service_order_id', 'wrong_type'],
  [{ service_order_id: true }, 'service_order_id', 'wrong_type'],
  [{ service_order_id: '1'.repeat(21) }, 'service_order_id', 'wrong_type'],
  [{ order_id: 'a', service_order_id: 1 }, 'service_order_id', 'not_allowed'],
])('parseOrderKey rejects %o', (input, field, code) => {
  expect(parseOrderKey(input)).toMatchObject({ failure: { errors: [{ field, code }] } });
});

it.each([
  [{ payment_id: 'p' }, { by: 'payment_id', paymentId: 'p' }],
  [{ payment_id: '' }, { by: 'payment_id', paymentId: '' }],
  [
    { payment_id: 'p', order_id: null, service_order_id: undefined },
    { by: 'payment_id', paymentId: 'p' },
  ],
  [
    { payment_id: null, order_id: 'a' },
    { by: 'order_id', orderId: 'a' },
  ],
  [{ service_order_id: '7' }, { by: 'service_order_id', serviceOrderId: 7n }],
])('parseOrderLookupKey reads %o', (input, key) => {
  expect(parseOrderLookupKey(input)).toStrictEqual({ ok: true, value: key });
});

it.each([
  [{}, 'order_id', 'missing', 'or service_order_id or payment_id is required'],
  [{ order_id: 5 }, 'order_id', 'wrong_type', 'must be a string'],
  [{ payment_id: ['p', 'q'] }, 'payment_id', 'wrong_type', 'must be a string'],
  [{ payment_id: 'p', order_id: 'a' }, 'payment_id', 'not_allowed', 'must not be sent together with'],
  [{ payment_id: 'p', service_order_id: 7 }, 'payment_id', 'not_allowed', 'must not be sent together with'],
])('parseOrderLookupKey rejects %o', (input, field, code, message) => {
  const error = { field, code, message: expect.stringContaining(message) };
  expect(parseOrderLookupKey(input)).toMatchObject({ failure: { errors: [error] } });
});
