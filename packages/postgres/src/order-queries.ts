import type { MerchantId } from '@gateway/domain/merchant';
import type { LinkLookup, OrderLookup, OrderStore } from '@gateway/domain/order-store';
import { eq, isNotNull, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batch-queue.ts';
import { arrayLiteral, type Client, type DatabaseOptions, openClient, plansEveryRun } from './client.ts';
import { type Due, type Settle, unlessDue } from './due-orders.ts';
import { orderColumns, orderOf, type ReadRow } from './order-rows.ts';
import { merchants, orders, webhookEndpoints } from './schema.ts';

/** Connections for the lookups of clients. One lookup takes a fraction of a millisecond. */
const connections = 2;

/** For pages, as anyone can request them, which must slow down neither clients' lookups nor new orders. */
const pageConnections = 1;

/** Lookups in one batch: they share a statement for each kind of key. */
const batchMax = 128;

/** Lookups that may wait for a connection: a tenth of a second's work. Any more are `overloaded` at once. */
const waitingMax = 1_024;
const pagesWaitingMax = 256;

/** The part of an order store that finds single orders. */
export interface OrderQueries
  extends Pick<OrderStore, 'findByOrderId' | 'findByServiceOrderId' | 'findByToken' | 'findForPage'> {
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

type Key = 'order_id' | 'serviceOrderId' | 'orderToken';

type Statements = ReturnType<typeof prepareStatements>;

interface Lookup {
  readonly by: Key;
  /** Undefined for a token, which is looked up across all merchants. */
  readonly merchantId?: MerchantId;
  readonly value: string;
}

/** Finds orders in PostgreSQL. */
export function openOrderQueries(options: DatabaseOptions, settle: Settle): OrderQueries {
  const queue = openLookups(options, { name: 'lookups', connections, waitingMax });
  const pages = openLookups(options, { name: 'pages', connections: pageConnections, waitingMax: pagesWaitingMax });
  const [find, findForPage] = [settle(queue), settle(pages)];
  const findOrder = async (lookup: Lookup, timeoutMs: number): Promise<OrderLookup> => {
    const outcome = await find(lookup, timeoutMs);
    return outcome.kind === 'found' ? { kind: 'found', order: outcome.order } : outcome;
  };
  return {
    findByOrderId: (merchantId, orderId, timeoutMs) =>
      findOrder({ by: 'order_id', merchantId, value: orderId }, timeoutMs),
    findByServiceOrderId: (merchantId, serviceOrderId, timeoutMs) =>
      findOrder({ by: 'serviceOrderId', merchantId, value: String(serviceOrderId) }, timeoutMs),
    findByToken: (token, timeoutMs) => find({ by: 'orderToken', value: token }, timeoutMs),
    findForPage: (token, timeoutMs) => findForPage({ by: 'orderToken', value: token }, timeoutMs),
    async close() {
      await Promise.all([queue.close(), pages.close()]);
    },
  };
}

/** Lookups that arrive together share a prepared statement, which uses one index. */
function openLookups(
  options: DatabaseOptions,
  {
    name,
    connections,
    waitingMax,
  }: { readonly name: string; readonly connections: number; readonly waitingMax: number },
) {
  const connection = { ...options, applicationName: `order-gateway ${name}`, settings: plansEveryRun };
  return createBatchQueue<Client<Statements>, Lookup, LinkLookup | Due<LinkLookup>>({
    name,
    meter: options.meter,
    clients: Array.from({ length: connections }, () => openClient(connection, prepareStatements)),
    batchMax,
    waitingMax,
    run: findBatch,
  });
}

/**
 * A limit makes PostgreSQL read the orders before it joins, so that Citus does not send the merchants around. A small one would let
 * it scan a table whose size it does not know yet.
 */
const unreached = 2_147_483_647;

/** One statement for a batch of each kind of key, and one for a lone lookup, which takes half of the work for an array of one. */
function prepareStatements(db: PostgresJsDatabase) {
  const find = (name: string, condition: SQL) =>
    db
      .select({
        order: orderColumns,
        merchant: {
          name: merchants.name,
          mode: merchants.mode,
          isDisabled: isNotNull(merchants.disabledAt) as SQL<boolean>,
        },
        endpoint: { signingSecret: webhookEndpoints.signingSecret },
      })
      .from(db.select().from(orders).where(condition).limit(unreached).as('orders'))
      .innerJoin(merchants, eq(merchants.id, orders.merchantId))
      .leftJoin(webhookEndpoints, eq(webhookEndpoints.merchantId, orders.merchantId))
      .prepare(name);
  const [merchantId, value] = [sql.placeholder('merchantId'), sql.placeholder('value')];
  const values = sql.placeholder('values');
  const pairs = (type: SQL) =>
    sql`(select * from unnest(${sql.placeholder('merchantIds')}::bigint[], ${values}::${type}[]))`;
  const isMerchants = eq(orders.merchantId, merchantId);
  return {
    order_id: {
      one: find('find_one_by_order_id', sql`${isMerchants} and ${orders.order_id} = ${value}`),
      batch: find('find_by_order_id', sql`(${orders.merchantId}, ${orders.order_id}) in ${pairs(sql`text`)}`),
    },
    serviceOrderId: {
      one: find('find_one_by_service_order_id', sql`${isMerchants} and ${orders.serviceOrderId} = ${value}`),
      batch: find(
        'find_by_service_order_id',
        sql`(${orders.merchantId}, ${orders.serviceOrderId}) in ${pairs(sql`bigint`)}`,
      ),
    },
    orderToken: {
      one: find('find_one_by_token', sql`${orders.orderToken} = ${value}`),
      batch: find('find_by_token', sql`${orders.orderToken} = any(${values}::text[])`),
    },
  };
}

async function findBatch(
  client: Client<Statements>,
  batch: readonly Lookup[],
): Promise<(LinkLookup | Due<LinkLookup>)[]> {
  const found = new Map<string, LinkLookup | Due<LinkLookup>>();
  for (const [by, lookups] of Map.groupBy(batch, (lookup) => lookup.by)) {
    const [lone] = lookups.length === 1 ? lookups : [];
    const rows = await client.run(({ [by]: { one, batch } }) =>
      lone === undefined
        ? batch.execute({
            merchantIds: arrayLiteral(lookups, ({ merchantId }) => merchantId ?? 0),
            values: arrayLiteral(lookups, ({ value }) => value),
          })
        : one.execute({ ...lone }),
    );
    for (const { order, merchant, endpoint } of rows) {
      const signingSecret = endpoint?.signingSecret ?? null;
      const link = { kind: 'found', order: orderOf(order), merchant: { ...merchant, signingSecret } } as const;
      found.set(keyOfRow(by, order), unlessDue([order], link));
    }
  }
  return batch.map((lookup) => found.get(keyOf(lookup)) ?? { kind: 'unknown' });
}

function keyOf({ by, merchantId, value }: Lookup): string {
  return `${by} ${merchantId} ${value}`;
}

function keyOfRow(by: Key, row: ReadRow): string {
  return `${by} ${by === 'orderToken' ? undefined : row.merchantId} ${row[by]}`;
}
