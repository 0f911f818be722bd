import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/pg-proxy';
import { migrate } from 'drizzle-orm/pg-proxy/migrator';
import { noStatementTimeoutMs, openConnection } from './client.ts';
import { withoutValues } from './errors.ts';

const migrationsFolder = fileURLToPath(new URL('../migrations', import.meta.url));

/** Any number that no other program locks; these digits are the name of the service in ASCII, `order`. */
const migrationLock = 0x6f72646572;

/**
 * How long a start waits for a lock: for the migration of another process, or for a table in use. If it takes longer, start one
 * process first and the others after its migration.
 */
const lockTimeoutMaxMs = 600_000;

/**
 * Brings the database to the schema that this code needs, once, even if many processes start at the same time: they wait for
 * each other on an advisory lock. Statements have no time limit, as building an index may take long; only waiting for a lock has
 * one. All of the migrations are applied, or none. Rejects with an error without values.
 */
export async function migrateDatabase(url: string, lockTimeoutMs = lockTimeoutMaxMs): Promise<void> {
  const connection = openConnection({
    url,
    applicationName: 'order-gateway migration',
    statementTimeoutMs: noStatementTimeoutMs,
  });
  const { db } = connection;
  try {
    // The first statement connects, which has a deadline.
    await connection.run(() => db.execute(sql.raw(`set lock_timeout = ${lockTimeoutMs}`)));
    // Released with the connection.
    await db.execute(sql`select pg_advisory_lock(${migrationLock})`);
    const proxied = drizzle(async (text) => ({ rows: [...(await db.execute(sql.raw(text)))] }));
    await migrate(proxied, (statements) => inTransaction((text) => db.execute(sql.raw(text)), statements), {
      migrationsFolder,
    });
  } catch (error) {
    throw withoutValues(error);
  } finally {
    await connection.close();
  }
}

/**
 * Runs statements in one transaction. Drizzle's migrator for postgres.js uses `sql.begin`, where a killed backend raises an
 * uncaught exception (postgres.js 3.4.9, issue 1066); its migrator for a proxy leaves the transaction to us. A lost connection
 * ends it: a {@link openConnection} connection is never opened again.
 */
async function inTransaction(run: (text: string) => Promise<unknown>, statements: readonly string[]): Promise<void> {
  if (statements.length === 0) return;
  for (const text of ['begin', ...statements, 'commit']) await run(text);
}
