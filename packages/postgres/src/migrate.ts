import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { getTableName, type SQL, sql } from 'drizzle-orm';
import { type MigrationMeta, readMigrationFiles } from 'drizzle-orm/migrator';
import { buildIndex, type Execute, isConcurrent } from './concurrent-index.ts';
import { noStatementTimeoutMs, withConnection } from './connections/client.ts';
import { DatabaseError, isLockTimeout, lockTimeoutMessage } from './connections/errors.ts';
import { requireOwnSession } from './connections/inspect-server.ts';
import { orders } from './schema.ts';

/** The migrations of one schema, and where a database records those that it has. */
export interface Migrations {
  /** The folder that drizzle-kit writes. */
  readonly folder: string;
  /** The name of the table in the schema `drizzle`. */
  readonly table: string;
  /** The script of privileges that every run ends with. */
  readonly grantsFile?: URL;
  /** The script that distributes the tables and functions, if some are distributed. */
  readonly distributionFile?: URL;
}

const gatewayMigrations: Migrations = {
  folder: fileURLToPath(new URL('../migrations', import.meta.url)),
  table: '__drizzle_migrations',
  grantsFile: new URL('../grants.sql', import.meta.url),
  distributionFile: new URL('../distribute.sql', import.meta.url),
};

/** Any number that no other program locks. Its bytes spell the name of the service, `order`, in ASCII. */
const migrationLock = 0x6f72646572;

/**
 * How long a start waits for a lock, for example while another process migrates or a table is in use. If a migration
 * takes longer, start one process first, and all other processes after its migration.
 */
const lockTimeoutMaxMs = 600_000;

const lockPollMs = 100;

/**
 * How long a migration waits for a table lock at a time. All statements that need the table wait behind it, so it gives
 * way and tries again after {@link retryPauseMs}.
 */
const tableLockMaxMs = 500;

/** The pause in which the statements that waited behind a migration can run. */
const retryPauseMs = 500;

/**
 * Migrates the database to the schema that this code needs, once, even if many processes start at the same time: they
 * wait for each other on an advisory lock. Statements have no time limit, because building an index may take long; only
 * waiting for a lock has one. Each migration is applied completely or not at all. Then the roles of `roles.sql` get the
 * privileges that they lack, and a cluster distributes what the migrations added. If there is nothing to do, only one
 * server of a cluster is needed. Rejects with an error that contains no values.
 */
export async function migrateDatabase(
  url: string,
  lockTimeoutMs = lockTimeoutMaxMs,
  { folder: migrationsFolder, table, grantsFile, distributionFile }: Migrations = gatewayMigrations,
): Promise<void> {
  await requireOwnSession(url);
  const options = { url, applicationName: 'order-gateway migration', statementTimeoutMs: noStatementTimeoutMs };
  await withConnection(options, async ({ db }) => {
    const execute: Execute = (query) => db.execute(query);
    await execute(sql.raw(`set lock_timeout = ${lockTimeoutMs}`));
    await lockMigrations(execute, lockTimeoutMs);
    const migrations = readMigrationFiles({ migrationsFolder });
    const recorded = await appliedMigrations(execute, table);
    const applied = recorded ?? [];
    const latest = Math.max(...applied);
    const knownMillis = migrations.map(({ folderMillis }) => folderMillis);
    // Before the first release, each schema change regenerated the only migration. Applied migrations that are later
    // than the known ones are those of a newer version.
    if (applied.some((millis) => !knownMillis.includes(millis) && millis < Math.max(...knownMillis)))
      throw new DatabaseError(
        "its schema is from an earlier checkout and can't be migrated: use a new database or DATA_DIR",
      );
    if (recorded === undefined) await createRecord(execute, table);
    const pending = migrations.filter(({ folderMillis }) => folderMillis > latest);
    for (const migration of pending) await applyMigration(execute, migration, lockTimeoutMs, table);
    // A role that may not migrate is reported even if there is nothing to do.
    await execute(sql`insert into drizzle.${sql.identifier(table)} (hash) select '' where false`);
    if (grantsFile !== undefined) {
      const grants = sql.raw(await readFile(grantsFile, 'utf8'));
      if (pending.length > 0 || (await changesPrivileges(execute, grants))) await execute(grants);
    }
    if (distributionFile !== undefined) await distribute(execute, distributionFile, lockTimeoutMs);
  });
}

/** If the orders are distributed, distributes what is not distributed yet. */
async function distribute(execute: Execute, file: URL, timeoutMs: number): Promise<void> {
  const [citus] = await execute(sql`select to_regclass('pg_dist_partition') as name`);
  if (citus?.name == null) return;
  const found = await execute(
    sql`select from pg_dist_partition where logicalrelid = ${getTableName(orders)}::regclass`,
  );
  if (found.length === 0) return;
  for (const statement of await readStatements(file)) {
    const query = sql.raw(statement);
    // Citus can't do this in a transaction.
    if (statement.includes('_concurrently(')) await execute(query);
    else await inTransaction(execute, [query], timeoutMs);
  }
}

