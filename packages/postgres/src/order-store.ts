import type { Order } from '@gateway/domain/order';
import type { CreateOutcome, OrderStore } from '@gateway/domain/order-store';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batch-queue.ts';
import {
  arrayLiteral,
  type Client,
  type DatabaseOptions,
  openClient,
  plansEveryRun,
  serverStatementTimeoutMs,
} from './client.ts';
import { statementFailure, withoutValues } from './errors.ts';
import { type OrderChanges, openOrderChanges } from './order-changes.ts';
import { openOrderLists } from './order-lists.ts';
import { openOrderQueries } from './order-queries.ts';
import {
  columnArrays,
  type NewOrderRow,
  orderColumns,
  orderOf,
  rowOf,
  rowPlaceholders,
  unnestedRows,
} from './order-rows.ts';
import { orders } from './schema.ts';

/** Batches in flight on the inserting connection: the next is already there when one is done, and none waits for the network. */
const batchesInFlight = 2;

/** A batch may wait behind another on its connection: both must end before the client takes the connection for dead. */
const statementTimeoutMs = Math.floor(serverStatementTimeoutMs / batchesInFlight);

/** The defaults are those of decisions 001 and 013. */
export interface OrderStoreOptions extends DatabaseOptions {
  /** Orders in one statement: 128 unless given. */
  readonly batchMax?: number | undefined;
  /** Orders that may wait for their batch to leave, 4,096 unless given; any more are `overloaded` at once. */
  readonly waitingMax?: number | undefined;
}

/** An order store with its connections. */
export interface PostgresOrderStore extends OrderStore, Pick<OrderChanges, 'expire' | 'deleteOldEvents'> {
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

type Inserts = Client<ReturnType<typeof prepareInserts>>;
type Replays = Client<ReturnType<typeof prepareFind>>;

/**
 * Stores orders in PostgreSQL. Orders that arrive together share one insert and its commit; every call gets its outcome after
 * that commit. An order is created by one statement without a transaction around it. A second statement reads it only if its
 * merchant had one with the same order_id: a single statement that does both misses rows that another session just committed.
 */
export function openOrderStore({
  batchMax = 128,
  waitingMax = 4_096,
  ...database
}: OrderStoreOptions): PostgresOrderStore {
  const inserts = openClient(
    { ...database, applicationName: 'order-gateway orders', statementTimeoutMs },
    prepareInserts,
  );
  // Separate, as the plans of the inserts are cached and no insert should wait for a read.
  const replays = openClient(
    { ...database, applicationName: 'order-gateway replays', statementTimeoutMs, settings: plansEveryRun },
    prepareFind,
  );
  const queue = createBatchQueue<Inserts, Order, CreateOutcome>({
    clients: Array.from({ length: batchesInFlight }, () => inserts),
    batchMax,
    waitingMax,
    run: (_inserts, batch) => createBatch(inserts, replays, batch),
  });
  const queries = openOrderQueries(database);
  const changes = openOrderChanges(database);
  const lists = openOrderLists(database);
  return {
    ...queries,
    ...changes,
    ...lists,
    create: queue.add,
    async close() {
      await Promise.all([queue.close(), queries.close(), changes.close(), lists.close()]);
      await replays.close();
    },
  };
}

/** Both inserts return the service order ids of the orders that did not exist before. */
function prepareInserts(db: PostgresJsDatabase) {
  // Any other conflict, of an id or a token, is an internal error and fails the statement.
  const key = { target: [orders.merchantId, orders.order_id] };
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
      .select(unnestedRows)
      .onConflictDoNothing(key)
      .returning(returned)
      .prepare('insert_orders'),
  };
}

function prepareFind(db: PostgresJsDatabase) {
  const wanted = sql`unnest(${sql.placeholder('merchantIds')}::bigint[], ${sql.placeholder('orderIds')}::text[])`;
  return db
    .select(orderColumns)
    .from(orders)
    .where(sql`(${orders.merchantId}, ${orders.order_id}) in (select * from ${wanted})`)
    .prepare('find_orders');
}

/** Inserts a batch and reads the orders of it that existed already. */
async function createBatch(
  inserts: Inserts,
  replays: Replays,
  batch: readonly Order[],
): Promise<(CreateOutcome | Error)[]> {
  // All sessions lock rows in the same order, so that two batches with the same order_ids cannot deadlock.
  const rows = batch.map(rowOf).sort(byKey);
  const [lone] = rows.length === 1 ? rows : [];
  const inserted = await inserts.run(({ insert, insertOne }) =>
    lone === undefined ? insert.execute(columnArrays(rows)) : insertOne.execute({ ...lone }),
  );
  // By its own id only: the driver has returned rows of other statements (issue 1120).
  const created = new Set(inserted.map(({ serviceOrderId }) => serviceOrderId));
  const others = batch.filter((order) => !created.has(order.serviceOrderId));
  if (others.length === 0) return batch.map(() => ({ kind: 'created' }));
  const outcomeOf = await findExisting(replays, others);
  return batch.map((order) => (created.has(order.serviceOrderId) ? { kind: 'created' } : outcomeOf(order)));
}

/** The outcome of each order that was not inserted. A failure to read them does not affect those that were. */
async function findExisting(
  replays: Replays,
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

function byKey(a: NewOrderRow, b: NewOrderRow): number {
  if (a.merchantId !== b.merchantId) return a.merchantId - b.merchantId;
  return a.order_id < b.order_id ? -1 : a.order_id > b.order_id ? 1 : 0;
}
