import { startEmbeddedPostgres } from '@gateway/postgres/embedded-postgres';
import { migrateDatabase } from '@gateway/postgres/migrate';
import type { Config } from './config.ts';
import { StartError } from './run.ts';

export interface Database {
  readonly url: string;
  /** Whether it is the embedded PostgreSQL. */
  readonly embedded: boolean;
  /** Stops the embedded PostgreSQL where nobody else uses it. */
  close(): Promise<void>;
}

/** Opens the database of the configuration, with the schema that this code needs. */
export async function openDatabase(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<Database> {
  const database = config.databaseUrl === undefined ? await openEmbedded(config.dataDir) : external(config.databaseUrl);
  try {
    await migrateDatabase(database.url);
    return database;
  } catch (error) {
    await database.close();
    const { hostname, port, pathname } = new URL(database.url);
    const reason = error instanceof Error ? error.message : 'unknown';
    throw new StartError(`The database ${hostname}:${port || '5432'}${pathname} can't be used: ${reason}`);
  }
}

async function openEmbedded(dataDir: string): Promise<Database> {
  try {
    const { url, stop } = await startEmbeddedPostgres({ dataDir });
    return { url, embedded: true, close: stop };
  } catch (error) {
    throw new StartError(
      `The embedded PostgreSQL did not start: ${error instanceof Error ? error.message : 'unknown'}`,
    );
  }
}

function external(url: string): Database {
  return { url, embedded: false, close: async () => {} };
}
