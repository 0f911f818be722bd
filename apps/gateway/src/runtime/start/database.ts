import { startDevPostgres } from '@order-gateway/dev-postgres';
import { awaitRecovery, parseConnectionUrl } from '@order-gateway/postgres/connections';
import { migrateDatabase, requireSchema } from '@order-gateway/postgres/migrate';
import type { Logger } from '@order-gateway/runtime/logger';
import { messageOf, StartError } from '@order-gateway/runtime/process';

/**
 * Opens the configured database, and migrates its schema or checks that it is current or newer. Outages of the embedded
 * PostgreSQL are logged. Closing stops the embedded PostgreSQL unless another process uses it. If `signal` is aborted
 * before the migration, closes the database and rejects with the signal's reason.
 */
export async function openDatabase(
  {
    databaseUrl,
    dataDir,
    migrate,
  }: { readonly databaseUrl: string | undefined; readonly dataDir: string; readonly migrate: boolean },
  { logger, signal }: { readonly logger?: Logger; readonly signal?: AbortSignal } = {},
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
    if (migrate) await announceWait(`the migration of ${awaited}`, migrateDatabase(database.url));
    else await announceWait(awaited, requireSchema(database.url));
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

/** Waits longer than this are announced. */
const announcedAfterMs = 1_000;

/**
 * If `work` takes longer than a second, prints a line that says what the program waits for. Returns the result of
 * `work`.
 */
export async function announceWait<Value>(awaited: string, work: Promise<Value>): Promise<Value> {
  const timer = setTimeout(() => process.stderr.write(`Waiting for ${awaited}.\n`), announcedAfterMs);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
