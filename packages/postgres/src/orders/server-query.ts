import type { AccountId } from '@order-gateway/domain/accounts';
import { Column, is, type Placeholder, type SQLWrapper, sql } from 'drizzle-orm';
import type { AnyPgColumn, SelectedFields } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { arrayLiteral, type MerchantServer } from '../connections/client.ts';
import { runOnShards, textOf } from './plpgsql-functions.ts';

type Values = Readonly<Record<string, string | number | boolean>>;

/** A query that Drizzle builds. */
interface Query<Row> extends SQLWrapper {
  prepare(name: string): { execute(values?: Record<string, unknown>): Promise<Row[]> };
}

/** The columns of a query in its order, by the names of its fields: the type of each, or a column with its type. */
interface Columns {
  readonly [name: string]: string | AnyPgColumn | Columns;
}

/**
 * Prepares a query of all merchants, or of those of one server. Then the rows of each group of shards are ordered and
 * limited separately, and only the shards of `merchantIds` are used, if they are given. `define` gets a function that
 * returns a placeholder or the value for it.
 */
export function prepareServerQuery<Row extends Record<string, unknown>>(
  db: PostgresJsDatabase,
  server: MerchantServer | undefined,
  { name, columns }: { readonly name: string; readonly columns: Columns & Record<keyof Row, unknown> },
  define: (value: (name: string) => Placeholder) => Query<Row>,
): (values?: Values, merchantIds?: readonly AccountId[]) => Promise<Row[]> {
  if (server === undefined) {
    const prepared = define(sql.placeholder).prepare(name);
    return (values) => prepared.execute(values);
  }
  const definitions: string[] = [];
  const select = (columns: Columns): SelectedFields =>
    Object.fromEntries(
      Object.entries(columns).map(([field, column]) => {
        if (typeof column !== 'string' && !is(column, Column)) return [field, select(column)];
        const type = typeof column === 'string' ? column : column.getSQLType();
        const columnName = `c${definitions.push(`c${definitions.length} ${type}`) - 1}`;
        const selection = sql`${sql.identifier(columnName)}`;
        if (typeof column !== 'string') return [field, selection.mapWith(column)];
        // The driver returns this type as text.
        return [field, column === 'bigint' ? selection.mapWith(Number) : selection];
      }),
    );
  const selected = select(columns);
  const { name: functionName, call } = runOnShards(definitions.join(', '));
  const prepared = db.select(selected).from(call).prepare(`${functionName}_${name}`);
  return (values = {}, merchantIds) =>
    prepared.execute({
      merchant_id: merchantIds?.[0] ?? server.anyMerchant(),
      merchant_ids: merchantIds ? arrayLiteral(merchantIds, (id) => id) : null,
      // Drizzle accepts a parameter wherever it accepts a placeholder.
      query: textOf(define((value) => sql.param(values[value]) as unknown as Placeholder)),
    }) as Promise<Row[]>;
}
