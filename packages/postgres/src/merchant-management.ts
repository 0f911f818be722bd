import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { clientSecretsOn } from './accounts/account-admin.ts';
import { openAdministration, type Run, runOn } from './accounts/admin-connection.ts';
import { brandsOn } from './accounts/brands.ts';
import { createBatchQueue, type QueueFailure } from './batches/batch-queue.ts';
import type { DatabaseClient, DatabaseOptions } from './connections/client.ts';
import { webhookEndpointsOn } from './webhooks/webhook-endpoints.ts';

/** Calls that may wait for the connection: a second's work. Any more are `overloaded` at once. */
const waitingMax = 128;

/** What a merchant manages. */
export type Managed = ReturnType<typeof webhookEndpointsOn> &
  ReturnType<typeof clientSecretsOn> &
  ReturnType<typeof brandsOn>;

/** The outcome of a piece of work. After the last three, it may have been done. */
export type ManagementOutcome<Value> = { readonly kind: 'done'; readonly value: Value } | QueueFailure;

/** What merchants manage themselves, with its connection. */
export interface MerchantManagement {
  /** Does a piece of work, whose changes the audit log has under the name of `actor`. Completes within `timeoutMs`. */
  perform<Value>(
    actor: string,
    work: (managed: Managed) => Promise<Value>,
    timeoutMs: number,
  ): Promise<ManagementOutcome<Value>>;
  /** Lets running calls finish, then closes the connection. */
  close(): Promise<void>;
}

/** Opens what merchants manage, on one connection, so that it delays no other call. */
export function openMerchantManagement(options: DatabaseOptions): MerchantManagement {
  const queue = createBatchQueue<
    DatabaseClient<PostgresJsDatabase>,
    (run: Run) => Promise<unknown>,
    ManagementOutcome<unknown>
  >({
    name: 'management',
    meter: options.meter,
    clients: [openAdministration(options, 'management')],
    batchMax: 1,
    waitingMax,
    run: (client, works) =>
      Promise.all(works.map(async (work) => ({ kind: 'done' as const, value: await work(runOn(client)) }))),
  });
  return {
    perform: <Value>(actor: string, work: (managed: Managed) => Promise<Value>, timeoutMs: number) =>
      queue.add(
        (run) => work({ ...webhookEndpointsOn(run, actor), ...clientSecretsOn(run, actor), ...brandsOn(run, actor) }),
        timeoutMs,
      ) as Promise<ManagementOutcome<Value>>,
    close: queue.close,
  };
}
