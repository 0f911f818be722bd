import { checksumModes } from '@gateway/domain/merchant';
import { amountDecimals, amountHundredthsMax } from '@gateway/domain/money';
import { orderStatuses } from '@gateway/domain/order';
import { serviceTypes } from '@gateway/domain/order-fields';
import { gt, isNull, or, sql } from 'drizzle-orm';
import {
  bigint,
  check,
  customType,
  index,
  numeric,
  pgSequence,
  pgTable,
  primaryKey,
  text,
  timestamp,
  unique,
} from 'drizzle-orm/pg-core';

// Every unique key of a table that grows with the orders begins with merchant_id, and the only foreign key points at the
// merchants, so that the tables can be sharded by merchant_id unchanged.

const bytea = customType<{ data: Uint8Array; driverData: Uint8Array }>({ dataType: () => 'bytea' });

/** Of the largest amount, whose last {@link amountDecimals} are decimals. */
const amountDigits = amountHundredthsMax.toString().length;

const moment = (name: string) => timestamp(name, { precision: 3, withTimezone: true, mode: 'date' });

/** Merchants, each with one client id. */
export const merchants = pgTable('merchants', {
  id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  name: text('name').notNull(),
  clientId: text('client_id').notNull().unique(),
  checksumMode: text('checksum_mode', { enum: checksumModes }).notNull().default('versioned'),
  createdAt: moment('created_at').notNull().defaultNow(),
});

/** What is kept of the client secrets: their SHA-256. A secret works until `ends_at`; revoking sets that to now. */
export const clientSecrets = pgTable(
  'client_secrets',
  {
    id: bigint('id', { mode: 'number' }).generatedAlwaysAsIdentity(),
    merchantId: bigint('merchant_id', { mode: 'number' })
      .notNull()
      .references(() => merchants.id),
    secretHash: bytea('secret_hash').notNull(),
    createdAt: moment('created_at').notNull().defaultNow(),
    endsAt: moment('ends_at'),
  },
  (table) => [primaryKey({ columns: [table.merchantId, table.id] })],
);

/** Whether a secret works now, by the clock of the database. */
export const isLiveSecret = or(isNull(clientSecrets.endsAt), gt(clientSecrets.endsAt, sql`now()`));

/** Orders, one row each. The gateway inserts them and changes none. */
export const orders = pgTable(
  'orders',
  {
    merchantId: bigint('merchant_id', { mode: 'number' })
      .notNull()
      .references(() => merchants.id),
    serviceOrderId: bigint('service_order_id', { mode: 'number' }).notNull(),
    orderToken: text('order_token').notNull(),
    orderStatus: text('order_status', { enum: orderStatuses }).notNull(),
    createdAt: moment('created_at').notNull(),
    orderId: text('order_id').notNull(),
    orderAmount: numeric('order_amount', { precision: amountDigits, scale: amountDecimals }).notNull(),
    orderCurrency: text('order_currency').notNull(),
    orderNote: text('order_note').notNull(),
    serviceType: text('service_type', { enum: serviceTypes }).notNull(),
    customerName: text('customer_name').notNull(),
    customerEmail: text('customer_email').notNull(),
    customerPhone: text('customer_phone').notNull(),
    customerAddressLine1: text('customer_address_line1').notNull(),
    customerAddressLine2: text('customer_address_line2').notNull(),
    customerAddressCity: text('customer_address_city').notNull(),
    customerAddressState: text('customer_address_state').notNull(),
    customerAddressCountry: text('customer_address_country').notNull(),
    customerAddressPostalCode: text('customer_address_postal_code').notNull(),
    orderChecksum: text('order_checksum').notNull(),
    returnUrl: text('return_url').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.orderId] }),
    unique('orders_merchant_id_service_order_id').on(table.merchantId, table.serviceOrderId),
    index('orders_order_token').on(table.orderToken),
    check('orders_amount_positive', sql`${table.orderAmount} > 0`),
  ],
);

/** Numbers the blocks of service order ids; one `nextval` reserves one block. */
export const serviceOrderIdBlocks = pgSequence('service_order_id_blocks', { startWith: 1 });
