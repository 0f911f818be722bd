/**
 * The limits of each database queue, each with its reason. `connections` are those of one process. `batchMax` is the
 * maximum number of items that share one statement; absent: each item has its own. Items beyond `waitingMax` are
 * `overloaded` immediately.
 */
export const queueLimits = {
  /**
   * New orders (docs/decisions/013-batches.md). `waitingMax` bounds callers other than the gateway, whose
   * `admissionLimits` refuse a call before that many orders wait.
   */
  orders: { batchMax: 1_024, waitingMax: 4_096 },
  /** Changes of orders. Each waits for a commit, which four connections can share. Up to a second of work may wait. */
  changes: { connections: 4, waitingMax: 2_048 },
  /** Expiries that a read stores. Anyone can request a page, so they must not slow down changes. */
  expiries: { connections: 1, waitingMax: 2_048 },
  /** Lookups by API clients. Each takes a fraction of a millisecond. Up to a tenth of a second of work may wait. */
  lookups: { connections: 2, batchMax: 128, waitingMax: 1_024 },
  /**
   * Lookups for pages, which anyone can request. They must slow down neither API lookups nor new orders. Their
   * `batchMax` is that of `lookups`.
   */
  pages: { connections: 1, waitingMax: 256 },
  /** Logos, on the connection for pages. A browser loads each logo once. */
  logos: { waitingMax: 64 },
  /** Pages of lists, on one connection per kind of list. Up to half a second of work may wait. */
  lists: { waitingMax: 256 },
  /**
   * Lookups of accounts, most of which the gateway caches. A batch takes a millisecond or two. A flood of made-up ids
   * makes a process so busy that each response of the database waits ten times as long; with batches of 128, the queue
   * kept growing. The limit exceeds the accounts that a gateway caches plus the unknown ids that it looks up together,
   * so that unknown ids do not exclude merchants.
   */
  accounts: { connections: 2, batchMax: 1_024, waitingMax: 16_384 },
  /** Management by merchants, on one connection. Up to a second of work may wait. */
  management: { waitingMax: 128 },
  /** Actions in the console, on one connection. Up to a second of work may wait. */
  console: { waitingMax: 128 },
  /**
   * Lookups of the console's sessions, on the connection for actions. Anyone can send invented cookies, which must not
   * exclude people who are signed in, so a lookup for each connection of the HTTP port may wait.
   */
  consoleLookups: { batchMax: 128, waitingMax: 16_384 },
  /** Results of deliveries. The limit exceeds the deliveries that a process has in flight. */
  deliveries: { batchMax: 128, waitingMax: 4_096 },
  /** Lookups of the Citus server that stores a merchant's orders. */
  merchantServers: { batchMax: 1_024, waitingMax: 4_096 },
};
