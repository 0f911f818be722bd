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

/** Digits of the largest amount, of which the last {@link amountDecimals} are decimals. */
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

/** The SHA-256 of each client secret. A secret works until `ends_at`; revoking sets that to now. */
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

/** Orders, one row each, named as in the domain. The gateway inserts them and never changes one. */
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
    order_id: text().notNull(),
    order_amount: numeric({ precision: amountDigits, scale: amountDecimals }).notNull(),
    order_currency: text().notNull(),
    order_note: text().notNull(),
    service_type: text({ enum: serviceTypes }).notNull(),
    customer_name: text().notNull(),
    customer_email: text().notNull(),
    customer_phone: text().notNull(),
    customer_address_line1: text().notNull(),
    customer_address_line2: text().notNull(),
    customer_address_city: text().notNull(),
    customer_address_state: text().notNull(),
    customer_address_country: text().notNull(),
    customer_address_postal_code: text().notNull(),
    order_checksum: text().notNull(),
    return_url: text().notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.merchantId, table.order_id] }),
    unique('orders_merchant_id_service_order_id').on(table.merchantId, table.serviceOrderId),
    index('orders_order_token').on(table.orderToken),
    check('orders_amount_positive', sql`${table.order_amount} > 0`),
  ],
);

/** Numbers the blocks of service order ids; one `nextval` reserves one block. */
export const serviceOrderIdBlocks = pgSequence('service_order_id_blocks', { startWith: 1 });
