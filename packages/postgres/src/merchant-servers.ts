import type { AccountId } from '@order-gateway/domain/accounts';
import type { StoreFailure } from '@order-gateway/domain/result';
import { settledWithin } from '@order-gateway/runtime/settled-within';
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
import { unlessUnreachable } from './connections/errors.ts';
import { queueLimits } from './queue-limits.ts';
import { orders } from './schema.ts';

/**
 * The age from which a cached lookup is refreshed in the background. If the cached server is wrong, it forwards the
 * order, which is only slower.
 */
const cachedMs = 10_000;
const cachedMax = 100_000;

/**
 * The caller does not wait longer than this for a server. The result of a call that ends later is collected with the
 * next call, so the limit is longer than the claims of a busy server take, and shorter than the timeout of a statement.
 */
const lateAfterMs = 1_000;

/** The longest timer of Node.js, for calls that end by themselves. */
export const waitMsMax = 2 ** 31 - 1;

interface FoundServer {
  readonly kind: 'found';
  /** The number of a server in the metadata of Citus; 0 is the coordinator. */
  readonly server: number;
}

/** A server that has merchants. */
interface ListedServer {
  readonly number: number;
  /** The id of any of its merchants, whether or not that merchant exists. */
  readonly anyMerchant: AccountId;
  /** Its share of all shards, and so about of all merchants. */
  readonly share: number;
}

/**
 * The resources of each server of merchants. On Citus, they are opened for a server with the first call of one of its
 * merchants. A database without Citus is one server.
 */
export interface OnServers<Opened> extends Closable {
  /**
   * Makes a call with the resources of the merchant's server, within the rest of `timeoutMs`. A lost or hanging server
   * delays only its own merchants.
   */
  call<Outcome>(
    merchantId: AccountId,
    timeoutMs: number,
    use: (opened: Opened, timeoutMs: number) => Promise<Outcome>,
  ): Promise<Outcome | StoreFailure>;
  /**
   * Returns a function that makes a call with the resources of each server, at the same time, and returns the outcomes.
   * It waits up to `waitMs`, by default {@link lateAfterMs}. The outcome of a late call is returned by a later call of
   * the function, and until then, the server gets no other. Therefore, a lost or hanging server delays only its own
   * merchants. `use` also gets the server's share of all merchants. Rejects if one of the calls does.
   */
  onEach<Input, Outcome>(
    use: (opened: Opened, input: Input, share: number) => Promise<Outcome>,
    waitMs?: number,
  ): (input: Input) => Promise<Outcome[]>;
  /**
   * Makes one call with the resources of each server, at the same time, and returns the outcomes. Each call has a time
   * limit of half of `timeoutMs`, so that those of other servers are returned in time if a server is lost or hangs.
   */
  callEach<Outcome>(
    timeoutMs: number,
    use: (opened: Opened, timeoutMs: number) => Promise<Outcome>,
  ): Promise<readonly Outcome[]>;
  /** Returns the resources that are open. */
  opened(): IteratorObject<Opened>;
}

/** Opens the lookup of merchants' servers, and through it the resources of each server. */
export function openOnServers<Opened extends Closable>(
  options: DatabaseOptions,
  open: (options: DatabaseOptions) => Opened,
): OnServers<Opened> {
  if (!options.isDistributed) {
    const only = open(options);
    return {
      call: (_, timeoutMs, use) => use(only, timeoutMs),
      onEach: (use) => async (input) => [await use(only, input, 1)],
      callEach: async (timeoutMs, use) => [await use(only, timeoutMs)],
      opened: () => [only].values(),
      close: only.close,
    };
  }
  const servers = openMerchantServers(options);
  const openedOn = new Map<number, Opened>();
  const openOn = (number: number) =>
    openedOn.getOrInsertComputed(number, () =>
      open({ ...options, server: { number, anyMerchant: () => servers.anyMerchantOf(number) } }),
    );
  return {
    async call(merchantId, timeoutMs, use) {
      const deadlineMs = performance.now() + timeoutMs;
      const found = await servers.find(merchantId, timeoutMs);
      if (found.kind !== 'found') return found;
      return use(openOn(found.server), deadlineMs - performance.now());
    },
    onEach<Input, Outcome>(
      use: (opened: Opened, input: Input, share: number) => Promise<Outcome>,
      waitMs = lateAfterMs,
    ) {
      const collect = collectOutcomes<ListedServer, Outcome>(({ number }) => number, waitMs);
      return async (input: Input) => {
        const listed = await servers.list();
        return collect(listed, ({ number, share }) => use(openOn(number), input, share));
      };
    },
    async callEach(timeoutMs, use) {
      const listed = await settledWithin(timeoutMs / 2, servers.list());
      if (listed === 'deadline_exceeded') return [];
      return Promise.all(listed.map(({ number }) => use(openOn(number), timeoutMs / 2)));
    },
    opened: () => openedOn.values(),
    async close() {
      await Promise.all([servers, ...openedOn.values()].map(({ close }) => close()));
    },
  };
}

