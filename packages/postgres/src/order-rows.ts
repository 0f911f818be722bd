import { isoTime } from '@gateway/domain/iso-time';
import type { MerchantId } from '@gateway/domain/merchant';
import { formatAmount, parseAmount } from '@gateway/domain/money';
import type { Order } from '@gateway/domain/order';
import type { OrderToken } from '@gateway/domain/order-token';
import { arrayLiteral } from './array-literal.ts';
import type { orders } from './schema.ts';

type OrderRow = typeof orders.$inferSelect;

/** The SQL type and the value of every column, in the table's order: what the inserts send. */
export const orderColumns: Readonly<
  Record<keyof OrderRow, { readonly type: string; readonly value: (order: Order) => string | number }>
> = {
  merchantId: { type: 'bigint', value: (order) => order.merchantId },
  serviceOrderId: { type: 'bigint', value: (order) => order.serviceOrderId },
  orderToken: { type: 'text', value: (order) => order.orderToken },
  orderStatus: { type: 'text', value: (order) => order.orderStatus },
  createdAt: { type: 'timestamptz', value: (order) => isoTime(order.createdAtMs) },
  orderId: { type: 'text', value: ({ fields }) => fields.order_id },
  orderAmount: { type: 'numeric', value: ({ fields }) => formatAmount(fields.order_amount) },
  orderCurrency: { type: 'text', value: ({ fields }) => fields.order_currency },
  orderNote: { type: 'text', value: ({ fields }) => fields.order_note },
  serviceType: { type: 'text', value: ({ fields }) => fields.service_type },
  customerName: { type: 'text', value: ({ fields }) => fields.customer_name },
  customerEmail: { type: 'text', value: ({ fields }) => fields.customer_email },
  customerPhone: { type: 'text', value: ({ fields }) => fields.customer_phone },
  customerAddressLine1: { type: 'text', value: ({ fields }) => fields.customer_address_line1 },
  customerAddressLine2: { type: 'text', value: ({ fields }) => fields.customer_address_line2 },
  customerAddressCity: { type: 'text', value: ({ fields }) => fields.customer_address_city },
  customerAddressState: { type: 'text', value: ({ fields }) => fields.customer_address_state },
  customerAddressCountry: { type: 'text', value: ({ fields }) => fields.customer_address_country },
  customerAddressPostalCode: { type: 'text', value: ({ fields }) => fields.customer_address_postal_code },
  orderChecksum: { type: 'text', value: ({ fields }) => fields.order_checksum },
  returnUrl: { type: 'text', value: ({ fields }) => fields.return_url },
};

const columns = Object.values(orderColumns);

/** One value a column, in the columns' order. */
export function columnValues(order: Order): (string | number)[] {
  return columns.map(({ value }) => value(order));
}

/** One array literal a column, in the columns' order. */
export function columnArrays(orders: readonly Order[]): string[] {
  return columns.map(({ value }) => arrayLiteral(orders, value));
}

/** The order that a row keeps. A stored amount that is none is a broken row, and thrown. */
export function orderOf(row: OrderRow): Order {
  const amount = parseAmount(row.orderAmount);
  if (!amount.ok) throw new RangeError(`stored order ${row.serviceOrderId} has an amount that is ${amount.failure}`);
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
