import type { MerchantId } from '@gateway/domain/merchant';
import { orderStatuses } from '@gateway/domain/order';
import { transitions } from '@gateway/domain/order-states';
import type { EventPosition, OrderEvent, OrderFilter, OrderStore } from '@gateway/domain/order-store';
import { and, asc, desc, eq, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batch-queue.ts';
import { arrayLiteral, type Client, type DatabaseOptions, openClient, plansEveryRun } from './client.ts';
import { unlessUnstored, withExpiryStored } from './expired-orders.ts';
import type { OrderChanges } from './order-changes.ts';
import { orderColumns, orderOf, storedColumns } from './order-rows.ts';
import { events, isExpired, orderMetadata, orders, pairDigest } from './schema.ts';

/** Pages that may wait for the connection of their kind: half a second's work. Any more are `overloaded` at once. */
const waitingMax = 256;

/** Orders with a pair of metadata that one page reads, if it has another condition: some milliseconds of work. */
const scannedMax = 1_000;

/** The part of an order store that lists. */
export interface OrderLists extends Pick<OrderStore, 'list' | 'listEvents'> {
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

/** Lists orders and events in PostgreSQL, on a connection each, so that they delay neither look-ups nor new orders. */
export function openOrderLists(options: DatabaseOptions, expireOrder: OrderChanges['expireOrder']): OrderLists {
  const orderPages = openPages(
    { ...options, name: 'order lists' },
    prepareOrders,
    async (client, page: OrderFilter & { merchantId: MerchantId }) => {
      const { status, createdFromMs } = page;
      const rows = await client.run((list) =>
        list.execute({
          merchantId: page.merchantId,
          status: status ?? null,
          statuses: arrayLiteral(status === undefined ? orderStatuses : [status], (one) => one),
          createdFrom: createdFromMs === undefined ? '-infinity' : new Date(createdFromMs).toISOString(),
          ...upperBoundOf(page),
          limit: page.limit,
        }),
      );
      return unlessUnstored(rows, { kind: 'found' as const, orders: rows.map(orderOf) });
    },
  );
  const eventPages = openPages(
    { ...options, name: 'event lists' },
    prepareEvents,
    async (client, page: { merchantId: MerchantId; after?: EventPosition | undefined; limit: number }) => {
      const { after = { transactionId: '0', eventId: '' } } = page;
      const rows = await client.run((list) =>
        list.execute({ merchantId: page.merchantId, ...after, limit: page.limit }),
      );
      const listed = rows.map(
        ({ event, order }): OrderEvent => ({ ...event, createdAtMs: event.createdAt.getTime(), order: orderOf(order) }),
      );
      return { kind: 'found' as const, events: listed };
    },
  );
  const metadataPages = openPages(
    { ...options, name: 'order lists by metadata' },
    prepareOrdersByMetadata,
    async (client, { metadata = {}, ...page }: OrderFilter & { merchantId: MerchantId }) => {
      const [[key, value] = ['', ''], [secondKey, secondValue] = [null, null]] = Object.entries(metadata);
      const rows = await client.run((list) =>
        list.execute({
          merchantId: page.merchantId,
          ...{ key, value, secondKey, secondValue },
          metadata: JSON.stringify(metadata),
          status: page.status ?? null,
          createdFrom: page.createdFromMs === undefined ? '-infinity' : new Date(page.createdFromMs).toISOString(),
          ...upperBoundOf(page),
          // Every order of a lone pair is listed.
          scannedMax: secondKey === null && page.status === undefined ? page.limit : scannedMax,
          limit: page.limit,
        }),
      );
      const listed = rows.flatMap(({ order }) => order ?? []);
      const [end] = rows;
      const scannedTo = end?.isCut
        ? { createdAtMs: Number(end.createdAtMs), serviceOrderId: Number(end.serviceOrderId) }
        : undefined;
      return unlessUnstored(listed, { kind: 'found' as const, orders: listed.map(orderOf), scannedTo });
    },
  );
  const listOrders = withExpiryStored(orderPages, expireOrder);
  const listByMetadata = withExpiryStored(metadataPages, expireOrder);
  return {
    list: (merchantId, filter, timeoutMs) =>
      (filter.metadata === undefined ? listOrders : listByMetadata)({ merchantId, ...filter }, timeoutMs),
    listEvents: (merchantId, page, timeoutMs) => eventPages.add({ merchantId, ...page }, timeoutMs),
    async close() {
      await Promise.all([orderPages.close(), metadataPages.close(), eventPages.close()]);
    },
  };
}

/** The one position that all listed orders stand before: of two bounds PostgreSQL would scan the index from the wider one. */
function upperBoundOf({ createdToMs, after }: OrderFilter): { readonly beforeTime: string; readonly beforeId: number } {
  if (after !== undefined && after.createdAtMs < (createdToMs ?? Number.POSITIVE_INFINITY)) {
    return { beforeTime: new Date(after.createdAtMs).toISOString(), beforeId: after.serviceOrderId };
  }
  // Ids are positive: no order of that millisecond stands before this.
  return { beforeTime: createdToMs === undefined ? 'infinity' : new Date(createdToMs).toISOString(), beforeId: 0 };
}

function openPages<Statement, Request, Page>(
  { name, ...options }: DatabaseOptions & { readonly name: string },
  prepare: (db: PostgresJsDatabase) => Statement,
  read: (client: Client<Statement>, request: Request) => Promise<Page>,
) {
  return createBatchQueue<Client<Statement>, Request, Page>({
    name,
    meter: options.meter,
    clients: [openClient({ ...options, applicationName: 'order-gateway lists', settings: plansEveryRun }, prepare)],
    batchMax: 1,
    waitingMax,
    run: (client, requests) => Promise.all(requests.map((request) => read(client, request))),
  });
}

/**
 * One range of `orders_list` for each status, so that a page costs the same wherever it stands and however rare the status is.
 * Orders past their end that are still stored as open come from `orders_open_end`: `offset 0` makes PostgreSQL read them first.
 */
function prepareOrders(db: PostgresJsDatabase) {
  const status = sql`${sql.placeholder('status')}::text`;
  const limit = sql.placeholder('limit');
  const isOnPage = and(
    eq(orders.merchantId, sql.placeholder('merchantId')),
    sql`${orders.createdAt} >= ${sql.placeholder('createdFrom')}::timestamptz`,
    sql`(${orders.createdAt}, ${orders.serviceOrderId}) < (${sql.placeholder('beforeTime')}::timestamptz, ${sql.placeholder('beforeId')}::bigint)`,
  );
  const newestFirst = [desc(orders.createdAt), desc(orders.serviceOrderId)];
  const order = sql.join(newestFirst, sql`, `);
  const page = sql`(
    select listed.* from unnest(${sql.placeholder('statuses')}::text[]) as wanted(status) cross join lateral (
      select merchant_id, order_id from ${orders}
      where ${isOnPage} and ${orders.orderStatus} = wanted.status and (${status} is null or (${isExpired}) is not true)
      order by ${order} limit ${limit}
    ) as listed
    union all
    select merchant_id, order_id from (select * from ${orders} where ${isExpired} offset 0) as ${orders}
    where ${status} = 'EXPIRED' and ${isOnPage}
  ) as page`;
  return db
    .select(orderColumns)
    .from(orders)
    .innerJoin(page, sql`page.merchant_id = ${orders.merchantId} and page.order_id = ${orders.order_id}`)
    .orderBy(...newestFirst)
    .limit(limit)
    .prepare('list_orders');
}

/**
 * Reads one range of the rows of a pair, of two pairs the one that has fewer there, and then their orders, which are compared with all
 * conditions. At most `scannedMax` rows are read. The first row says whether there are more, and where the range ends.
 */
function prepareOrdersByMetadata(db: PostgresJsDatabase) {
  const limit = sql.placeholder('limit');
  const merchantId = sql`${sql.placeholder('merchantId')}::bigint`;
  const [status, scannedMax] = [sql`${sql.placeholder('status')}::text`, sql`${sql.placeholder('scannedMax')}::int`];
  const rowsOf = (key: string, value: string) => sql`
    select created_at, service_order_id from ${orderMetadata}
    where merchant_id = ${merchantId}
      and pair_digest = ${pairDigest(sql`${sql.placeholder(key)}::text`, sql`${sql.placeholder(value)}::text`)}
      and created_at >= ${sql.placeholder('createdFrom')}::timestamptz
      and (created_at, service_order_id) < (${sql.placeholder('beforeTime')}::timestamptz, ${sql.placeholder('beforeId')}::bigint)
    order by created_at desc, service_order_id desc limit ${scannedMax}`;
  const scan = sql`(
    with first as materialized (${rowsOf('key', 'value')}), second as materialized (${rowsOf('secondKey', 'secondValue')}),
    choice as (
      select ${sql.placeholder('secondKey')}::text is null or (select count(*) from first) <= (select count(*) from second) as is_first
    ),
    scanned as (
      select first.* from first, choice where is_first union all select second.* from second, choice where not is_first
    )
    select array_agg(service_order_id) as ids, count(*) = ${scannedMax} as is_cut,
      (array_agg(created_at order by created_at, service_order_id))[1] as last_created_at,
      (array_agg(service_order_id order by created_at, service_order_id))[1] as last_id
    from scanned
  ) as scan`;
  const isOnPage = and(
    eq(orders.merchantId, merchantId),
    sql`${orders.serviceOrderId} = any(scan.ids)`,
    sql`${orders.metadata} @> ${sql.placeholder('metadata')}::jsonb`,
    sql`(${status} is null or ${status} = case when ${isExpired} then ${transitions.expire.to} else ${orders.orderStatus} end)`,
  );
  return db
    .select({
      isCut: sql<boolean>`scan.is_cut`,
      createdAtMs: sql<number | null>`(extract(epoch from scan.last_created_at) * 1000)::float8`,
      serviceOrderId: sql<string | null>`scan.last_id`,
      order: orderColumns,
    })
    .from(scan)
    .leftJoin(orders, isOnPage)
    .orderBy(desc(orders.createdAt), desc(orders.serviceOrderId))
    .limit(limit)
    .prepare('list_orders_by_metadata');
}

/**
 * Events of finished transactions only: an event of a running one could still appear before them. The page is selected before its
 * orders are joined, so that PostgreSQL has no plan that reads other orders of the merchant.
 */
function prepareEvents(db: PostgresJsDatabase) {
  const position = sql`(${sql.placeholder('transactionId')}::xid8, ${sql.placeholder('eventId')}::text)`;
  const page = db.$with('page').as(
    db
      .select()
      .from(events)
      .where(
        and(
          eq(events.merchantId, sql.placeholder('merchantId')),
          sql`(${events.transactionId}, ${events.eventId}) > ${position}`,
          sql`${events.transactionId} < pg_snapshot_xmin(pg_current_snapshot())`,
        ),
      )
      .orderBy(asc(events.transactionId), asc(events.eventId))
      .limit(sql.placeholder('limit')),
  );
  return db
    .with(page)
    .select({
      event: {
        eventId: page.eventId,
        transactionId: sql<string>`${page.transactionId}::text`,
        type: page.type,
        createdAt: page.createdAt,
      },
      order: storedColumns,
    })
    .from(page)
    .innerJoin(orders, and(eq(orders.merchantId, page.merchantId), eq(orders.order_id, page.order_id)))
    .orderBy(asc(page.transactionId), asc(page.eventId))
    .prepare('list_events');
}
