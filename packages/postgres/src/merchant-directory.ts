import type { Account, ClientLookup, Merchant, MerchantDirectory, MerchantId } from '@gateway/domain/accounts/merchant';
import { and, eq, isNull, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batch-queue.ts';
import { arrayLiteral, type Client, type DatabaseOptions, openClient } from './client.ts';
import { clientSecrets, isLiveSecret, merchants } from './schema.ts';

/** Connections for lookups: one takes a fraction of a millisecond, and the gateway caches most of them. */
const connections = 2;

/**
 * Lookups in one batch, which share a statement of a millisecond or two. A flood of made-up ids makes a process so busy that a
 * response of the database waits ten times as long; with batches of 128 the queue only grew.
 */
const batchMax = 1_024;

/**
 * Lookups that may wait for a connection; any more are `overloaded` at once. More than the clients that a gateway caches and the
 * unknown clients that it looks up together, so that the latter do not exclude merchants.
 */
const waitingMax = 16_384;

/** The longest that a call may take: no call waits for a later lookup. */
const lookupTimeoutMs = 5_000;

/** The directory with its connections. */
export interface PostgresMerchantDirectory extends MerchantDirectory {
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

type FindClients = ReturnType<typeof prepareFindClients>;

/** Reads clients and their live secrets. Lookups that arrive together share a prepared statement. */
export function openMerchantDirectory(options: DatabaseOptions): PostgresMerchantDirectory {
  const queue = createBatchQueue<Client<FindClients>, string, ClientLookup>({
    name: 'clients',
    meter: options.meter,
    clients: Array.from({ length: connections }, () =>
      openClient({ ...options, applicationName: 'order-gateway clients' }, prepareFindClients),
    ),
    batchMax,
    waitingMax,
    run: findBatch,
  });
  return {
    async findClient(clientId): Promise<ClientLookup> {
      const outcome = await queue.add(clientId, lookupTimeoutMs);
      return outcome.kind === 'deadline_exceeded' ? { kind: 'unavailable' } : outcome;
    },
    close: queue.close,
  };
}

function prepareFindClients(db: PostgresJsDatabase) {
  return (
    db
      .select({
        clientId: merchants.clientId,
        account: {
          kind: merchants.kind,
          id: merchants.id,
          name: merchants.name,
          checksumMode: merchants.checksumMode,
          mode: merchants.mode,
          defaultLifetimeSeconds: merchants.defaultLifetimeSeconds,
          rateLimit: merchants.rateLimit,
        },
        secret: { hash: clientSecrets.secretHash, endsAt: clientSecrets.endsAt },
      })
      .from(merchants)
      .leftJoin(clientSecrets, and(eq(clientSecrets.merchantId, merchants.id), isLiveSecret))
      // A disabled client is like one that does not exist.
      .where(
        sql`${merchants.clientId} = any(${sql.placeholder('clientIds')}::text[]) and ${isNull(merchants.disabledAt)}`,
      )
      .prepare('find_clients')
  );
}

async function findBatch(client: Client<FindClients>, clientIds: readonly string[]): Promise<ClientLookup[]> {
  const rows = await client.run((find) => find.execute({ clientIds: arrayLiteral(clientIds, (id) => id) }));
  const rowsOf = Map.groupBy(rows, ({ clientId }) => clientId);
  return clientIds.map((clientId) => {
    const found = rowsOf.get(clientId) ?? [];
    const account = found[0]?.account;
    if (account === undefined) return { kind: 'unknown' };
    const secrets = found.flatMap(({ secret }) =>
      secret === null ? [] : [{ hash: secret.hash, endsAtMs: secret.endsAt?.getTime() ?? null }],
    );
    return { kind: 'found', client: { account: accountOf(account), secrets } };
  });
}

type AccountRow = Omit<Merchant, 'kind' | 'id'> & { readonly kind: Account['kind']; readonly id: number };

function accountOf({ kind, id, name, ...settings }: AccountRow): Account {
  const common = { id: id as MerchantId, name };
  return kind === 'merchant' ? { kind, ...common, ...settings } : { kind, ...common };
}
