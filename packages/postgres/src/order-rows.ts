import type { MerchantId } from '@gateway/domain/merchant';
import { formatAmount, parseAmount } from '@gateway/domain/money';
import type { Order } from '@gateway/domain/order';
import type { OrderToken } from '@gateway/domain/order-token';
import { getTableColumns, type Placeholder, type SQL, sql } from 'drizzle-orm';
import { arrayLiteral } from './client.ts';
import { orders } from './schema.ts';

/** A row of the orders table. */
export type OrderRow = typeof orders.$inferSelect;

const columns = Object.entries(getTableColumns(orders)) as [keyof OrderRow, (typeof orders)[keyof OrderRow]][];

/** A placeholder for the value of every column, filled by a row. */
export const rowPlaceholders = Object.fromEntries(columns.map(([key]) => [key, sql.placeholder(key)])) as Readonly<
  Record<keyof OrderRow, Placeholder>
>;

/** A placeholder for an array of the values of every column, in the table's order, filled by {@link columnArrays}. */
export const arrayPlaceholders: SQL[] = columns.map(
  ([key, column]) => sql`${sql.placeholder(key)}::${sql.raw(column.getSQLType())}[]`,
);

/** The rows, as one array literal for every column. */
export function columnArrays(rows: readonly OrderRow[]): Record<string, string> {
  return Object.fromEntries(
    columns.map(([key, column]) => [key, arrayLiteral(rows, (row) => column.mapToDriverValue(row[key]) as string)]),
  );
}

/** The row that stores an order. */
export function rowOf({ createdAtMs, fields, ...order }: Order): OrderRow {
  return {
    ...order,
    createdAt: new Date(createdAtMs),
    ...fields,
    order_amount: formatAmount(fields.order_amount),
  };
}

/** The order that a row stores. Throws if its amount is not valid. */
export function orderOf(row: OrderRow): Order {
  const { merchantId, serviceOrderId, orderToken, orderStatus, createdAt, ...fields } = row;
  const amount = parseAmount(fields.order_amount);
  if (!amount.ok) throw new RangeError(`the amount of stored order ${serviceOrderId} is ${amount.failure}`);
  return {
    merchantId: merchantId as MerchantId,
    serviceOrderId,
    orderToken: orderToken as OrderToken,
    orderStatus,
    createdAtMs: createdAt.getTime(),
    fields: { ...fields, order_amount: amount.value },
  };
}
