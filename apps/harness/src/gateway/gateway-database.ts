import { resolve } from 'node:path';
import { defaultDataDir, hasDatabase, startDevPostgres } from '@order-gateway/dev-postgres';
import { parseConnectionUrl } from '@order-gateway/postgres/connections';

/**
 * Opens the database that the environment configures for the gateway. Rejects if DATA_DIR has no database, instead of
 * creating an empty one.
 */
export async function openGatewayDatabase() {
  const { DATABASE_URL, DATA_DIR } = process.env;
  if (DATABASE_URL) {
    process.stderr.write(`Database: ${parseConnectionUrl(DATABASE_URL).name}\n`);
    return { url: DATABASE_URL, close: async () => {} };
  }
  const dataDir = DATA_DIR ? resolve(DATA_DIR) : defaultDataDir;
  if (!hasDatabase(dataDir)) {
    throw new Error(`There is no database in ${dataDir}. Set DATABASE_URL or DATA_DIR to those of the gateway.`);
  }
  process.stderr.write(`Database: the embedded PostgreSQL in ${dataDir}\n`);
  const { url, stop } = await startDevPostgres({ dataDir });
  return { url, close: stop };
}
