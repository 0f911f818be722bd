import { type Placeholder, type SQLWrapper, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { MerchantServer } from '../connections/client.ts';
import { queryShards, textOf } from './plpgsql-functions.ts';

type Values = Readonly<Record<string, string | number | boolean>>;

/** A query that Drizzle builds. */
interface Query<Row> extends SQLWrapper {
  prepare(name: string): { execute(values?: Record<string, unknown>): Promise<Row[]> };
}

/**
 * Prepares a query of all merchants, or of those of one server. Then the rows of each group of shards are ordered and
 * limited separately. `columns` has the type of each column. `define` gets a function that returns a placeholder or
 * the value for it.
 */
export function prepareServerQuery<Row extends Record<string, unknown>>(
  db: PostgresJsDatabase,
  server: MerchantServer | undefined,
  { name, columns }: { readonly name: string; readonly columns: { readonly [Column in keyof Row]: string } },
  define: (value: (name: string) => Placeholder) => Query<Row>,
): (values?: Values) => Promise<Row[]> {
  if (server === undefined) {
    const prepared = define(sql.placeholder).prepare(name);
    return (values) => prepared.execute(values);
  }
  const { name: functionName, call } = queryShards(
    Object.entries(columns)
      .map(([column, type]) => `"${column}" ${type}`)
      .join(', '),
  );
  const selected = Object.fromEntries(
    Object.entries(columns).map(([column, type]) => {
      const selection = sql`${sql.identifier(column)}`;
      // The driver returns this type as text.
      return [column, type === 'bigint' ? selection.mapWith(Number) : selection];
    }),
  );
  const prepared = db.select(selected).from(call).prepare(`${functionName}_${name}`);
  return (values = {}) =>
    prepared.execute({
      merchant_id: server.anyMerchant(),
      // Drizzle accepts a parameter wherever it accepts a placeholder.
      query: textOf(define((value) => sql.param(values[value]) as unknown as Placeholder)),
    }) as Promise<Row[]>;
}
