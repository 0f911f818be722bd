/** The order that every program of the bench sends or inserts; only ids differ. `order_id` comes first, as merchants send it. */
export const order = {
  order_id: '',
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
};

/** The SQL type of each column of the gateway's table `orders`: what a service adds, then the fields of the order. */
export const columnTypes = {
  merchant_id: 'bigint',
  service_order_id: 'bigint',
  order_token: 'text',
  order_status: 'text',
  created_at: 'timestamptz',
  ...(Object.fromEntries(Object.keys(order).map((name) => [name, 'text'])) as Record<keyof typeof order, 'text'>),
  order_amount: 'numeric',
} as const;

const columns = Object.keys(columnTypes);

/** What differs between two rows. */
export interface RowIds {
  readonly merchantId: number;
  readonly serviceOrderId: number;
  readonly orderToken: string;
  readonly orderId: string;
}

/** The values of a row as text, in the order of {@link columnTypes}. */
export function rowOf({ merchantId, serviceOrderId, orderToken, orderId }: RowIds): string[] {
  const { order_id: _, ...rest } = order;
  const added = [merchantId, serviceOrderId, orderToken, 'UN_PAID', new Date().toISOString()];
  return [...added, orderId, ...Object.values(rest)].map(String);
}

/** The same values as SQL expressions, separated by commas. */
export function rowExpressions(ids: Readonly<Record<keyof RowIds, string>>): string {
  const { order_id: _, ...rest } = order;
  const literals = Object.values(rest).map((value) => `'${value}'`);
  return [ids.merchantId, ids.serviceOrderId, ids.orderToken, "'UN_PAID'", 'now()', ids.orderId, ...literals].join(
    ', ',
  );
}

/** The start of an insert statement; `source` is its `values` or `select`. */
export function insertFrom(source: string): string {
  return `insert into orders (${columns.join(', ')}) ${source}`;
}

/** The end of the gateway's insert statement. */
export const ifNew = 'on conflict (merchant_id, order_id) do nothing returning service_order_id';
