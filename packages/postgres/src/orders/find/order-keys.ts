import type { AccountId } from '@order-gateway/domain/accounts';
import { type SQL, sql } from 'drizzle-orm';
import type { AnyPgColumn } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { MerchantServer } from '../../connections/client.ts';
import { orders } from '../../schema.ts';
import { orderColumns } from '../order-rows.ts';

/** The columns that each identify one of a merchant's orders, by their names in the statements. */
const keys = {
  order_id: orders.order_id,
  service_order_id: orders.serviceOrderId,
  token: orders.orderToken,
} as const;

/**
 * The two statements that find orders by a key: `single` for one key, and `batch` for an array. For one key, `single`
 * costs the server half as much, and on Citus it involves only one server.
 */
export function prepareFindBy(db: PostgresJsDatabase, key: keyof typeof keys, server: MerchantServer | undefined) {
  const column: AnyPgColumn = keys[key];
  const merchantIds = sql`${sql.placeholder('merchantIds')}::bigint[]`;
  const values = sql`${sql.placeholder('values')}::${sql.raw(column.getSQLType())}[]`;
  return {
    single: prepareFind(
      db,
      `find_one_by_${key}`,
      sql`${orders.merchantId} = ${sql.placeholder('merchantId')} and ${column} = ${sql.placeholder('value')}`,
    ),
    batch: prepareFind(
      db,
      `find_by_${key}`,
      sql`${ofMerchant(server, orders)} and (${orders.merchantId}, ${column}) in (select * from unnest(${merchantIds}, ${values}))`,
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

/**
 * Returns the condition that restricts a table to the merchant of the statement, if {@link inStatements} separates
 * merchants. Citus can't determine the server from pairs of a merchant and a value.
 */
function ofMerchant(server: MerchantServer | undefined, table: { readonly merchantId: AnyPgColumn }): SQL {
  return server ? sql`${table.merchantId} = ${sql.placeholder('merchantId')}::bigint` : sql`true`;
}

/** A statement that reads orders reads nothing else, so that one shard of a distributed table can run it. */
export function prepareFind(db: PostgresJsDatabase, name: string, condition: SQL) {
  return db.select(orderColumns).from(orders).where(condition).prepare(name);
}