/**
 * Returns a function that makes a call for each item, and returns the outcomes of all calls that have ended, each once.
 * Until the outcome of a call is returned, no other call with its key is made. Otherwise the outcomes of two claims
 * could together exceed the limit of a claim. Waits up to `waitMs` for the calls that it makes. If a call was rejected,
 * it rejects, and keeps the other outcomes.
 */
function collectOutcomes<Item, Outcome>(keyOf: (item: Item) => unknown, waitMs: number) {
  const inFlight = new Set<unknown>();
  const ended = new Map<unknown, Outcome>();
  const failures: unknown[] = [];
  return async (items: readonly Item[], make: (item: Item) => Promise<Outcome>): Promise<Outcome[]> => {
    const made = items
      .filter((item) => !(inFlight.has(keyOf(item)) || ended.has(keyOf(item))))
      .map(async (item) => {
        inFlight.add(keyOf(item));
        try {
          ended.set(keyOf(item), await make(item));
        } catch (error) {
          failures.push(error);
        } finally {
          inFlight.delete(keyOf(item));
        }
      });
    await settledWithin(waitMs, Promise.all(made));
    if (failures.length > 0) throw failures.shift();
    const outcomes = [...ended.values()];
    ended.clear();
    return outcomes;
  };
}

/**
 * Finds which server of a Citus cluster has the orders of a merchant. Reads the metadata of Citus on a separate
 * connection. The coordinator has it, so this works while a worker is lost.
 */
function openMerchantServers(options: DatabaseOptions) {
  const client = openClient({ ...options, applicationName: 'order-gateway merchant servers' }, prepareStatements);
  const queue = createBatchQueue<DatabaseClient<Statements>, AccountId, FoundServer>({
    name: 'merchant servers',
    meter: options.meter,
    clients: [client],
    ...queueLimits.merchantServers,
    async run(client, merchantIds) {
      const rows = await client.run(({ find }) => find(arrayLiteral(merchantIds, (id) => id)));
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
  let listed: readonly ListedServer[] = [];
  let listedAtMs = Number.NEGATIVE_INFINITY;
  return {
    /**
     * Returns the servers that have merchants, or those of the previous call while the metadata can't be read. Rejects
     * only because of a bug.
     */
    async list(): Promise<readonly ListedServer[]> {
      if (performance.now() - listedAtMs <= cachedMs) return listed;
      const rows = await unlessUnreachable(client.run(({ list }) => list()));
      if (rows === undefined) return listed;
      const shards = rows.reduce((total, row) => total + row.shards, 0);
      listed = rows.map(({ shards: ownShards, ...row }) => ({ ...row, share: ownShards / shards }));
      if (rows.length === 0) listed = [{ number: 0, anyMerchant: 0 as AccountId, share: 1 }];
      listedAtMs = performance.now();
      return listed;
    },
    /** Returns the id of any merchant of a server that was listed, whether or not that merchant exists. */
    anyMerchantOf: (server: number) => listed.find(({ number }) => number === server)?.anyMerchant ?? (0 as AccountId),
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

/** Prepares the lookups. They return nothing if the orders are not distributed. */
function prepareStatements(db: PostgresJsDatabase) {
  const ordersTable = sql.raw(`'${getTableName(orders)}'::regclass`);
  const placement = sql`pg_dist_placement on shardid = get_shard_id_for_distribution_column(${ordersTable}, merchant.id)`;
  const shards = sql`pg_dist_shard where logicalrelid = ${ordersTable}`;
  return {
    find: (ids: string) =>
      db.execute<{ id: string; server: number }>(sql`
        select merchant.id, groupid as server
        from unnest(case when exists (select from ${shards}) then ${ids}::bigint[] end) as merchant (id) join ${placement}`),
    /** There are enough ids for each shard to have one. */
    list: () =>
      db.execute<{ number: number; anyMerchant: AccountId; shards: number }>(sql`
        select groupid as number, min(merchant.id)::int as "anyMerchant", count(distinct shardid)::int as shards
        from (select generate_series(1, 16 * count(*)) as id from ${shards}) as merchant join ${placement}
        group by groupid`),
  };
}
