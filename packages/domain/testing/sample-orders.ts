import { randomBytes } from 'node:crypto';
import type { AccountId } from '../src/accounts/account.ts';
import { createOrderToken } from '../src/links/order-token.ts';
import type { Metadata } from '../src/orders/metadata.ts';
import { newOrder, type Order, type OrderFields } from '../src/orders/order.ts';
import { type OrderInput, parseOrder } from '../src/orders/parse-order.ts';

const plainOrder = {
  order_id: 'WEB-2026-000417',
  order_amount: 1249.5,
  order_currency: 'EUR',
  order_note: 'Two walnut shelves and one reading lamp',
  service_type: 'PHYSICAL_GOODS',
  customer_name: 'Noor van der Linden',
  customer_email: 'noor.vanderlinden@example.com',
  customer_phone: '+31 20 555 0142',
  customer_address_line1: 'Lindengracht 88',
  customer_address_line2: 'Second floor',
  customer_address_city: 'Amsterdam',
  customer_address_state: 'Noord-Holland',
  customer_address_country: 'Netherlands',
  customer_address_postal_code: '1015 KK',
  order_checksum: 'made-by-the-shop-7d1c',
  return_url: 'https://shop.example.com/checkout/return?cart=5521',
  customer_locale: '',
};

/** A different valid value for every field of {@link validOrderInput} except the checksum. */
export const anotherOrderInput = {
  order_id: 'WEB-2026-000418',
  order_amount: 1249.51,
  order_currency: 'USD',
  order_note: 'Two walnut shelves and one reading lamp.',
  service_type: 'DIGITAL',
  customer_name: 'noor van der Linden',
  customer_email: 'noor@example.com',
  customer_phone: '+31205550142',
  customer_address_line1: 'Lindengracht 88 ',
  customer_address_line2: '',
  customer_address_city: 'Utrecht',
  customer_address_state: 'Utrecht',
  customer_address_country: 'NL',
  customer_address_postal_code: '1015KK',
  return_url: 'https://shop.example.com/checkout/return?cart=5522',
  customer_locale: 'nl-BE',
};

type PlainOrder = typeof plainOrder;

/** Returns a valid order as a merchant sends it, with all fields. `overrides` replace some of them. */
export function validOrderInput<Overrides extends OrderInput = Record<never, never>>(
  overrides?: Overrides,
): Omit<PlainOrder, keyof Overrides> & Overrides {
  return { ...plainOrder, ...overrides } as Omit<PlainOrder, keyof Overrides> & Overrides;
}

/**
 * Returns the same order after `parseOrder`. Throws if the overrides make it invalid, which is a mistake in the test.
 */
export function validOrderFields(overrides?: OrderInput): OrderFields {
  const parsed = parseOrder(validOrderInput(overrides));
  if (parsed.ok) return parsed.value.fields;
  throw new Error(`not a valid order: ${parsed.failure.map(({ field, code }) => `${field} ${code}`).join(', ')}`);
}

let ordersMade = 0;

/** Returns a new order with a unique token and creation time. A store replaces its service order id. */
export function sampleOrder(merchantId: AccountId, overrides?: OrderInput, metadata: Metadata | null = null): Order {
  ordersMade += 1;
  const order = newOrder(validOrderFields(overrides), {
    merchantId,
    orderToken: createOrderToken(merchantId, randomBytes),
    createdAtMs: 1_795_208_000_000 + ordersMade,
    expiresAtMs: null,
    metadata,
  });
  return { ...order, serviceOrderId: 1_000_000 + ordersMade };
}
