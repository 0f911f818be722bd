import type { CreateOutcome, Metadata, NewOrder, Order } from '@order-gateway/domain/orders';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { type BatchQueue, createBatchQueue } from '../../batches/batch-queue.ts';
import {
  arrayLiteral,
  type DatabaseClient,
  type DatabaseOptions,
  type MerchantServer,
  openClient,
  plansEveryRun,
  serverStatementTimeoutMs,
} from '../../connections/client.ts';
import { isDuplicate, redact, statementFailure } from '../../connections/errors.ts';
import { queueLimits } from '../../queue-limits.ts';
import { orderMetadata, orders, pairDigest } from '../../schema.ts';
import { type Unstored, unlessUnstored } from '../find/expired-orders.ts';
import { inStatements, prepareFindBy } from '../find/order-keys.ts';
import {
  columnArrays,
  conflictTarget,
  type NewOrderRow,
  orderOf,
  rowOf,
  rowPlaceholders,
  rowsAsJson,
  unnestedRows,
  unnestedRowsWithMetadata,
} from '../order-rows.ts';
import { insertOrders } from '../plpgsql-functions.ts';
import { createOrderIds } from './order-ids.ts';

/**
 * The number of batches in flight on the inserting connection. When one ends, the server has already received the next
 * one, so that it does not wait for the network.
 */
const batchesInFlight = 2;

/** A batch may wait behind another on its connection. Both must end before the client considers the connection dead. */
const statementTimeoutMs = Math.floor(serverStatementTimeoutMs / batchesInFlight);

/** The maximum number of attempts to insert a batch whose ids are in use. Each retry takes ids from a checked block. */
const insertAttemptsMax = 3;

/** How an order store is opened. */
export interface CreationOptions extends DatabaseOptions {
  /** Replaces `queueLimits.orders`. */
  readonly limits?: { readonly batchMax: number; readonly waitingMax: number } | undefined;
}

/** Creates orders. `close` waits for the orders in the queue, and closes the connections. */
export type Creations = BatchQueue<NewOrder, CreateOutcome | Unstored<CreateOutcome>>;

/** Inserts rows, with the metadata of each if any has some. Returns the ids of the orders that did not exist before. */
type InsertRows = ReturnType<typeof prepareInsertRows>;
type Statements = ReturnType<typeof prepareStatements>;
type Inserts = DatabaseClient<Statements>;
type Replays = DatabaseClient<ReturnType<typeof prepareFindBy>>;

/**
 * Opens the queue that creates orders. Orders that arrive together share one insert and its commit; every call gets its
 * outcome after that commit. One statement creates an order, without a transaction around it. A second statement reads
 * the order only if its merchant already had one with the same order_id. One statement could not do both, because it
 * does not see rows that were committed after it began.
 */
export function openCreations({ limits = queueLimits.orders, ...database }: CreationOptions): Creations {
  const { server } = database;
  const { session, prepare } = server
    ? // Citus can only choose the server of a function call if the plan is made for the values of that call.
      { session: { settings: plansEveryRun }, prepare: prepareInsertOnServer }
    : { session: {}, prepare: prepareInsertRows };
  const inserts = openClient(
    {
      ...database,
      applicationName: 'order-gateway orders',
      statementTimeoutMs,
      ...session,
    },
    (db) => prepareStatements(db, server, prepare(db)),
  );
  // A separate client, because the plans of the inserts are cached and no insert should wait for a read.
  const replays = openClient(
    { ...database, applicationName: 'order-gateway replays', statementTimeoutMs, settings: plansEveryRun },
    (db) => prepareFindBy(db, 'order_id', server),
  );
  const queue: Creations = createBatchQueue({
    ...database,
    name: 'orders',
    clients: Array.from({ length: batchesInFlight }, () => inserts),
    ...limits,
    ownerOf: ({ merchantId }: NewOrder) => merchantId,
    run: (_inserts: Inserts, batch: readonly NewOrder[]) => createBatch(inserts, replays, server, batch),
  });
  return {
    ...queue,
    async close() {
      await queue.close();
      await replays.close();
    },
  };
}

const returned = { serviceOrderId: orders.serviceOrderId };

function prepareStatements(db: PostgresJsDatabase, server: MerchantServer | undefined, insertRows: InsertRows) {
  return {
    ids: createOrderIds(db, server),
    /** Inserts a lone order without arrays, which would take a tenth of the insert's time. */
    insertOne: db
      .insert(orders)
      .values(rowPlaceholders)
      .onConflictDoNothing(conflictTarget)
      .returning(returned)
      .prepare('insert_order'),
    insertRows,
  };
}

function prepareInsertRows(db: PostgresJsDatabase) {
  const inserted = db.$with('inserted').as(
    db
      .insert(orders)
      .select(unnestedRowsWithMetadata)
      .onConflictDoNothing(conflictTarget)
      .returning({
        ...returned,
        merchantId: orders.merchantId,
        createdAt: orders.createdAt,
        metadata: orders.metadata,
      }),
  );
  const paired = db.$with('paired').as(
    db
      .insert(orderMetadata)
      .select(
        sql`select merchant_id, ${pairDigest(sql`pair.key`, sql`pair.value`)}, created_at, service_order_id from inserted, jsonb_each_text(metadata) as pair`,
      )
      .returning({ merchantId: orderMetadata.merchantId }),
  );
  const insert = db
    .insert(orders)
    .select(unnestedRows)
    .onConflictDoNothing(conflictTarget)
    .returning(returned)
    .prepare('insert_orders');
  // A separate statement, so that a batch without metadata does not pay for the pairs.
  const insertWithMetadata = db
    .with(inserted, paired)
    .select({ serviceOrderId: inserted.serviceOrderId })
    .from(inserted)
    .prepare('insert_orders_with_metadata');
  return (rows: readonly NewOrderRow[], metadata: readonly (Metadata | null)[]) => {
    if (metadata.length === 0) return insert.execute(columnArrays(rows));
    const pairs = arrayLiteral(metadata, (pairs) => pairs && JSON.stringify(pairs));
    return insertWithMetadata.execute({ ...columnArrays(rows), metadata: pairs });
  };
}

