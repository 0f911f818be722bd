import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { type ConnectionOptions, type DatabaseClient, openClient } from '../connections/client.ts';
import { isConcurrencyFailure, redact } from '../connections/errors.ts';

/**
 * Counting a merchant's secrets or endpoints and adding one is a single statement, serializable so that two callers cannot both
 * add the last one. PostgreSQL then fails one of them, and it runs again.
 */
const settings = { default_transaction_isolation: 'serializable' };
const attemptsMax = 10;

/** How an operator's connection is opened. */
export interface AdminOptions {
  readonly url: string;
  /** Who acts, for the audit log; absent: the user of the operating system. */
  readonly actor?: string | undefined;
}

/** Runs one statement of the administration. */
export type Run = <Result>(statement: (db: PostgresJsDatabase) => Promise<Result>) => Promise<Result>;

/** Opens a connection for the administration, which is made with the first statement. */
export function openAdministration(
  options: Omit<ConnectionOptions, 'applicationName' | 'settings'>,
  name: string,
): DatabaseClient<PostgresJsDatabase> {
  return openClient({ ...options, applicationName: `order-gateway ${name}`, settings }, (db) => db);
}

/** Runs statements on a connection, again if a concurrent one made them fail. */
export function runOn(client: DatabaseClient<PostgresJsDatabase>): Run {
  const run = async <Result>(
    statement: (db: PostgresJsDatabase) => Promise<Result>,
    attempts = attemptsMax,
  ): Promise<Result> => {
    try {
      return await client.run(statement);
    } catch (error) {
      if (!isConcurrencyFailure(error) || attempts === 1) throw error;
      return run(statement, attempts - 1);
    }
  };
  return (statement) => run(statement);
}

/** The same, rejecting with errors without values. */
export function runRedacted(client: DatabaseClient<PostgresJsDatabase>): Run {
  const run = runOn(client);
  return async (statement) => {
    try {
      return await run(statement);
    } catch (error) {
      throw redact(error);
    }
  };
}
