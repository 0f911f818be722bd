import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { defaultDataDir, hasDatabase, startDevPostgres } from '@order-gateway/dev-postgres';
import { parseConnectionUrl } from '@order-gateway/postgres/connections';

/**
 * Opens the database that the environment configures for the gateway. Rejects if DATA_DIR has no database, instead of
 * creating an empty one.
 */
export async function openGatewayDatabase() {
  const { DATABASE_URL, DATABASE_URL_FILE, DATA_DIR } = process.env;
  const databaseUrl = DATABASE_URL || (DATABASE_URL_FILE && readFileSync(DATABASE_URL_FILE, 'utf8').trim());
  if (databaseUrl) {
    process.stderr.write(`Database: ${parseConnectionUrl(databaseUrl).name}\n`);
    return { url: databaseUrl, close: async () => {} };
  }
  const dataDir = DATA_DIR ? resolve(DATA_DIR) : defaultDataDir;
  if (!hasDatabase(dataDir)) {
    throw new Error(
      `There is no database in ${dataDir}. Set DATABASE_URL, DATABASE_URL_FILE or DATA_DIR to those of the gateway.`,
    );
  }
  process.stderr.write(`Database: the embedded PostgreSQL in ${dataDir}\n`);
  const { url, stop } = await startDevPostgres({ dataDir });
  return { url, close: stop };
}
