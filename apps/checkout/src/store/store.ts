import { type DatabaseOptions, isDuplicate, openClient, redact } from '@order-gateway/postgres/connections';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { changeAttempts, findAttempts } from './attempts.ts';
import { manageConnections } from './connections.ts';
import { storeDemoPayments } from './demo-payments.ts';
import { scheduleWork } from './schedule.ts';

export type { AttemptChange } from './attempts.ts';
export type { Connection } from './connections.ts';
export type { DueKind, List } from './schedule.ts';
export type { Attempt } from './schema.ts';

/** The store of everything that the checkout stores. */
export type Store = ReturnType<typeof openStore>;

/**
 * Opens the store, on one connection that the first statement opens. Every statement is a separate transaction. Rejects
 * with errors that contain no values.
 */
export function openStore(options: Pick<DatabaseOptions, 'url' | 'patience'>) {
  const client = openClient({ ...options, applicationName: 'order-gateway checkout' }, (db) => db);
  const run = async <Result>(statement: (db: PostgresJsDatabase) => Promise<Result>): Promise<Result> => {
    try {
      return await client.run(statement);
    } catch (error) {
      throw isDuplicate(error) ? error : redact(error);
    }
  };
  const first = async <Row>(statement: (db: PostgresJsDatabase) => Promise<Row[]>): Promise<Row | undefined> =>
    (await run(statement))[0];
  return {
    run,
    first,
    close: () => client.close(),
    ...findAttempts({ run, first }),
    ...changeAttempts({ run, first }),
    ...scheduleWork({ run, first }),
    ...manageConnections({ run, first }),
    ...storeDemoPayments({ run, first }),
  };
}