/** Returns the statements of a script, each of which ends with a line. */
export async function readStatements(file: URL): Promise<string[]> {
  return (await readFile(file, 'utf8')).split(/;$/m).filter((statement) => statement.trim() !== '');
}

/** Whether a script of grants would change any privilege. On Citus, a grant needs all servers, and this does not. */
async function changesPrivileges(execute: Execute, grants: SQL): Promise<boolean> {
  await execute(sql`begin`);
  // Without Citus, this setting has no effect.
  await execute(sql`set local citus.enable_ddl_propagation = off`);
  const [before] = await execute(readPrivileges);
  await execute(grants);
  const [after] = await execute(readPrivileges);
  await execute(sql`rollback`);
  return after?.privileges !== before?.privileges;
}

const readPrivileges = sql`
  select json_agg(granted order by class, id, part)::text as privileges from (
    select 'schema' as class, oid as id, 0 as part, nspacl as granted from pg_namespace
    union all select 'table', oid, 0, relacl from pg_class
    union all select 'table', attrelid, attnum, attacl from pg_attribute where attacl is not null
  ) as privileges`;

/**
 * Takes the migration lock, which is released with the connection. It polls, because a session that waits in a
 * statement holds a snapshot, and building an index concurrently waits for the end of every older snapshot: two
 * migrations would wait for each other.
 */
async function lockMigrations(execute: Execute, timeoutMs: number): Promise<void> {
  const giveUpAtMs = performance.now() + timeoutMs;
  for (;;) {
    const [row] = await execute(sql`select pg_try_advisory_lock(${migrationLock}) as locked`);
    if (row?.locked === true) return;
    if (performance.now() > giveUpAtMs) throw new DatabaseError(lockTimeoutMessage);
    await sleep(Math.min(lockPollMs, timeoutMs));
  }
}

/** Creates the table in which Drizzle's own migrators record what they have applied. */
async function createRecord(execute: Execute, table: string): Promise<void> {
  await execute(sql`create schema if not exists drizzle`);
  await execute(sql`create table if not exists drizzle.${sql.identifier(table)}
    (id serial primary key, hash text not null, created_at bigint)`);
}

/** Applies one migration: in a transaction, unless it builds indexes concurrently, which no transaction can do. */
async function applyMigration(
  execute: Execute,
  { sql: statements, hash, folderMillis }: MigrationMeta,
  timeoutMs: number,
  table: string,
): Promise<void> {
  const record = sql`insert into drizzle.${sql.identifier(table)} (hash, created_at) values (${hash}, ${folderMillis})`;
  const transact = (queries: readonly SQL[]) => inTransaction(execute, queries, timeoutMs);
  if (!statements.some(isConcurrent)) return transact([...statements.map((text) => sql.raw(text)), record]);
  for (const statement of statements) await buildIndex({ execute, transact }, statement);
  await execute(record);
}

/**
 * Runs statements in one transaction. Drizzle's migrator for postgres.js uses `sql.begin`, where a killed backend
 * raises an uncaught exception (postgres.js 3.4.9, issue 1066). A lost connection ends the transaction, because a
 * connection is never reopened. While another session holds a lock, runs the statements again, up to the limit in
 * milliseconds.
 */
async function inTransaction(execute: Execute, queries: readonly SQL[], timeoutMs: number): Promise<void> {
  const giveUpAtMs = performance.now() + timeoutMs;
  const limit = sql.raw(`set local lock_timeout = ${Math.min(tableLockMaxMs, timeoutMs)}`);
  for (;;) {
    try {
      for (const query of [sql`begin`, limit, ...queries, sql`commit`]) await execute(query);
      return;
    } catch (error) {
      if (!isLockTimeout(error) || performance.now() > giveUpAtMs) throw error;
      await execute(sql`rollback`);
      await sleep(retryPauseMs);
    }
  }
}

/**
 * Checks that the database has the schema that this code needs, or a newer one: after a migration, the previous version
 * keeps working. Needs only read privileges. Rejects with an error that contains no values and says what to do.
 */
export function requireSchema(
  url: string,
  { folder: migrationsFolder, table }: Migrations = gatewayMigrations,
): Promise<void> {
  return withConnection({ url, applicationName: 'order-gateway schema' }, async ({ db, run }) => {
    const needed = readMigrationFiles({ migrationsFolder }).at(-1)?.folderMillis ?? 0;
    const applied = await appliedMigrations((query) => run(() => db.execute(query)), table);
    if (applied === undefined) throw new DatabaseError('it has no schema: run `migrate` first');
    if (Math.max(...applied) < needed)
      throw new DatabaseError('its schema is from an earlier version: run `migrate` first');
  });
}

/**
 * Returns the applied migrations, each as the time at which it was generated; `undefined` if the database has never
 * been migrated.
 */
async function appliedMigrations(execute: Execute, table: string): Promise<number[] | undefined> {
  const [found] = await execute(sql`select to_regclass(${`drizzle.${table}`}) as name`);
  if (found?.name == null) return undefined;
  const rows = await execute(sql`select created_at from drizzle.${sql.identifier(table)}`);
  return rows.map(({ created_at: millis }) => Number(millis));
}
