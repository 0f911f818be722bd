import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type SQL, sql } from 'drizzle-orm';
import { readMigrationFiles } from 'drizzle-orm/migrator';
import { drizzle } from 'drizzle-orm/pg-proxy';
import { migrate } from 'drizzle-orm/pg-proxy/migrator';
import { noStatementTimeoutMs, withConnection } from './connections/client.ts';
import { DatabaseError, isLockTimeout, lockTimeoutMessage } from './connections/errors.ts';

const grantsFile = new URL('../grants.sql', import.meta.url);
const migrationsFolder = fileURLToPath(new URL('../migrations', import.meta.url));

/** Any number that no other program locks; its digits spell the name of the service in ASCII, `order`. */
const migrationLock = 0x6f72646572;

/**
 * How long a start waits for a lock, for example while another process migrates or a table is in use. If a migration
 * takes longer, start one process first, and the others after its migration.
 */
const lockTimeoutMaxMs = 600_000;

const lockPollMs = 100;

/**
 * How long a migration waits for a table lock at a time. All statements that need the table wait behind it, so it gives
 * way and tries again after {@link retryPauseMs}.
 */
const tableLockMaxMs = 500;

/** Time to run the statements that waited behind a migration. */
const retryPauseMs = 500;

/** Runs one statement and returns its rows. */
type Execute = (query: SQL) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/**
 * Migrates the database to the schema that this code needs, once, even if many processes start at the same time: they
 * wait for each other on an advisory lock. Statements have no time limit, because building an index may take long; only
 * waiting for a lock has one. Either all migrations are applied or none is. Then the roles of `roles.sql` get their
 * privileges. Rejects with an error that contains no values.
 */
export function migrateDatabase(url: string, lockTimeoutMs = lockTimeoutMaxMs): Promise<void> {
  const options = { url, applicationName: 'order-gateway migration', statementTimeoutMs: noStatementTimeoutMs };
  return withConnection(options, async ({ db, run }) => {
    // The first statement connects, which has a deadline.
    await run(() => db.execute(sql.raw(`set lock_timeout = ${lockTimeoutMs}`)));
    await lockMigrations((query) => db.execute(query), lockTimeoutMs);
    const knownMillis = readMigrationFiles({ migrationsFolder }).map(({ folderMillis }) => folderMillis);
    const applied = (await appliedMigrations((query) => db.execute(query))) ?? [];
    // Until the first release, a schema change regenerates the one migration. A newer version has later migrations.
    if (applied.some((millis) => !knownMillis.includes(millis) && millis < Math.max(...knownMillis)))
      throw new DatabaseError(
        "its schema is of an earlier checkout and can't be migrated: use a new database or DATA_DIR",
      );
    const proxied = drizzle(async (text) => ({ rows: [...(await db.execute(sql.raw(text)))] }));
    await migrate(
      proxied,
      (statements) => inTransaction((text) => db.execute(sql.raw(text)), statements, lockTimeoutMs),
      {
        migrationsFolder,
      },
    );
    await db.execute(sql.raw(await readFile(grantsFile, 'utf8')));
  });
}

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

/**
 * Runs statements in one transaction. Drizzle's migrator for postgres.js uses `sql.begin`, where a killed backend
 * raises an uncaught exception (postgres.js 3.4.9, issue 1066); its migrator for a proxy lets us run the transaction. A
 * lost connection ends it, because a connection is never reopened. While another session holds a lock, runs the
 * statements again, up to the limit in milliseconds.
 */
async function inTransaction(
  run: (text: string) => Promise<unknown>,
  statements: readonly string[],
  timeoutMs: number,
): Promise<void> {
  if (statements.length === 0) return;
  const giveUpAtMs = performance.now() + timeoutMs;
  const limit = `set local lock_timeout = ${Math.min(tableLockMaxMs, timeoutMs)}`;
  for (;;) {
    try {
      for (const text of ['begin', limit, ...statements, 'commit']) await run(text);
      return;
    } catch (error) {
      if (!isLockTimeout(error) || performance.now() > giveUpAtMs) throw error;
      await run('rollback');
      await sleep(retryPauseMs);
    }
  }
}

/**
 * Checks that the database has the schema that this code needs, or a newer one: after a migration, the previous version
 * keeps working. Needs only read privileges. Rejects with an error that contains no values and says what to do.
 */
export function requireSchema(url: string): Promise<void> {
  return withConnection({ url, applicationName: 'order-gateway schema' }, async ({ db, run }) => {
    const needed = readMigrationFiles({ migrationsFolder }).at(-1)?.folderMillis ?? 0;
    const applied = await appliedMigrations((query) => run(() => db.execute(query)));
    if (applied === undefined) throw new DatabaseError('it has no schema: run `pnpm migrate` first');
    if (Math.max(...applied) < needed)
      throw new DatabaseError('its schema is of an earlier version: run `pnpm migrate` first');
  });
}

/**
 * Returns the applied migrations, each as the time at which it was generated; `undefined` if there was no migration.
 */
async function appliedMigrations(execute: Execute): Promise<number[] | undefined> {
  const [found] = await execute(sql`select to_regclass('drizzle.__drizzle_migrations') as name`);
  if (found?.name == null) return undefined;
  const rows = await execute(sql`select created_at as at from drizzle.__drizzle_migrations`);
  return rows.map(({ at }) => Number(at));
}
