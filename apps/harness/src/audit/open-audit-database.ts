import { resolve } from 'node:path';
import { defaultDataDir, hasDatabase, startDevPostgres } from '@gateway/dev-postgres';

export interface AuditDatabase {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * The database of a gateway that was started in the same environment: DATABASE_URL, or the embedded PostgreSQL in DATA_DIR.
 * Rejects with a sentence where there is none, rather than make an empty one.
 */
export async function openAuditDatabase(env: NodeJS.ProcessEnv): Promise<AuditDatabase> {
  if (env.DATABASE_URL) return { url: env.DATABASE_URL, close: async () => {} };
  const dataDir = env.DATA_DIR ? resolve(env.DATA_DIR) : defaultDataDir;
  if (!hasDatabase(dataDir)) {
    throw new Error(`there is no database to audit in ${dataDir}; set DATABASE_URL or DATA_DIR as the gateway has it`);
  }
  const { url, stop } = await startDevPostgres({ dataDir });
  return { url, close: stop };
}
