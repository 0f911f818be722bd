import type { AccountId } from '@order-gateway/domain/accounts';
import type { StoreFailure } from '@order-gateway/domain/result';
import { getTableName, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batches/batch-queue.ts';
import {
  arrayLiteral,
  type Closable,
  type DatabaseClient,
  type DatabaseOptions,
  openClient,
} from './connections/client.ts';
import { queueLimits } from './queue-limits.ts';
import { orders } from './schema.ts';

/**
 * The age from which a cached lookup is refreshed in the background. If the cached server is wrong, it forwards the
 * order, which is only slower.
 */
const cachedMs = 10_000;
const cachedMax = 100_000;

interface FoundServer {
  readonly kind: 'found';
  /** The number of a server in the metadata of Citus; 0 is the coordinator. */
  readonly server: number;
}

/**
 * What each server of merchants has. On Citus, it is opened for a server with the first call of one of its merchants.
 * A database without Citus is one server.
 */
export interface OnServers<Opened> extends Closable {
  /**
   * Makes a call to what the merchant's server has, with the time that is left of `timeoutMs`. So a lost or hanging
   * server delays only its own merchants.
   */
  call<Outcome>(
    merchantId: AccountId,
    timeoutMs: number,
    use: (opened: Opened, timeoutMs: number) => Promise<Outcome>,
  ): Promise<Outcome | StoreFailure>;
  /** Returns what is open. */
  opened(): IteratorObject<Opened>;
}

/** Opens the lookup of merchants' servers, and with it what each server has. */
export function openOnServers<Opened extends Closable>(
  options: DatabaseOptions,
  open: (options: DatabaseOptions) => Opened,
): OnServers<Opened> {
  if (!options.isDistributed) {
    const only = open(options);
    return { call: (_, timeoutMs, use) => use(only, timeoutMs), opened: () => [only].values(), close: only.close };
  }
  const servers = openMerchantServers(options);
  const openedOn = new Map<number, Opened>();
  return {
    async call(merchantId, timeoutMs, use) {
      const deadlineMs = performance.now() + timeoutMs;
      const found = await servers.find(merchantId, timeoutMs);
      if (found.kind !== 'found') return found;
      const opened = openedOn.getOrInsertComputed(found.server, (server) => open({ ...options, server }));
      return use(opened, deadlineMs - performance.now());
    },
    opened: () => openedOn.values(),
    async close() {
      await Promise.all([servers, ...openedOn.values()].map(({ close }) => close()));
    },
  };
}

/**
 * Finds which server of a Citus cluster has the orders of a merchant. Reads the metadata of Citus on a separate
 * connection. The coordinator has it, so this works while a worker is lost.
 */
function openMerchantServers(options: DatabaseOptions) {
  const queue = createBatchQueue<DatabaseClient<Statements>, AccountId, FoundServer>({
    name: 'merchant servers',
    meter: options.meter,
    clients: [openClient({ ...options, applicationName: 'order-gateway merchant servers' }, prepareStatements)],
    ...queueLimits.merchantServers,
    async run(client, merchantIds) {
      const rows = await client.run((find) => find(arrayLiteral(merchantIds, (id) => id)));
      const serverOf = new Map(rows.map(({ id, server }) => [Number(id), server]));
      return merchantIds.map((id) => ({ kind: 'found', server: serverOf.get(id) ?? 0 }));
    },
  });
  const cache = new Map<AccountId, { readonly found: FoundServer; readonly readAtMs: number }>();
  const read = async (merchantId: AccountId, timeoutMs: number) => {
    const found = await queue.add(merchantId, timeoutMs);
    if (found.kind !== 'found') return found;
    if (cache.size >= cachedMax) cache.clear();
    cache.set(merchantId, { found, readAtMs: performance.now() });
    return found;
  };
  return {
    /** Resolves within `timeoutMs`. */
    async find(merchantId: AccountId, timeoutMs: number): Promise<FoundServer | StoreFailure> {
      const cached = cache.get(merchantId);
      if (cached === undefined) return read(merchantId, timeoutMs);
      if (performance.now() - cached.readAtMs > cachedMs) {
        cache.set(merchantId, { ...cached, readAtMs: performance.now() });
        read(merchantId, timeoutMs).catch(() => {});
      }
      return cached.found;
    },
    close: queue.close,
  };
}

type Statements = ReturnType<typeof prepareStatements>;

/**
 * Prepares the lookup. It returns nothing if the orders are not distributed, because `pg_dist_partition` has no row.
 */
function prepareStatements(db: PostgresJsDatabase) {
  return (ids: string) =>
    db.execute<{ id: string; server: number }>(sql`
      select merchant.id, groupid as server
      from unnest(${ids}::bigint[]) as merchant (id)
      join pg_dist_partition on logicalrelid = '${sql.raw(getTableName(orders))}'::regclass
      join pg_dist_placement on shardid = get_shard_id_for_distribution_column(logicalrelid, merchant.id)`);
}
