import { fileURLToPath } from 'node:url';
import { sql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { openClient } from './lane.ts';
import { withoutValues } from './statement-error.ts';

const migrationsFolder = fileURLToPath(new URL('../migrations', import.meta.url));

/** Any number that no other program locks; these digits are the name of the service in ASCII, `order`. */
const migrationLock = 0x6f72646572;

/**
 * Brings the database to the schema that this code needs, once, however many processes start at the same time: they wait for
 * each other on an advisory lock. Statements run without the time limit of requests, as building an index may take long.
 */
export async function migrateDatabase(url: string): Promise<void> {
  const client = openClient({
    url,
    applicationName: 'order-gateway migration',
    connectionsMax: 1,
    statementTimeoutMs: 0,
  });
  const db = drizzle({ client });
  try {
    await db.execute(sql`select pg_advisory_lock(${migrationLock})`);
    await migrate(db, { migrationsFolder });
  } catch (error) {
    throw withoutValues(error);
  } finally {
    // Closing the connection gives the lock back.
    await client.end({ timeout: 1 });
  }
}
