import type { OrderStore } from '@order-gateway/domain/orders';
import type { Closable } from './connections/client.ts';
import { openEventFeed, type PostgresEventFeed } from './events/event-feed.ts';
import { openOrderChanges } from './orders/change/order-changes.ts';
import { openSweeps, type Sweeps } from './orders/change/sweeps.ts';
import { type CreationOptions, openCreations, openDistributedCreations } from './orders/create/order-creations.ts';
import { withExpiryStored } from './orders/find/expired-orders.ts';
import { openOrderCounts } from './orders/find/order-counts.ts';
import { openOrderLists } from './orders/find/order-lists.ts';
import { type OrderQueries, openOrderQueries } from './orders/find/order-queries.ts';
import { openRefundLists, type RefundLists } from './orders/find/refund-lists.ts';

export type { RefundHealth } from './orders/find/refund-lists.ts';

/** An order store with its connections. */
export interface PostgresOrderStore
  extends OrderStore,
    Omit<PostgresEventFeed, 'close'>,
    Pick<Sweeps, 'expire' | 'deleteOldEvents'>,
    Pick<OrderQueries, 'findLogo'>,
    Pick<RefundLists, 'readRefundHealth'>,
    Closable {
  /** Milliseconds since the oldest order that is not stored yet was received; 0 if there is none. */
  oldestOrderMs(): number;
}

/** Opens a store of orders in PostgreSQL. */
export function openOrderStore(database: CreationOptions): PostgresOrderStore {
  const creations = database.isDistributed ? openDistributedCreations(database) : openCreations(database);
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
    create: withExpiryStored(creations, expireOrder),
    oldestOrderMs: creations.oldestMs,
    async close() {
      await Promise.all([
        creations.close(),
        queries.close(),
        lists.close(),
        counts.close(),
        refunds.close(),
        feed.close(),
      ]);
      await Promise.all([changes.close(), sweeps.close()]);
    },
  };
}
