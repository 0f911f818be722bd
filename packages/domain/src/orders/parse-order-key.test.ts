import { expect, it } from 'vitest';
import { parseOrderKey } from './parse-order-key.ts';

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
  [{ order_id: 'a', service_order_id: 1 }, 'service_order_id', 'not_allowed'],
])('parseOrderKey rejects %o', (input, field, code) => {
  expect(parseOrderKey(input)).toMatchObject({ failure: { errors: [{ field, code }] } });
});
