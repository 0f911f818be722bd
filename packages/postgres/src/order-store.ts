import type { Order } from '@gateway/domain/order';
import type { CreateOutcome, OrderStore } from '@gateway/domain/order-store';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batch-queue.ts';
import {
  arrayLiteral,
  type Client,
  type ConnectionEvents,
  openClient,
  plansEveryRun,
  serverStatementTimeoutMs,
} from './client.ts';
import { statementFailure, withoutValues } from './errors.ts';
import { openOrderQueries } from './order-queries.ts';
import { arrayPlaceholders, columnArrays, type OrderRow, orderOf, rowOf, rowPlaceholders } from './order-rows.ts';
import { orders } from './schema.ts';

/** Batches in flight on the inserting connection: the next is already there when one is done, and none waits for the network. */
const batchesInFlight = 2;

/** A batch may wait behind another on its connection: both must end before the client takes the connection for dead. */
const statementTimeoutMs = Math.floor(serverStatementTimeoutMs / batchesInFlight);

/** The defaults are those of decisions 001 and 013. */
export interface OrderStoreOptions {
  readonly url: string;
  /** Reports when the database is lost and when it is back. */
  readonly connectionEvents?: ConnectionEvents | undefined;
  /** Orders in one statement. */
  readonly batchMax?: number;
  /** Orders that may wait for their batch to leave; any more are `overloaded` at once. */
  readonly waitingMax?: number;
}

/** An order store with its connections. */
export interface PostgresOrderStore extends OrderStore {
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

interface Clients {
  readonly inserts: Client<ReturnType<typeof prepareInserts>>;
  /** Reads the orders that existed already. Separate, as the plans of the inserts are cached and no insert should wait for a read. */
  readonly replays: Client<ReturnType<typeof prepareFind>>;
}

/**
 * Stores orders in PostgreSQL. Orders that arrive together share one insert and its commit; every caller gets its outcome after
 * that commit. An order is created by one statement without a transaction around it. A second statement reads it only if its
 * merchant had one with the same order_id: a single statement that does both misses rows that another session just committed.
 */
export function openOrderStore(options: OrderStoreOptions): PostgresOrderStore {
  const { url, connectionEvents, batchMax = 128, waitingMax = 4_096 } = options;
  const clients: Clients = {
    inserts: openClient(
      { url, connectionEvents, applicationName: 'order-gateway orders', statementTimeoutMs },
      prepareInserts,
    ),
    replays: openClient(
      { url, connectionEvents, applicationName: 'order-gateway replays', statementTimeoutMs, settings: plansEveryRun },
      prepareFind,
    ),
  };
  const queue = createBatchQueue<Clients, Order, CreateOutcome>({
    slots: Array.from({ length: batchesInFlight }, () => clients),
    batchMax,
    waitingMax,
    run: createBatch,
  });
  const { close: closeQueries, ...queries } = openOrderQueries({ url, connectionEvents });
  return {
    ...queries,
    async create(order, timeoutMs) {
      const outcome = await queue.add(order, timeoutMs);
      return typeof outcome === 'string' ? { kind: outcome } : outcome;
    },
    async close() {
      await queue.idle();
      await Promise.all([closeQueries(), clients.inserts.close(), clients.replays.close()]);
    },
  };
}

/** Both inserts return the service order ids of the orders that did not exist before. */
function prepareInserts(db: PostgresJsDatabase) {
  // Any other conflict, of an id or a token, is an internal error and fails the statement.
  const key = { target: [orders.merchantId, orders.orderId] };
  const returned = { serviceOrderId: orders.serviceOrderId };
  return {
    /** A lone order does without the arrays, which take a tenth of the time of its insert. */
    insertOne: db
      .insert(orders)
      .values(rowPlaceholders)
      .onConflictDoNothing(key)
      .returning(returned)
      .prepare('insert_order'),
    insert: db
      .insert(orders)
      .select(sql`select * from unnest(${sql.join(arrayPlaceholders, sql`, `)})`)
      .onConflictDoNothing(key)
      .returning(returned)
      .prepare('insert_orders'),
  };
}

function prepareFind(db: PostgresJsDatabase) {
  const wanted = sql`unnest(${sql.placeholder('merchantIds')}::bigint[], ${sql.placeholder('orderIds')}::text[])`;
  return db
    .select()
    .from(orders)
    .where(sql`(${orders.merchantId}, ${orders.orderId}) in (select * from ${wanted})`)
    .prepare('find_orders');
}

/** Inserts a batch; if the database rejects one of its rows, inserts each alone, so that no row fails its neighbours. */
async function createBatch(clients: Clients, batch: readonly Order[]): Promise<(CreateOutcome | Error)[]> {
  try {
    return await insertOrFind(clients, batch);
  } catch (error) {
    const failure = statementFailure(error);
    if (failure !== undefined) return batch.map(() => ({ kind: failure }));
    if (batch.length === 1) return [withoutValues(error)];
    const outcomes: (CreateOutcome | Error)[] = [];
    for (const order of batch) outcomes.push(...(await createBatch(clients, [order])));
    return outcomes;
  }
}

async function insertOrFind(clients: Clients, batch: readonly Order[]): Promise<(CreateOutcome | Error)[]> {
  // All sessions lock rows in the same order, so that two batches with the same order_ids cannot deadlock.
  const rows = batch.map(rowOf).sort(byKey);
  const [lone] = rows.length === 1 ? rows : [];
  const inserted = await clients.inserts.run(({ insert, insertOne }) =>
    lone === undefined ? insert.execute(columnArrays(rows)) : insertOne.execute({ ...lone }),
  );
  const created = new Set(inserted.map(({ serviceOrderId }) => serviceOrderId));
  const others = batch.filter((order) => !created.has(order.serviceOrderId));
  if (others.length === 0) return batch.map(() => ({ kind: 'created' }));
  const outcomeOf = await findExisting(clients.replays, others);
  return batch.map((order) => (created.has(order.serviceOrderId) ? { kind: 'created' } : outcomeOf(order)));
}

/** The outcome of each order that was not inserted. A failure to read them does not affect those that were. */
async function findExisting(
  replays: Clients['replays'],
  wanted: readonly Order[],
): Promise<(order: Order) => CreateOutcome | Error> {
  try {
    const rows = await replays.run((find) =>
      find.execute({
        merchantIds: arrayLiteral(wanted, (order) => order.merchantId),
        orderIds: arrayLiteral(wanted, (order) => order.fields.order_id),
      }),
    );
    const existing = new Map(rows.map(orderOf).map((order) => [keyOf(order), order]));
    return (order) => {
      const first = existing.get(keyOf(order));
      // Missing only if it was deleted between the two statements; sent again, the order will be created.
      return first === undefined ? { kind: 'unavailable' } : { kind: 'exists', order: first };
    };
  } catch (error) {
    const outcome = statementFailure(error) === undefined ? withoutValues(error) : ({ kind: 'unavailable' } as const);
    return () => outcome;
  }
}

function keyOf(order: Order): string {
  return `${order.merchantId} ${order.fields.order_id}`;
}

function byKey(a: OrderRow, b: OrderRow): number {
  if (a.merchantId !== b.merchantId) return a.merchantId - b.merchantId;
  return a.orderId < b.orderId ? -1 : a.orderId > b.orderId ? 1 : 0;
}
