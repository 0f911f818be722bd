import { type Credentials, hashSecret } from '@order-gateway/domain/accounts';
import type {
  Managed,
  ManagementCaller,
  ManagementOutcome,
  MerchantManagement,
} from '@order-gateway/domain/management';
import { systemActor } from '@order-gateway/runtime/process';
import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { clientSecretsOn } from './accounts/account-admin.ts';
import { findAccount } from './accounts/account-directory.ts';
import {
  type AdminOptions,
  openAdministration,
  openOperatorClient,
  type Run,
  runOn,
} from './accounts/admin-connection.ts';
import type { Actor } from './accounts/audit-log.ts';
import { brandsOn } from './accounts/brands.ts';
import { consoleActor } from './accounts/console-sessions.ts';
import { createBatchQueue } from './batches/batch-queue.ts';
import type { Closable, DatabaseClient, DatabaseOptions } from './connections/client.ts';
import { isCallerEnded } from './connections/errors.ts';
import { openOnServers } from './merchant-servers.ts';
import { queueLimits } from './queue-limits.ts';
import { accounts, clientSecrets, isLiveSecret } from './schema.ts';
import { webhookEndpointsOn } from './webhooks/webhook-endpoints.ts';

/** Opens the management by merchants on a connection to each server of merchants, so that it delays no other call. */
export function openMerchantManagement(options: DatabaseOptions): MerchantManagement & Closable {
  const servers = openOnServers(options, openServerManagement);
  return {
    perform: (caller, work, timeoutMs) =>
      servers.call(caller.merchantId, timeoutMs, ({ perform }, timeoutMs) => perform(caller, work, timeoutMs)),
    close: servers.close,
  };
}

function openServerManagement(options: DatabaseOptions): MerchantManagement & Closable {
  const queue = createBatchQueue<
    DatabaseClient<PostgresJsDatabase>,
    { readonly clientId: string; readonly work: (run: Run) => Promise<ManagementOutcome<unknown>> },
    ManagementOutcome<unknown>
  >({
    ...options,
    name: 'management',
    clients: [openAdministration(options, 'management')],
    ...queueLimits.management,
    // A page of deliveries takes longer than a change.
    ownerOf: ({ clientId }) => clientId,
    run: (client, items) => Promise.all(items.map(({ work }) => work(runOn(client)))),
  });
  return {
    perform: <Value>(caller: ManagementCaller, work: (managed: Managed) => Promise<Value>, timeoutMs: number) =>
      queue.add({ clientId: caller.clientId, work: (run) => performOn(run, caller, work) }, timeoutMs) as Promise<
        ManagementOutcome<Value>
      >,
    close: queue.close,
  };
}

/**
 * Opens the same management for an operator, on one connection that the first statement opens. The audit log records
 * changes under the name in `actor`. Rejects with errors that contain no values.
 */
export function openOperatorManagement({ actor = systemActor(), ...options }: AdminOptions) {
  const { run, ...client } = openOperatorClient(options, 'management');
  return {
    /** Returns an account, even if it is disabled; `undefined` if there is none. */
    findAccount: (clientId: string) => run((db) => findAccount(db, clientId)),
    /** Performs work for a merchant. An operator does not need the merchant's credentials. */
    perform: async <Value>(
      _merchant: unknown,
      work: (managed: Managed) => Promise<Value>,
    ): Promise<ManagementOutcome<Value>> => ({ kind: 'done', value: await work(managedBy(run, actor)) }),
    ...client,
  };
}

function managedBy(run: Run, actor: Actor): Managed {
  return { ...webhookEndpointsOn(run, actor), ...clientSecretsOn(run, actor), ...brandsOn(run, actor) };
}

async function performOn<Value>(
  run: Run,
  caller: ManagementCaller,
  work: (managed: Managed) => Promise<Value>,
): Promise<ManagementOutcome<Value>> {
  const { sessionDigest } = caller;
  if (sessionDigest === undefined) {
    const found = await run((db) => db.execute(liveCaller(caller)));
    if (found.length === 0) return { kind: 'unauthenticated' };
  }
  // The lock delays a revocation until the change has committed. If the revocation commits first, the lock fails and
  // the statement is repeated. A session is not checked first: the console has just found it, and this check would
  // reject a session that may only read.
  const actor =
    sessionDigest === undefined
      ? sql`${liveCaller(caller)} for share of ${sql.identifier('client_secrets')}`
      : sql`${consoleActor(sessionDigest)} for share of ${sql.identifier('console_sessions')}`;
  try {
    return { kind: 'done', value: await work(managedBy(run, actor)) };
  } catch (error) {
    if (isCallerEnded(error)) return { kind: 'unauthenticated' };
    throw error;
  }
}

/** Selects a caller's client id as `name`, if the credentials are valid. */
function liveCaller({ clientId, clientSecret }: Credentials): SQL {
  const isOfCaller = and(
    eq(accounts.clientId, clientId),
    isNull(accounts.disabledAt),
    eq(clientSecrets.secretHash, hashSecret(clientSecret)),
    isLiveSecret,
  );
  return sql`
    select ${accounts.clientId} as name from ${accounts} join ${clientSecrets} on ${clientSecrets.accountId} = ${accounts.id}
    where ${isOfCaller}`;
}
