import { startDevPostgres } from '@order-gateway/dev-postgres';
import { parseConnectionUrl } from '@order-gateway/postgres/connections';
import { migrateDatabase, requireSchema } from '@order-gateway/postgres/migrate';
import { messageOf, StartError } from '@order-gateway/runtime/process';
import type { Config } from '../config.ts';
import { checkoutMigrations } from './migrate.ts';

/** Opens the configured database, and migrates the schema `checkout` or checks that it is current. */
export async function openDatabase({ databaseUrl, dataDir, migrate }: Config) {
  const database = databaseUrl
    ? { url: databaseUrl, stop: async () => {} }
    : await startDevPostgres({ dataDir }).catch((error: unknown) => {
        throw new StartError(`The embedded PostgreSQL did not start: ${messageOf(error)}`);
      });
  try {
    if (migrate) await migrateDatabase(database.url, undefined, checkoutMigrations);
    else await requireSchema(database.url, checkoutMigrations);
    return { url: database.url, close: database.stop };
  } catch (error) {
    await database.stop();
    throw new StartError(`The database ${parseConnectionUrl(database.url).name} can't be used: ${messageOf(error)}`);
  }
}