function prepareInsertOnServer(db: PostgresJsDatabase): InsertRows {
  const insert = db
    .select({ serviceOrderId: sql`${sql.identifier(orders.serviceOrderId.name)}`.mapWith(orders.serviceOrderId) })
    .from(insertOrders.call)
    .prepare(insertOrders.name);
  return (rows, metadata) =>
    insert.execute({ merchant_id: rows[0]?.merchantId, new_orders: rowsAsJson(rows, metadata) });
}

/**
 * Inserts a batch, and reads those of its orders that already existed. Returns one outcome per order, in the order of
 * the batch.
 */
async function createBatch(
  inserts: Inserts,
  replays: Replays,
  server: MerchantServer | undefined,
  batch: readonly NewOrder[],
): Promise<(CreateOutcome | Unstored<CreateOutcome> | Error)[]> {
  const { orders, created } = await inserts.run((statements) => insertBatch(statements, batch));
  const notCreated = orders.filter((order) => !created.has(order.serviceOrderId));
  const outcomes = new Map<Order, CreateOutcome | Unstored<CreateOutcome> | Error>();
  const find = async (existing: readonly Order[]) => {
    const outcomeOf = await findExisting(replays, existing);
    for (const order of existing) outcomes.set(order, outcomeOf(order));
  };
  if (notCreated.length > 0) await Promise.all(inStatements(server, notCreated).map(find));
  return orders.map((order) => outcomes.get(order) ?? { kind: 'created', order });
}

/** Inserts a batch with ids of this connection. Returns the orders, and the ids of those that did not exist before. */
async function insertBatch(
  statements: Statements,
  batch: readonly NewOrder[],
  attemptsLeft = insertAttemptsMax,
): Promise<{ readonly orders: readonly Order[]; readonly created: ReadonlySet<number> }> {
  const { ids } = statements;
  const orders: Order[] = [];
  for (const order of batch) {
    const id = ids.take();
    orders.push({ ...order, serviceOrderId: typeof id === 'number' ? id : await id });
  }
  try {
    const inserted = await insert(statements, orders);
    // An order counts as created only if its own id is returned, because the driver has returned rows of other
    // statements (postgres.js issue 1120).
    return { orders, created: new Set(inserted.map(({ serviceOrderId }) => serviceOrderId)) };
  } catch (error) {
    if (attemptsLeft === 1 || !isDuplicate(error)) throw error;
    // Nothing was stored. The insert ignores conflicts on the order_id, and every other unique key contains the service
    // order id. So an id is in use, for example after a restore.
    ids.drop();
    return insertBatch(statements, batch, attemptsLeft - 1);
  }
}

/** Inserts orders in one statement. Returns the ids of those that did not exist before. */
function insert({ insertOne, insertRows }: Statements, orders: readonly Order[]) {
  // All sessions lock rows in the same order, so that two batches with the same order_ids cannot deadlock.
  const rows = orders.map(rowOf).sort(byKey);
  const [first] = rows;
  const hasMetadata = orders.some(({ metadata }) => metadata !== null);
  if (rows.length === 1 && first !== undefined && !hasMetadata) return insertOne.execute({ ...first });
  return insertRows(rows, hasMetadata ? metadataOf(rows, orders) : []);
}

/** Returns the metadata of rows, in their order. */
function metadataOf(rows: readonly NewOrderRow[], orders: readonly Order[]): (Metadata | null)[] {
  const byId = new Map(orders.map(({ serviceOrderId, metadata }) => [serviceOrderId, metadata]));
  return rows.map(({ serviceOrderId }) => byId.get(serviceOrderId) ?? null);
}

/**
 * Reads the orders that were not inserted. Returns a function that returns the outcome of each. Never rejects, so that
 * a failure does not affect the inserted orders.
 */
async function findExisting(
  replays: Replays,
  orders: readonly Order[],
): Promise<(order: Order) => CreateOutcome | Unstored<CreateOutcome> | Error> {
  try {
    const [lone] = orders.length === 1 ? orders : [];
    const rows = await replays.run(({ single, batch }) =>
      lone === undefined
        ? batch.execute({
            merchantId: orders[0]?.merchantId,
            merchantIds: arrayLiteral(orders, (order) => order.merchantId),
            values: arrayLiteral(orders, (order) => order.fields.order_id),
          })
        : single.execute({ merchantId: lone.merchantId, value: lone.fields.order_id }),
    );
    const existing = new Map(
      rows.map((row) => {
        const order = orderOf(row);
        return [keyOf(order), unlessUnstored<CreateOutcome>([row], { kind: 'exists', order })];
      }),
    );
    // An order is missing only if it was deleted between the two statements. If it is sent again, it will be created.
    return (order) => existing.get(keyOf(order)) ?? { kind: 'unavailable' };
  } catch (error) {
    const outcome = statementFailure(error) === undefined ? redact(error) : ({ kind: 'unavailable' } as const);
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
