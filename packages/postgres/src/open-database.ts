import { startDevPostgres } from '@order-gateway/dev-postgres';
import type { Logger } from '@order-gateway/runtime/logger';
import { announceWait, messageOf, StartError } from '@order-gateway/runtime/process';
import type { Values } from '@order-gateway/runtime/variables';
import { awaitRecovery, parseConnectionUrl } from './connections/index.ts';
import type { databaseVariables } from './database-variables.ts';
import { type Migrations, migrateDatabase, requireSchema } from './migrate.ts';

/**
 * Opens the configured database, and migrates its schema or checks that it is current or newer. The schema is the
 * gateway's, or that of other `migrations`. Outages of the embedded PostgreSQL are logged. Closing stops the embedded
 * PostgreSQL unless another process uses it. If `signal` is aborted before the migration, closes the database and
 * rejects with the signal's reason.
 */
export async function openDatabase(
  { databaseUrl, dataDir, migrate }: Values<ReturnType<typeof databaseVariables>>,
  {
    logger,
    signal,
    migrations,
  }: { readonly logger?: Logger; readonly signal?: AbortSignal; readonly migrations?: Migrations } = {},
) {
  const isExternal = databaseUrl !== undefined;
  /** The database's name for messages, without user and password. */
  const name = isExternal ? parseConnectionUrl(databaseUrl).name : `the embedded PostgreSQL in ${dataDir}`;
  const awaited = isExternal ? `the database ${name}` : name;
  const database = isExternal
    ? { url: databaseUrl, stop: async () => {} }
    : await announceWait(awaited, startDevPostgres({ dataDir, logger })).catch((error) => {
        throw new StartError(`The embedded PostgreSQL did not start: ${messageOf(error)}`);
      });
  try {
    await announceWait(awaited, awaitRecovery(database.url));
    signal?.throwIfAborted();
    if (migrate)
      await announceWait(`the migration of ${awaited}`, migrateDatabase(database.url, undefined, migrations));
    else await announceWait(awaited, requireSchema(database.url, migrations));
    return { url: database.url, name, awaited, embedded: !isExternal, close: database.stop };
  } catch (error) {
    await database.stop();
    throw error === signal?.reason ? error : unusable(database.url, error);
  }
}

/** Returns the error for a start that fails because of the database. */
export function unusable(url: string, error: unknown): StartError {
  return new StartError(`The database ${parseConnectionUrl(url).name} can't be used: ${messageOf(error)}`);
}
