import type { AccountId } from '@order-gateway/domain/accounts';
import { merchantIdOf } from '@order-gateway/domain/links';
import type { OrderStore } from '@order-gateway/domain/orders';
import type { Closable } from './connections/client.ts';
import { openEventFeed, type PostgresEventFeed } from './events/event-feed.ts';
import { type OnServers, openOnServers, waitMsMax } from './merchant-servers.ts';
import { openOrderChanges } from './orders/change/order-changes.ts';
import { openServerCheck, type ServerCheck } from './orders/change/server-check.ts';
import { openSweeps, type SweepResult, type Sweeps } from './orders/change/sweeps.ts';
import { type CreationOptions, openCreations } from './orders/create/order-creations.ts';
import { withExpiryStored } from './orders/find/expired-orders.ts';
import { openOrderCounts } from './orders/find/order-counts.ts';
import { openOrderLists } from './orders/find/order-lists.ts';
import { type OrderQueries, openOrderQueries } from './orders/find/order-queries.ts';
import { openRefundLists, type RefundLists, refundListsOn } from './orders/find/refund-lists.ts';

export type { RefundHealth } from './orders/find/refund-lists.ts';

/** An order store with its connections. */
export interface PostgresOrderStore
  extends OrderStore,
    Omit<PostgresEventFeed, 'close'>,
    Pick<Sweeps, 'expire' | 'deleteOldEvents'>,
    Pick<OrderQueries, 'findLogo'>,
    Pick<RefundLists, 'readRefundHealth'>,
    Closable {
  /**
   * Resolves to the share of the merchants whose server can commit, which is 1 if there is only the server to which the
   * gateway connects. Rejects with an error that contains no values.
   */
  readServedRatio(): Promise<number>;
  /** Milliseconds since the oldest order that is not stored yet was received; 0 if there is none. */
  oldestOrderMs(): number;
}

/** The operations of a store that concern one merchant. The last argument of each is its time limit. */
type MerchantOperations = Omit<OrderStore & Pick<PostgresEventFeed, 'listEvents'>, 'listPendingRefunds'>;

/** Returns the merchant of a call, from its first argument. */
const merchantOf: {
  readonly [Name in keyof MerchantOperations]: (item: Parameters<MerchantOperations[Name]>[0]) => AccountId;
} = {
  create: ({ merchantId }) => merchantId,
  findByOrderId: (merchantId) => merchantId,
  findByServiceOrderId: (merchantId) => merchantId,
  findByPaymentId: (merchantId) => merchantId,
  findByToken: merchantIdOf,
  findForPage: merchantIdOf,
  findForPayment: merchantIdOf,
  change: ({ order }) => order.merchantId,
  refusePayment: ({ order }) => order.merchantId,
  changeReversals: ({ order }) => order.merchantId,
  startPayment: ({ merchantId }) => merchantId,
  endPayment: ({ merchantId }) => merchantId,
  expireNow: ({ merchantId }) => merchantId,
  list: (merchantId) => merchantId,
  countByDay: (merchantId) => merchantId,
  listEvents: (merchantId) => merchantId,
};

/**
 * Opens a store of orders in PostgreSQL. If merchants are on different servers, each server has its own queues and
 * connections, and a call uses those of its merchant's server. Operations that concern all merchants have separate
 * ones.
 */
export function openOrderStore(database: CreationOptions): PostgresOrderStore {
  const store = openStore(database);
  if (!database.isDistributed) return store;
  const servers = openOnServers(database, openServerStore);
  const findNewEvents = servers.onEach((store, after: Parameters<PostgresEventFeed['findNewEvents']>[0]) =>
    store.findNewEvents(after),
  );
  const routed = Object.entries(merchantOf).map(([name, find]) => {
    const call = (...args: unknown[]) =>
      servers.call(Reflect.apply(find, undefined, args), Number(args.at(-1)), (store, timeoutMs) =>
        Reflect.apply(store[name as keyof MerchantOperations], undefined, [...args.slice(0, -1), timeoutMs]),
      );
    return [name, call] as const;
  });
  return {
    ...store,
    ...(Object.fromEntries(routed) as unknown as MerchantOperations),
    oldestOrderMs: () => Math.max(0, ...servers.opened().map(({ oldestOrderMs }) => oldestOrderMs())),
    ...refundListsOn(servers),
    readServedRatio: readServedRatioOn(servers),
    findNewEvents: async (after) =>
      (await findNewEvents(after)).reduce((all, found) => all.union(found), new Set<AccountId>()),
    expire: sweepOn(servers, (store) => store.expire()),
    deleteOldEvents: sweepOn(servers, (store) => store.deleteOldEvents()),
    async close() {
      await Promise.all([store.close(), servers.close()]);
    },
  };
}

/** Returns a job that sweeps all servers. */
function sweepOn<Opened>(servers: OnServers<Opened>, sweep: (opened: Opened) => Promise<SweepResult>) {
  const sweepEach = servers.onEach(sweep);
  return async (): Promise<SweepResult> => {
    const results = await sweepEach(undefined);
    return {
      count: results.reduce((total, { count }) => total + count, 0),
      isDone: results.every(({ isDone }) => isDone),
    };
  };
}

/** Opens the store of one server's merchants. */
function openServerStore(database: CreationOptions): PostgresOrderStore & ServerCheck {
  const [store, check] = [openStore(database), openServerCheck(database)];
  return {
    ...store,
    ...check,
    async close() {
      await Promise.all([store.close(), check.close()]);
    },
  };
}

/** Returns a function that adds up the shares of the servers that can commit. */
function readServedRatioOn(servers: OnServers<ServerCheck>) {
  const readShares = servers.onEach(async ({ canCommit }, _, share) => ((await canCommit()) ? share : 0), waitMsMax);
  return async () => Number((await readShares(undefined)).reduce((ratio, share) => ratio + share, 0).toFixed(3));
}

function openStore(database: CreationOptions): PostgresOrderStore {
  const creations = openCreations(database);
  const { expireOrder, ...changes } = openOrderChanges(database);
  const sweeps = openSweeps(database);
  const queries = openOrderQueries(database, expireOrder);
  const lists = openOrderLists(database, expireOrder);
  const counts = openOrderCounts(database);
  const refunds = openRefundLists(database);
  const feed = openEventFeed(database);
  return {
    ...queries,
    ...changes,
    ...sweeps,
    ...lists,
    ...counts,
    ...refunds,
    ...feed,
    readServedRatio: async () => 1,
    create: withExpiryStored(creations, expireOrder),
    oldestOrderMs: creations.oldestMs,
    async close() {
      await Promise.all([creations, queries, lists, counts, refunds, feed].map((part) => part.close()));
      await Promise.all([changes.close(), sweeps.close()]);
    },
  };
}
