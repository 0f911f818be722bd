import type { AccountId } from '@order-gateway/domain/accounts';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import {
  type DatabaseClient,
  type DatabaseOptions,
  openClient,
  openTransactionClient,
  plansEveryRun,
} from '../connections/client.ts';
import { queueLimits } from '../queue-limits.ts';
import { createBatchQueue } from './batch-queue.ts';

/**
 * The transaction of a page, which reads ranges in the order of their index. PostgreSQL underestimates the rows
 * of a large merchant (docs/decisions/082-no-statistics-of-merchants.md), and would sometimes read all of them to sort
 * them.
 */
const page = { begin: 'begin; set local enable_seqscan = off; set local enable_bitmapscan = off', returnsEarly: true };

/**
 * Opens the client of one kind of list. On Citus, it opens no transaction, whose settings would not reach the worker,
 * and which would double the CPU time of the coordinator. The worker plans every run there in any case.
 */
export function openListClient<Statements>(options: DatabaseOptions, prepare: (db: PostgresJsDatabase) => Statements) {
  const connection = { ...options, applicationName: 'order-gateway lists' };
  return options.server
    ? openClient(connection, prepare)
    : openTransactionClient({ ...connection, settings: plansEveryRun }, page, prepare);
}

/**
 * Opens the queue of one kind of list; closing it closes its client. Pages don't share statements, and merchants take
 * turns: the page of one merchant waits for at most one page of each other merchant, regardless of how many they
 * request.
 */
export function openListQueue<Statement, Request extends { readonly merchantId: AccountId }, Page>(
  options: Pick<DatabaseOptions, 'server' | 'meter'> & { readonly name: string },
  client: DatabaseClient<Statement>,
  read: (client: DatabaseClient<Statement>, request: Request) => Promise<Page>,
) {
  return createBatchQueue<DatabaseClient<Statement>, Request, Page>({
    ...options,
    clients: [client],
    ...queueLimits.lists,
    ownerOf: ({ merchantId }) => merchantId,
    run: (client, requests) => Promise.all(requests.map((request) => read(client, request))),
  });
}
