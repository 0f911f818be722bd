import { validOrderInput } from '@order-gateway/domain/testing/sample-orders';

/**
 * The order that every program of the bench sends or inserts. Only its ids differ. `order_id` is the first member:
 * `rowOf` and `rowExpressions` rely on that.
 */
export const order = validOrderInput({ order_id: '' });

/** The SQL types of the columns that an insert fills: those that a service adds, and then the fields of the order. */
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

export interface RowIds {
  readonly merchantId: number;
  readonly serviceOrderId: number;
  readonly orderToken: string;
  readonly orderId: string;
}

const [, ...otherValues] = Object.values(order).map(String);

/**
 * The first service_order_id for rows that programs other than the gateway insert. It is negative, because the gateway
 * continues after the highest id that it finds.
 */
export const firstPeerId = -(2 ** 52);

/** Returns the values of a row as text, in the order of {@link columnTypes}. */
export function rowOf({ merchantId, serviceOrderId, orderToken, orderId }: RowIds): string[] {
  const added = [merchantId, serviceOrderId, orderToken, 'UN_PAID', new Date().toISOString()].map(String);
  return [...added, orderId, ...otherValues];
}

/** Returns the row's values as comma-separated SQL expressions. */
export function rowExpressions(ids: Readonly<Record<keyof RowIds, string>>): string {
  const added = [ids.merchantId, ids.serviceOrderId, ids.orderToken, "'UN_PAID'", 'now()', ids.orderId];
  return [...added, ...otherValues.map((value) => `'${value}'`)].join(', ');
}

/** Returns the start of an insert statement. `source` is a `values` or `select` clause. */
export function insertFrom(source: string): string {
  return `insert into orders (${columns.join(', ')}) ${source}`;
}

/** The end of the gateway's insert statement, which inserts only new orders and returns their ids. */
export const onConflictDoNothing = 'on conflict (merchant_id, order_id) do nothing returning service_order_id';
