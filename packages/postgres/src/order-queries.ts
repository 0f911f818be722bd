import type { MerchantId } from '@gateway/domain/merchant';
import type { LinkLookup, OrderLookup, OrderStore } from '@gateway/domain/order-store';
import { eq, getTableColumns, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batch-queue.ts';
import { arrayLiteral, type Client, type ConnectionEvents, openClient, plansEveryRun } from './client.ts';
import { statementFailure, withoutValues } from './errors.ts';
import { type OrderRow, orderOf } from './order-rows.ts';
import { merchants, orders } from './schema.ts';

/**
 * Connections for lookups. Separate from the inserting one, as anyone can request a payment page and must not slow down creating
 * orders. One lookup takes a fraction of a millisecond.
 */
const connections = 2;

/** Lookups in one batch: they share a statement for each kind of key. */
const batchMax = 128;

/** Lookups that may wait for a connection: a tenth of a second's work. Any more are `overloaded` at once. */
const waitingMax = 1_024;

/** The part of an order store that only reads. */
export interface OrderQueries extends Omit<OrderStore, 'create'> {
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

interface FoundRow {
  readonly order: OrderRow;
  readonly merchantName: string;
}

interface PreparedFind {
  execute(values: Readonly<Record<string, unknown>>): Promise<FoundRow[]>;
}

type Statements = Record<Key, PreparedFind>;

type Key = 'orderId' | 'serviceOrderId' | 'token';

interface Lookup {
  readonly by: Key;
  /** Undefined for a token, which is looked up across all merchants. */
  readonly merchantId: MerchantId | undefined;
  readonly value: string;
}

/** Finds orders in PostgreSQL. Lookups that arrive together share a prepared statement, which uses one index. */
export function openOrderQueries(options: {
  readonly url: string;
  readonly connectionEvents?: ConnectionEvents | undefined;
}): OrderQueries {
  const clients = Array.from({ length: connections }, () =>
    openClient({ ...options, applicationName: 'order-gateway lookups', settings: plansEveryRun }, prepareStatements),
  );
  const queue = createBatchQueue<Client<Statements>, Lookup, LinkLookup>({
    slots: clients,
    batchMax,
    waitingMax,
    run: findBatch,
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
      await Promise.all(clients.map((client) => client.close()));
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

async function findBatch(client: Client<Statements>, batch: readonly Lookup[]): Promise<(LinkLookup | Error)[]> {
  const outcomes = new Map<Lookup, LinkLookup | Error>();
  for (const [by, lookups] of Map.groupBy(batch, (lookup) => lookup.by)) {
    const found = await findBy(client, by, lookups);
    lookups.forEach((lookup, index) => {
      outcomes.set(lookup, found[index] ?? { kind: 'unknown' });
    });
  }
  return batch.map((lookup) => outcomes.get(lookup) ?? { kind: 'unknown' });
}

/** Looks up a batch; if the database rejects it, looks up each alone, so that none fails its neighbours. */
async function findBy(
  client: Client<Statements>,
  by: Key,
  lookups: readonly Lookup[],
): Promise<(LinkLookup | Error)[]> {
  try {
    const rows = await client.run((statements) =>
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
    for (const lookup of lookups) outcomes.push(...(await findBy(client, by, [lookup])));
    return outcomes;
  }
}

function keyOf({ by, merchantId, value }: Lookup): string {
  return by === 'token' ? value : `${merchantId} ${value}`;
}

function keyOfRow(by: Key, row: OrderRow): string {
  return by === 'token' ? row.orderToken : `${row.merchantId} ${row[by]}`;
}
