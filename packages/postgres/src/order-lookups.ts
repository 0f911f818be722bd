import type { MerchantId } from '@gateway/domain/merchant';
import type { LinkLookup, OrderLookup, OrderStore } from '@gateway/domain/order-store';
import { eq, getTableColumns, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { arrayLiteral } from './array-literal.ts';
import { createGroupQueue } from './group-queue.ts';
import { type Lane, openLane } from './lane.ts';
import { orderOf } from './order-rows.ts';
import { merchants, orders } from './schema.ts';
import { statementFailure, withoutValues } from './statement-error.ts';

/**
 * Connections for look-ups, apart from those that insert: payment pages are asked for by anyone, and must not take the
 * connections that orders are kept with. One look-up takes a fraction of a millisecond.
 */
const connections = 2;

/** Look-ups in one group: they share a statement for each kind of key. */
const groupMax = 128;

/** Look-ups that may wait for a connection: a tenth of a second's work. Over it the answer is `overloaded` at once. */
const waitingMax = 1_024;

/** The part of an order store that only reads. */
export interface OrderLookups extends Omit<OrderStore, 'create'> {
  /** Lets what is under way finish, then closes the connections. */
  close(): Promise<void>;
}

interface FoundRow {
  readonly order: typeof orders.$inferSelect;
  readonly merchantName: string;
}

interface PreparedFind {
  execute(values: Readonly<Record<string, unknown>>): Promise<FoundRow[]>;
}

type Statements = Record<Key, PreparedFind>;

type Key = 'orderId' | 'serviceOrderId' | 'token';

interface Lookup {
  readonly by: Key;
  /** A token is looked for with all merchants. */
  readonly merchantId: MerchantId | undefined;
  readonly value: string;
}

/**
 * Finds orders in PostgreSQL. Look-ups that arrive together share a prepared statement over one index; a connection has one
 * statement under way.
 */
export function openOrderLookups(url: string): OrderLookups {
  const lanes = Array.from({ length: connections }, () =>
    openLane(
      { url, applicationName: 'order-gateway lookups', connectionsMax: 1, plansEveryRun: true },
      prepareStatements,
    ),
  );
  const queue = createGroupQueue<Lane<Statements>, Lookup, LinkLookup>({
    slots: lanes,
    groupMax,
    waitingMax,
    run: findGroup,
  });
  const findLink = async (lookup: Lookup, timeoutMs: number): Promise<LinkLookup> => {
    const outcome = await queue.add(lookup, timeoutMs);
    return typeof outcome === 'string' ? { kind: outcome } : outcome;
  };
  const findOrder = async (lookup: Lookup, timeoutMs: number): Promise<OrderLookup> => {
    const outcome = await findLink(lookup, timeoutMs);
    return outcome.kind === 'found' ? { kind: 'found', order: outcome.order } : outcome;
  };
  return {
    findByOrderId: (merchantId, orderId, timeoutMs) =>
      findOrder({ by: 'orderId', merchantId, value: orderId }, timeoutMs),
    findByServiceOrderId: (merchantId, serviceOrderId, timeoutMs) =>
      findOrder({ by: 'serviceOrderId', merchantId, value: String(serviceOrderId) }, timeoutMs),
    findByToken: (token, timeoutMs) => findLink({ by: 'token', merchantId: undefined, value: token }, timeoutMs),
    async close() {
      await queue.idle();
      await Promise.all(lanes.map((lane) => lane.close()));
    },
  };
}

function prepareStatements(db: PostgresJsDatabase): Record<Key, PreparedFind> {
  const found = () =>
    db
      .select({ order: getTableColumns(orders), merchantName: merchants.name })
      .from(orders)
      .innerJoin(merchants, eq(merchants.id, orders.merchantId));
  const merchantIds = sql`${sql.placeholder('merchantIds')}::bigint[]`;
  const values = sql.placeholder('values');
  const orderIds = sql`(select * from unnest(${merchantIds}, ${values}::text[]))`;
  const serviceOrderIds = sql`(select * from unnest(${merchantIds}, ${values}::bigint[]))`;
  return {
    orderId: found().where(sql`(${orders.merchantId}, ${orders.orderId}) in ${orderIds}`).prepare('find_by_order_id'),
    serviceOrderId: found()
      .where(sql`(${orders.merchantId}, ${orders.serviceOrderId}) in ${serviceOrderIds}`)
      .prepare('find_by_service_order_id'),
    token: found().where(sql`${orders.orderToken} = any(${values}::text[])`).prepare('find_by_token'),
  };
}

async function findGroup(lane: Lane<Statements>, group: readonly Lookup[]): Promise<(LinkLookup | Error)[]> {
  const outcomes = new Map<Lookup, LinkLookup | Error>();
  for (const [by, lookups] of Map.groupBy(group, (lookup) => lookup.by)) {
    const found = await findBy(lane, by, lookups);
    lookups.forEach((lookup, index) => {
      outcomes.set(lookup, found[index] ?? { kind: 'unknown' });
    });
  }
  return group.map((lookup) => outcomes.get(lookup) ?? { kind: 'unknown' });
}

/** Looks for a group; where the database refuses it, for each alone, so that none fails its neighbours. */
async function findBy(lane: Lane<Statements>, by: Key, lookups: readonly Lookup[]): Promise<(LinkLookup | Error)[]> {
  try {
    const rows = await lane.run((statements) =>
      statements[by].execute({
        merchantIds: arrayLiteral(lookups, ({ merchantId }) => merchantId ?? 0),
        values: arrayLiteral(lookups, ({ value }) => value),
      }),
    );
    const found = new Map(rows.map((row) => [keyOfRow(by, row.order), row]));
    return lookups.map((lookup) => {
      const row = found.get(keyOf(lookup));
      if (row === undefined) return { kind: 'unknown' };
      return { kind: 'found', order: orderOf(row.order), merchantName: row.merchantName };
    });
  } catch (error) {
    const failure = statementFailure(error);
    if (failure !== undefined) return lookups.map(() => ({ kind: failure }));
    if (lookups.length === 1) return [withoutValues(error)];
    const outcomes: (LinkLookup | Error)[] = [];
    for (const lookup of lookups) outcomes.push(...(await findBy(lane, by, [lookup])));
    return outcomes;
  }
}

function keyOf({ by, merchantId, value }: Lookup): string {
  return by === 'token' ? value : `${merchantId} ${value}`;
}

function keyOfRow(by: Key, row: FoundRow['order']): string {
  return by === 'token' ? row.orderToken : `${row.merchantId} ${row[by]}`;
}
