import { type SQL, sql } from 'drizzle-orm';
import { DatabaseError } from './connections/errors.ts';

/** Runs one statement, and returns its rows. */
export type Execute = (query: SQL) => Promise<readonly Readonly<Record<string, unknown>>[]>;

interface Connection {
  readonly execute: Execute;
  /** Runs statements in one transaction, which gives way to the statements that wait behind it. */
  readonly transact: (queries: readonly SQL[]) => Promise<void>;
}

/** Matches the statement that drizzle-kit generates for an index declared with `.concurrently()`. */
const concurrentIndex = /^\s*CREATE INDEX CONCURRENTLY "(\w+)" ON "(\w+)" (.+?);?\s*$/s;

/** Whether a statement builds an index without blocking writes, which no transaction can do. */
export const isConcurrent = (statement: string): boolean => concurrentIndex.test(statement);

/**
 * Builds an index without blocking writes. If an interrupted attempt left the index invalid, it is built again; a valid
 * index is kept. Throws for a statement that is not {@link isConcurrent}.
 *
 * PostgreSQL can't do this for a partitioned table (`partition.sql`). Its partitions get their indexes this way first.
 * The index of the table then adopts them.
 */
export async function buildIndex(connection: Connection, statement: string): Promise<void> {
  const { execute, transact } = connection;
  const [, name, table, columns] = concurrentIndex.exec(statement) ?? [];
  if (name === undefined || table === undefined || columns === undefined)
    throw new DatabaseError('a migration that builds an index concurrently must contain nothing else');
  const [found] = await execute(
    sql`select indisvalid as is_valid from pg_index where indexrelid = to_regclass(${`"${name}"`})`,
  );
  if (found?.is_valid === true) return;
  if (found !== undefined) await execute(sql.raw(`drop index concurrently if exists "${name}"`));
  const partitions = await execute(
    sql`select relname as name from pg_inherits join pg_class on oid = inhrelid where inhparent = ${`"${table}"`}::regclass`,
  );
  for (const partition of partitions) {
    const partitionColumns = columns.replaceAll(`"${table}".`, '');
    await buildIndex(
      connection,
      `CREATE INDEX CONCURRENTLY "${name}_${partition.name}" ON "${partition.name}" ${partitionColumns}`,
    );
  }
  if (partitions.length === 0) await execute(sql.raw(statement));
  else await transact([sql.raw(`create index "${name}" on "${table}" ${columns}`)]);
}
