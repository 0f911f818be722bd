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
export function rowOf({ fields, ...order }: Order): OrderRow {
  return {
    merchantId: order.merchantId,
    serviceOrderId: order.serviceOrderId,
    orderToken: order.orderToken,
    orderStatus: order.orderStatus,
    createdAt: new Date(order.createdAtMs),
    orderId: fields.order_id,
    orderAmount: formatAmount(fields.order_amount),
    orderCurrency: fields.order_currency,
    orderNote: fields.order_note,
    serviceType: fields.service_type,
    customerName: fields.customer_name,
    customerEmail: fields.customer_email,
    customerPhone: fields.customer_phone,
    customerAddressLine1: fields.customer_address_line1,
    customerAddressLine2: fields.customer_address_line2,
    customerAddressCity: fields.customer_address_city,
    customerAddressState: fields.customer_address_state,
    customerAddressCountry: fields.customer_address_country,
    customerAddressPostalCode: fields.customer_address_postal_code,
    orderChecksum: fields.order_checksum,
    returnUrl: fields.return_url,
  };
}

/** The order that a row stores. Throws if its amount is not valid. */
export function orderOf(row: OrderRow): Order {
  const amount = parseAmount(row.orderAmount);
  if (!amount.ok) throw new RangeError(`the amount of stored order ${row.serviceOrderId} is ${amount.failure}`);
  return {
    merchantId: row.merchantId as MerchantId,
    serviceOrderId: row.serviceOrderId,
    orderToken: row.orderToken as OrderToken,
    orderStatus: row.orderStatus,
    createdAtMs: row.createdAt.getTime(),
    fields: {
      order_id: row.orderId,
      order_amount: amount.value,
      order_currency: row.orderCurrency,
      order_note: row.orderNote,
      service_type: row.serviceType,
      customer_name: row.customerName,
      customer_email: row.customerEmail,
      customer_phone: row.customerPhone,
      customer_address_line1: row.customerAddressLine1,
      customer_address_line2: row.customerAddressLine2,
      customer_address_city: row.customerAddressCity,
      customer_address_state: row.customerAddressState,
      customer_address_country: row.customerAddressCountry,
      customer_address_postal_code: row.customerAddressPostalCode,
      order_checksum: row.orderChecksum,
      return_url: row.returnUrl,
    },
  };
}
