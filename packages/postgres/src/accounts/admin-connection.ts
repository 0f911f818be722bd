import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import {
  type Closable,
  type ConnectionOptions,
  type DatabaseClient,
  openTransactionClient,
} from '../connections/client.ts';
import { isConcurrencyFailure, withRedactedErrors } from '../connections/errors.ts';

/**
 * Serializable, because one statement counts a merchant's secrets or endpoints and adds one. If two callers try to add
 * the last one that is allowed, PostgreSQL fails one of the statements, which is then run again.
 */
const serializable = { begin: 'begin isolation level serializable' };
const attemptsMax = 10;

/** The options of an operator's connection. */
export interface AdminOptions extends Pick<ConnectionOptions, 'url' | 'patience'> {
  /** The actor in the audit log; absent: the user of the operating system. */
  readonly actor?: string | undefined;
}

/** Runs one administrative statement. */
export type Run = <Result>(statement: (db: PostgresJsDatabase) => Promise<Result>) => Promise<Result>;

/**
 * Opens an administrative client, which connects with the first statement. It runs statements one after the other, each
 * in a serializable transaction.
 */
export function openAdministration(
  options: Omit<ConnectionOptions, 'applicationName' | 'settings'>,
  name: string,
): DatabaseClient<PostgresJsDatabase> {
  return openTransactionClient({ ...options, applicationName: `order-gateway ${name}` }, serializable, (db) => db);
}

/** Runs statements on a connection, and repeats those that fail because of a concurrent statement. */
export function runOn(client: DatabaseClient<PostgresJsDatabase>): Run {
  const run = async <Result>(
    statement: (db: PostgresJsDatabase) => Promise<Result>,
    attemptsLeft = attemptsMax,
  ): Promise<Result> => {
    try {
      return await client.run(statement);
    } catch (error) {
      if (!isConcurrencyFailure(error) || attemptsLeft === 1) throw error;
      return run(statement, attemptsLeft - 1);
    }
  };
  return (statement) => run(statement);
}

/**
 * Opens an operator's client, which `await using` closes. It runs statements as {@link runOn} does, but rejects with
 * errors that contain no values.
 */
export function openOperatorClient(
  { url, patience }: AdminOptions,
  name: string,
): Closable & AsyncDisposable & { readonly run: Run } {
  const client = openAdministration({ url, patience }, name);
  const run = runOn(client);
  return {
    run: (statement) => withRedactedErrors(() => run(statement)),
    close: client.close,
    [Symbol.asyncDispose]: client.close,
  };
}
