/**
 * The bounds of each queue for the database, each with its reason. `connections` are those of one process. `batchMax` is the most
 * that shares one statement; absent: each has its own. Above `waitingMax`, any more are `overloaded` at once.
 */
export const queueLimits = {
  /** New orders (docs/decisions/013-batches.md). */
  orders: { batchMax: 1_024, waitingMax: 4_096 },
  /** Changes of orders. Each waits for a commit, which four share. A second's work may wait. */
  changes: { connections: 4, waitingMax: 2_048 },
  /** Expiries that a read stores. Anyone can request a page, so they must not slow down changes. */
  expiries: { connections: 1, waitingMax: 2_048 },
  /** Lookups of clients. One takes a fraction of a millisecond. A tenth of a second's work may wait. */
  lookups: { connections: 2, batchMax: 128, waitingMax: 1_024 },
  /** Lookups for pages, which anyone can request. They must slow down neither clients' lookups nor new orders. */
  pages: { connections: 1, waitingMax: 256 },
  /** Logos, on the connection of pages. A browser loads each once. */
  logos: { waitingMax: 64 },
  /** Pages of lists, on one connection for each kind of list. Half a second's work may wait. */
  lists: { waitingMax: 256 },
  /**
   * Lookups of accounts, most of which the gateway caches. A batch takes a millisecond or two. A flood of made-up ids makes a process
   * so busy that a response of the database waits ten times as long; with batches of 128 the queue only grew. More may wait than the
   * accounts that a gateway caches and the unknown ones that it looks up together, so that the latter do not exclude merchants.
   */
  accounts: { connections: 2, batchMax: 1_024, waitingMax: 16_384 },
  /** What merchants manage, on one connection. A second's work may wait. */
  management: { waitingMax: 128 },
  /** Results of deliveries. More may wait than deliveries that a process has in flight. */
  deliveries: { batchMax: 128, waitingMax: 4_096 },
  /** Lookups of the server that has a merchant's orders, on Citus. */
  merchantServers: { batchMax: 1_024, waitingMax: 4_096 },
};
