import { randomBytes, randomInt } from 'node:crypto';
import { sql } from 'drizzle-orm';
import { bigint, numeric, pgTable, text, timestamp } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import postgres from 'postgres';
import { columnTypes, firstPeerId, type order } from '../order.ts';

// Code that fastify.ts and grpc-js.ts share. Both services use the gateway's table, and are written as a team would
// write them from the manuals of the libraries.

const columns = {
  bigint: () => bigint({ mode: 'number' }).notNull(),
  numeric: () => numeric({ precision: 15, scale: 2 }).notNull(),
  text: () => text().notNull(),
  timestamptz: () => timestamp({ precision: 3, withTimezone: true, mode: 'date' }).notNull(),
};
const entries = Object.entries(columnTypes).map(([name, type]) => [name, columns[type]()] as const);
const orders = pgTable('orders', Object.fromEntries(entries));

/** The 16 fields of a request. */
export type OrderFields = typeof order;

/** The six fields of a response. */
export type OrderResponse = Awaited<ReturnType<ReturnType<typeof createInsert>>>;

/**
 * Returns a function that inserts an order with a named prepared statement and returns the response. It uses ten
 * connections, the driver's default.
 */
export function createInsert() {
  const db = drizzle({ client: postgres(process.env.DATABASE_URL ?? '') });
  const placeholders = Object.fromEntries(entries.map(([name]) => [name, sql.placeholder(name)]));
  const insert = db
    .insert(orders)
    .values(placeholders as unknown as typeof orders.$inferInsert)
    .onConflictDoNothing()
    .returning({ id: sql`service_order_id` })
    .prepare('insert_order');
  return async (fields: OrderFields) => {
    const row = {
      ...fields,
      merchant_id: Number(process.env.MERCHANT_ID),
      // A random id is cheaper than a sequence.
      service_order_id: firstPeerId + randomInt(2 ** 47),
      order_token: randomBytes(24).toString('base64url'),
      order_status: 'UN_PAID',
      created_at: new Date(),
      order_amount: fields.order_amount.toFixed(2),
      customer_address_line2: fields.customer_address_line2 ?? '',
    };
    await insert.execute(row);
    return {
      service_order_id: row.service_order_id,
      created_at: row.created_at.toISOString().replace('Z', '+00:00'),
      order_id: row.order_id,
      order_status: row.order_status,
      order_token: row.order_token,
      payment_link: `http://localhost:8080/payment/${row.order_token}`,
    };
  };
}

/** Whether credentials are valid. They are compared in memory, so a peer spends no time on lookups. */
export function hasValidCredentials(clientId: unknown, clientSecret: unknown): boolean {
  return clientId === process.env.CLIENT_ID && clientSecret === process.env.CLIENT_SECRET;
}
