import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { type DatabaseClient, type DatabaseOptions, openClient, plansEveryRun } from '../connections/client.ts';
import { queueLimits } from '../queue-limits.ts';
import { createBatchQueue } from './batch-queue.ts';

/** The connection of one kind of lists. */
export function openListClient<Statements>(options: DatabaseOptions, prepare: (db: PostgresJsDatabase) => Statements) {
  return openClient({ ...options, applicationName: 'order-gateway lists', settings: plansEveryRun }, prepare);
}

/** The queue of one kind of lists, which closes its client. Each page is read by itself. */
export function openListQueue<Statement, Request, Page>(
  { name, meter }: Pick<DatabaseOptions, 'meter'> & { readonly name: string },
  client: DatabaseClient<Statement>,
  read: (client: DatabaseClient<Statement>, request: Request) => Promise<Page>,
) {
  return createBatchQueue<DatabaseClient<Statement>, Request, Page>({
    name,
    meter,
    clients: [client],
    batchMax: 1,
    waitingMax: queueLimits.lists.waitingMax,
    run: (client, requests) => Promise.all(requests.map((request) => read(client, request))),
  });
}
