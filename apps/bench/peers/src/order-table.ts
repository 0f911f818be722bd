import { bigint, numeric, pgTable, primaryKey, text, timestamp } from 'drizzle-orm/pg-core';

/** The gateway's own table, as a team that writes its service by the manual would say it. */
export const orders = pgTable(
  'orders',
  {
    merchantId: bigint('merchant_id', { mode: 'number' }).notNull(),
    serviceOrderId: bigint('service_order_id', { mode: 'number' }).notNull(),
    orderToken: text('order_token').notNull(),
    orderStatus: text('order_status').notNull(),
    createdAt: timestamp('created_at', { precision: 3, withTimezone: true, mode: 'date' }).notNull(),
    order_id: text('order_id').notNull(),
    order_amount: numeric('order_amount', { precision: 15, scale: 2 }).notNull(),
    order_currency: text('order_currency').notNull(),
    order_note: text('order_note').notNull(),
    service_type: text('service_type').notNull(),
    customer_name: text('customer_name').notNull(),
    customer_email: text('customer_email').notNull(),
    customer_phone: text('customer_phone').notNull(),
    customer_address_line1: text('customer_address_line1').notNull(),
    customer_address_line2: text('customer_address_line2').notNull(),
    customer_address_city: text('customer_address_city').notNull(),
    customer_address_state: text('customer_address_state').notNull(),
    customer_address_country: text('customer_address_country').notNull(),
    customer_address_postal_code: text('customer_address_postal_code').notNull(),
    order_checksum: text('order_checksum').notNull(),
    return_url: text('return_url').notNull(),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.order_id] })],
);
