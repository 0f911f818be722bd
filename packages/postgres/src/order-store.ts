import type { Socket } from 'node:net';
import type { Order } from '@gateway/domain/order';
import type { CreateOutcome, OrderStore } from '@gateway/domain/order-store';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { arrayLiteral } from './array-literal.ts';
import { createGroupQueue } from './group-queue.ts';
import { type Lane, openLane, serverStatementTimeoutMs } from './lane.ts';
import { openOrderLookups } from './order-lookups.ts';
import { columnArrays, columnValues, orderColumns, orderOf } from './order-rows.ts';
import { orders } from './schema.ts';
import { statementFailure, withoutValues } from './statement-error.ts';
import { statementsOnWire } from './wire-connection.ts';

/** The defaults are those of decisions 001 and 013. */
export interface PostgresOrderStoreOptions {
  readonly url: string;
  /** Connections that insert. */
  readonly connections?: number;
  /** Groups under way on a connection: while one is carried out, the next is there already, and none waits for the network. */
  readonly groupsPerConnection?: number;
  /** Orders in one statement. */
  readonly groupMax?: number;
  /** Orders that may wait for their group to leave; over it the answer is `overloaded` at once. */
  readonly waitingMax?: number;
}

/** An order store with its connections. */
export interface PostgresOrderStore extends OrderStore {
  /** Lets what is under way finish, then closes the connections. */
  close(): Promise<void>;
}

/** What inserts, and what reads the orders that were there first. */
interface Lanes {
  readonly inserts: Lane<ReturnType<typeof prepareInserts>>;
  readonly replays: Lane<ReturnType<typeof prepareFind>>;
}

/**
 * Keeps orders in PostgreSQL. Orders that arrive together share one insert and its commit; every caller is answered after that
 * commit. An order is one statement without a transaction around it, and is read in a second one only where its merchant has
 * one with the same order_id already: a single statement that does both misses rows that another session has just committed.
 */
export function openOrderStore(options: PostgresOrderStoreOptions): PostgresOrderStore {
  const { url, connections = 1, groupsPerConnection = 2, groupMax = 128, waitingMax = 4_096 } = options;
  // A group that waits behind another on its connection has had its own time, too, before the client takes both for lost.
  const statementTimeoutMs = Math.floor(serverStatementTimeoutMs / groupsPerConnection);
  // Of its own, as the plans of the inserts are kept, and as no insert shall wait for what is read.
  const replays = openLane(
    { url, applicationName: 'order-gateway replays', connectionsMax: 1, statementTimeoutMs, plansEveryRun: true },
    prepareFind,
  );
  const lanes = Array.from({ length: connections }, () => ({
    inserts: openLane(
      { url, applicationName: 'order-gateway orders', connectionsMax: 1, statementTimeoutMs },
      prepareInserts,
    ),
    replays,
  }));
  const queue = createGroupQueue<Lanes, Order, CreateOutcome>({
    slots: Array.from({ length: groupsPerConnection }, () => lanes).flat(),
    groupMax,
    waitingMax,
    run: createGroup,
  });
  const { close: closeLookups, ...lookups } = openOrderLookups(url);
  return {
    ...lookups,
    async create(order, timeoutMs) {
      const outcome = await queue.add(order, timeoutMs);
      return typeof outcome === 'string' ? { kind: outcome } : outcome;
    },
    async close() {
      await queue.idle();
      await Promise.all([closeLookups(), replays.close(), ...lanes.map(({ inserts }) => inserts.close())]);
    },
  };
}

/** What both inserts give are the service order ids of the orders that were not there before. */
function prepareInserts(db: PostgresJsDatabase, connect: () => Promise<Socket>) {
  const types = Object.values(orderColumns).map(({ type }) => type);
  const values = types.map((type, index) => `$${index + 1}::${type}`).join(', ');
  const arrays = types.map((type, index) => `$${index + 1}::${type}[]`).join(', ');
  const insertFrom = (selected: string) =>
    db
      .insert(orders)
      .select(sql.raw(selected))
      // Any other conflict, of an id or a token, is a fault of ours and fails the statement.
      .onConflictDoNothing({ target: [orders.merchantId, orders.orderId] })
      .returning({ serviceOrderId: orders.serviceOrderId })
      .toSQL().sql;
  return statementsOnWire(connect, {
    /** A lone order is spared the arrays, which take a tenth of the time of its insert. */
    insert_order: insertFrom(`select ${values}`),
    insert_orders: insertFrom(`select * from unnest(${arrays})`),
  });
}

function prepareFind(db: PostgresJsDatabase) {
  const wanted = sql`unnest(${sql.placeholder('merchantIds')}::bigint[], ${sql.placeholder('orderIds')}::text[])`;
  return db
    .select()
    .from(orders)
    .where(sql`(${orders.merchantId}, ${orders.orderId}) in (select * from ${wanted})`)
    .prepare('find_orders');
}

/** Inserts a group; where the database refuses one of its rows, inserts each alone, so that no row fails its neighbours. */
async function createGroup(lanes: Lanes, group: readonly Order[]): Promise<(CreateOutcome | Error)[]> {
  try {
    return await insertOrFind(lanes, group);
  } catch (error) {
    const failure = statementFailure(error);
    if (failure !== undefined) return group.map(() => ({ kind: failure }));
    if (group.length === 1) return [withoutValues(error)];
    const outcomes: (CreateOutcome | Error)[] = [];
    for (const order of group) outcomes.push(...(await createGroup(lanes, [order])));
    return outcomes;
  }
}

async function insertOrFind(lanes: Lanes, group: readonly Order[]): Promise<(CreateOutcome | Error)[]> {
  const [lone] = group.length === 1 ? group : [];
  const inserted = await lanes.inserts.run((insert) =>
    // All sessions lock rows in the same order, so that two groups with the same order_ids can't wait for each other.
    lone === undefined
      ? insert('insert_orders', columnArrays([...group].sort(byKey)))
      : insert('insert_order', columnValues(lone)),
  );
  const created = new Set(inserted.map(Number));
  const losers = group.filter((order) => !created.has(order.serviceOrderId));
  if (losers.length === 0) return group.map(() => ({ kind: 'created' }));
  const outcomeOf = await findKept(lanes.replays, losers);
  return group.map((order) => (created.has(order.serviceOrderId) ? { kind: 'created' } : outcomeOf(order)));
}

/** What each order that was not inserted came to. That they can't be read changes nothing for those that were inserted. */
async function findKept(
  replays: Lanes['replays'],
  wanted: readonly Order[],
): Promise<(order: Order) => CreateOutcome | Error> {
  try {
    const rows = await replays.run((find) =>
      find.execute({
        merchantIds: arrayLiteral(wanted, (order) => order.merchantId),
        orderIds: arrayLiteral(wanted, (order) => order.fields.order_id),
      }),
    );
    const kept = new Map(rows.map(orderOf).map((order) => [keyOf(order), order]));
    return (order) => {
      const first = kept.get(keyOf(order));
      // Only a row that was deleted between the two statements is not there; sent again, it will be created.
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

function byKey(a: Order, b: Order): number {
  if (a.merchantId !== b.merchantId) return a.merchantId - b.merchantId;
  return a.fields.order_id < b.fields.order_id ? -1 : a.fields.order_id > b.fields.order_id ? 1 : 0;
}
