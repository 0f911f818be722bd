import { fileURLToPath } from 'node:url';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import type { Sql } from 'postgres';
import { openClient } from './lane.ts';
import { withoutValues } from './statement-error.ts';

const migrationsFolder = fileURLToPath(new URL('../migrations', import.meta.url));

/** Any number that no other program locks; these digits are the name of the service in ASCII, `order`. */
const migrationLock = 0x6f72646572;

/**
 * How long a start waits for a lock: for the migration of another process, or for a table in use. Who waits longer is better
 * told, as the other may never end; a migration that takes longer is begun by one process before the others start.
 */
const lockWaitMaxMs = 600_000;

/** The longest that PostgreSQL knows, 25 days. A 0 the driver leaves out, and what the database gives its statements holds. */
const noTimeoutMs = 2_147_483_647;

/**
 * Brings the database to the schema that this code needs, once, however many processes start at the same time: they wait for
 * each other on an advisory lock. Statements run without the time limit of requests, as building an index may take long; only
 * their waiting for locks has one. Whatever is due is done whole or not at all.
 */
export async function migrateDatabase(url: string, lockTimeoutMs = lockWaitMaxMs): Promise<void> {
  const client = openClient({
    url,
    applicationName: 'order-gateway migration',
    connectionsMax: 1,
    statementTimeoutMs: noTimeoutMs,
  });
  try {
    await client.unsafe(`set lock_timeout = ${lockTimeoutMs}; select pg_advisory_lock(${migrationLock})`).simple();
    await migrate(client);
  } catch (error) {
    throw withoutValues(error);
  } finally {
    // Closing the connection gives the lock back.
    await client.end({ timeout: 1 });
  }
}

/**
 * Does what Drizzle's migrator does, and keeps the same table. That one opens a transaction of the driver (3.4.9), which throws
 * where nobody can catch it when the connection is lost; statements that are sent in one piece are a transaction by themselves
 * (PostgreSQL's manual, "Multiple Statements in a Simple Query").
 */
async function migrate(client: Sql): Promise<void> {
  await client
    .unsafe(
      `create schema if not exists drizzle;
      create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)`,
    )
    .simple();
  const [last] = await client<{ created_at: string }[]>`
    select created_at from drizzle.__drizzle_migrations order by created_at desc limit 1`;
  const due = readMigrationFiles({ migrationsFolder }).filter(
    ({ folderMillis }) => last === undefined || Number(last.created_at) < folderMillis,
  );
  const statements = due.flatMap(({ sql, hash, folderMillis }) => [
    ...sql,
    `insert into drizzle.__drizzle_migrations (hash, created_at) values ('${hash}', ${folderMillis})`,
  ]);
  if (statements.length > 0) await client.unsafe(statements.join('\n;\n')).simple();
}
