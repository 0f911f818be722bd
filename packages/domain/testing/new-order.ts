import { randomBytes } from 'node:crypto';
import type { MerchantId } from '../src/merchant.ts';
import { type Order, openOrder } from '../src/order.ts';
import { createOrderToken } from '../src/order-token.ts';
import type { OrderInput } from '../src/parse-order.ts';
import { validOrderFields } from './order-fields.ts';

let ordersMade = 0;

/** Returns a new order with a token, a service order id and a creation time of its own. */
export function newOrder(merchantId: MerchantId, overrides?: OrderInput): Order {
  ordersMade += 1;
  return openOrder(validOrderFields(overrides), {
    merchantId,
    serviceOrderId: 1_000_000 + ordersMade,
    orderToken: createOrderToken(randomBytes),
    createdAtMs: 1_795_208_000_000 + ordersMade,
  });
}
