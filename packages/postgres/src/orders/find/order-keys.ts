import type { AccountId } from '@order-gateway/domain/accounts';
import { type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { MerchantServer } from '../../connections/client.ts';
import { orders } from '../../schema.ts';
import { orderColumns } from '../order-rows.ts';

/**
 * The two statements that find orders by a column that identifies one of a merchant's orders: `single` for one value,
 * and `batch` for an array. For one value, `single` costs the server half as much, and on Citus it involves only one
 * server.
 */
export function prepareFindBy(
  db: PostgresJsDatabase,
  key: 'order_id' | 'serviceOrderId' | 'orderToken',
  server: MerchantServer | undefined,
) {
  const column: AnyPgColumn = orders[key];
  const merchantId = sql.placeholder('merchantId');
  const pairs = sql`unnest(${sql.placeholder('merchantIds')}::bigint[], ${sql.placeholder('values')}::${sql.raw(column.getSQLType())}[])`;
  // Citus can't determine the server from pairs of a merchant and a value.
  const isOfMerchant = server ? sql`${orders.merchantId} = ${merchantId}::bigint` : sql`true`;
  return {
    single: prepareFind(
      db,
      `find_one_by_${column.name}`,
      sql`${orders.merchantId} = ${merchantId} and ${column} = ${sql.placeholder('value')}`,
    ),
    batch: prepareFind(
      db,
      `find_by_${column.name}`,
      sql`${isOfMerchant} and (${orders.merchantId}, ${column}) in (select * from ${pairs})`,
    ),
  };
}

/** Groups items by statements. If merchants are on different servers, each statement concerns one merchant. */
export function inStatements<Item extends { readonly merchantId: AccountId }>(
  server: MerchantServer | undefined,
  items: readonly Item[],
): (readonly Item[])[] {
  return server ? [...Map.groupBy(items, ({ merchantId }) => merchantId).values()] : [items];
}

/** A statement that reads orders reads nothing else, so that one shard of a distributed table can run it. */
export function prepareFind(db: PostgresJsDatabase, name: string, condition: SQL) {
  return db.select(orderColumns).from(orders).where(condition).prepare(name);
}
