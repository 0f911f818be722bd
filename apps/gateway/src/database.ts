import { startDevPostgres } from '@gateway/dev-postgres';
import { parseConnectionUrl } from '@gateway/postgres/connection-url';
import { migrateDatabase, requireSchema } from '@gateway/postgres/migrate';
import type { Config } from './config.ts';
import type { Logger } from './logger.ts';
import { messageOf, StartError } from './process.ts';

export interface Database {
  readonly url: string;
  /** Whether it is the embedded PostgreSQL. */
  readonly embedded: boolean;
  /** Stops the embedded PostgreSQL where nobody else uses it. */
  close(): Promise<void>;
}

/** Opens the database of the configuration, with the schema that this code needs. Outages of the embedded one are logged. */
export async function openDatabase(
  { databaseUrl, dataDir, migrate }: Pick<Config, 'databaseUrl' | 'dataDir' | 'migrate'>,
  logger?: Logger,
): Promise<Database> {
  const database = databaseUrl === undefined ? await openEmbedded(dataDir, logger) : external(databaseUrl);
  try {
    await (migrate ? migrateDatabase : requireSchema)(database.url);
    return database;
  } catch (error) {
    await database.close();
    throw new StartError(`The database ${parseConnectionUrl(database.url).name} can't be used: ${messageOf(error)}`);
  }
}

async function openEmbedded(dataDir: string, logger: Logger | undefined): Promise<Database> {
  try {
    const { url, stop } = await startDevPostgres({ dataDir, logger });
    return { url, embedded: true, close: stop };
  } catch (error) {
    throw new StartError(`The embedded PostgreSQL did not start: ${messageOf(error)}`);
  }
}

function external(url: string): Database {
  return { url, embedded: false, close: async () => {} };
}
