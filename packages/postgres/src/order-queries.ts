import type { MerchantId } from '@gateway/domain/merchant';
import type { LinkLookup, OrderLookup, OrderStore } from '@gateway/domain/order-store';
import { eq, isNotNull, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batch-queue.ts';
import { arrayLiteral, type Client, type DatabaseOptions, openClient, plansEveryRun } from './client.ts';
import { type OrderRow, orderColumns, orderOf } from './order-rows.ts';
import { merchants, orders, webhookEndpoints } from './schema.ts';

/**
 * Connections for lookups. Separate from the inserting one, as anyone can request a payment page and must not slow down creating
 * orders. One lookup takes a fraction of a millisecond.
 */
const connections = 2;

/** Lookups in one batch: they share a statement for each kind of key. */
const batchMax = 128;

/** Lookups that may wait for a connection: a tenth of a second's work. Any more are `overloaded` at once. */
const waitingMax = 1_024;

/** The part of an order store that finds single orders. */
export interface OrderQueries extends Pick<OrderStore, 'findByOrderId' | 'findByServiceOrderId' | 'findByToken'> {
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

/** Finds orders in PostgreSQL. Lookups that arrive together share a prepared statement, which uses one index. */
export function openOrderQueries(options: DatabaseOptions): OrderQueries {
  const queue = createBatchQueue<Client<Statements>, Lookup, LinkLookup>({
    name: 'lookups',
    meter: options.meter,
    clients: Array.from({ length: connections }, () =>
      openClient({ ...options, applicationName: 'order-gateway lookups', settings: plansEveryRun }, prepareStatements),
    ),
    batchMax,
    waitingMax,
    run: findBatch,
  });
  const findOrder = async (lookup: Lookup, timeoutMs: number): Promise<OrderLookup> => {
    const outcome = await queue.add(lookup, timeoutMs);
    return outcome.kind === 'found' ? { kind: 'found', order: outcome.order } : outcome;
  };
  return {
    findByOrderId: (merchantId, orderId, timeoutMs) =>
      findOrder({ by: 'order_id', merchantId, value: orderId }, timeoutMs),
    findByServiceOrderId: (merchantId, serviceOrderId, timeoutMs) =>
      findOrder({ by: 'serviceOrderId', merchantId, value: String(serviceOrderId) }, timeoutMs),
    findByToken: (token, timeoutMs) => queue.add({ by: 'orderToken', value: token }, timeoutMs),
    close: queue.close,
  };
}

function prepareStatements(db: PostgresJsDatabase) {
  const found = () =>
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
      .from(orders)
      .innerJoin(merchants, eq(merchants.id, orders.merchantId))
      .leftJoin(webhookEndpoints, eq(webhookEndpoints.merchantId, orders.merchantId));
  const merchantIds = sql`${sql.placeholder('merchantIds')}::bigint[]`;
  const values = sql.placeholder('values');
  const orderIds = sql`(select * from unnest(${merchantIds}, ${values}::text[]))`;
  const serviceOrderIds = sql`(select * from unnest(${merchantIds}, ${values}::bigint[]))`;
  return {
    order_id: found().where(sql`(${orders.merchantId}, ${orders.order_id}) in ${orderIds}`).prepare('find_by_order_id'),
    serviceOrderId: found()
      .where(sql`(${orders.merchantId}, ${orders.serviceOrderId}) in ${serviceOrderIds}`)
      .prepare('find_by_service_order_id'),
    orderToken: found().where(sql`${orders.orderToken} = any(${values}::text[])`).prepare('find_by_token'),
  };
}

async function findBatch(client: Client<Statements>, batch: readonly Lookup[]): Promise<LinkLookup[]> {
  const found = new Map<string, LinkLookup>();
  for (const [by, lookups] of Map.groupBy(batch, (lookup) => lookup.by)) {
    const rows = await client.run((statements) =>
      statements[by].execute({
        merchantIds: arrayLiteral(lookups, ({ merchantId }) => merchantId ?? 0),
        values: arrayLiteral(lookups, ({ value }) => value),
      }),
    );
    for (const { order, merchant, endpoint } of rows) {
      const signingSecret = endpoint?.signingSecret ?? null;
      found.set(keyOfRow(by, order), {
        kind: 'found',
        order: orderOf(order),
        merchant: { ...merchant, signingSecret },
      });
    }
  }
  return batch.map((lookup) => found.get(keyOf(lookup)) ?? { kind: 'unknown' });
}

function keyOf({ by, merchantId, value }: Lookup): string {
  return `${by} ${merchantId} ${value}`;
}

function keyOfRow(by: Key, row: OrderRow): string {
  return `${by} ${by === 'orderToken' ? undefined : row.merchantId} ${row[by]}`;
}
