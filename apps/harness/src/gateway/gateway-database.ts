import { resolve } from 'node:path';
import { defaultDataDir, hasDatabase, startDevPostgres } from '@gateway/dev-postgres';

/** Opens the database that someone else's gateway has in this environment. Rejects rather than create an empty one. */
export async function openGatewayDatabase() {
  const { DATABASE_URL, DATA_DIR } = process.env;
  if (DATABASE_URL) return { url: DATABASE_URL, close: async () => {} };
  const dataDir = DATA_DIR ? resolve(DATA_DIR) : defaultDataDir;
  if (!hasDatabase(dataDir)) {
    throw new Error(`there is no database in ${dataDir}; set DATABASE_URL or DATA_DIR as the gateway has it`);
  }
  const { url, stop } = await startDevPostgres({ dataDir });
  return { url, close: stop };
}
