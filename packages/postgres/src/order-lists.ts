import type { MerchantId } from '@gateway/domain/accounts/merchant';
import { orderStatuses } from '@gateway/domain/orders/order';
import { transitions } from '@gateway/domain/orders/order-states';
import type {
  EventFilter,
  EventPage,
  EventPosition,
  OrderEvent,
  OrderFilter,
  OrderStore,
} from '@gateway/domain/orders/order-store';
import { and, asc, desc, eq, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from './batch-queue.ts';
import { arrayLiteral, type Client, type DatabaseOptions, openClient, plansEveryRun } from './client.ts';
import { redact, statementFailure } from './errors.ts';
import { unlessUnstored, withExpiryStored } from './expired-orders.ts';
import type { OrderChanges } from './order-changes.ts';
import { orderColumns, orderOf, storedColumns } from './order-rows.ts';
import { events, isExpired, orderMetadata, orders, pairDigest } from './schema.ts';

/** Pages that may wait for the connection of their kind: half a second's work. Any more are `overloaded` at once. */
const waitingMax = 256;

/** Orders with a pair of metadata that one page reads, if it has another condition: some milliseconds of work. */
const scannedMax = 1_000;

/** Events that one page reads, if they are filtered: some milliseconds of work. */
const eventsScannedMax = 10_000;

/** The part of an order store that lists. */
export interface OrderLists extends Pick<OrderStore, 'list' | 'listEvents'> {
  /**
   * Returns the latest position in the feed of each of the merchants that has events; of none while the database is not reachable.
   * Rejects with an error without values.
   */
  latestEvents(merchantIds: readonly MerchantId[]): Promise<ReadonlyMap<MerchantId, EventPosition>>;
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

/** Lists orders and events in PostgreSQL, on a connection each, so that they delay neither lookups nor new orders. */
export function openOrderLists(options: DatabaseOptions, expireOrder: OrderChanges['expireOrder']): OrderLists {
  const orderPages = openPages(
    { ...options, name: 'order lists' },
    openLists(options, (db) => ({ list: prepareOrders(db), listByMetadata: prepareOrdersByMetadata(db) })),
    async (client, page: OrderFilter & { merchantId: MerchantId }) => {
      const { merchantId, status, createdFromMs, metadata, limit } = page;
      const range = {
        ...{ merchantId, status: status ?? null, limit },
        createdFrom: createdFromMs === undefined ? '-infinity' : new Date(createdFromMs).toISOString(),
        ...upperBoundOf(page),
      };
      if (metadata === undefined) {
        const statuses = arrayLiteral(status === undefined ? orderStatuses : [status], (one) => one);
        const rows = await client.run(({ list }) => list.execute({ ...range, statuses }));
        return unlessUnstored(rows, { kind: 'found' as const, orders: rows.map(orderOf) });
      }
      const [[key, value] = ['', ''], [secondKey, secondValue] = [null, null]] = Object.entries(metadata);
      const rows = await client.run(({ listByMetadata }) =>
        listByMetadata.execute({
          ...{ ...range, key, value, secondKey, secondValue },
          metadata: JSON.stringify(metadata),
          // Every order of a lone pair is listed.
          scannedMax: secondKey === null && status === undefined ? limit : scannedMax,
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
  const eventLists = openLists(options, (db) => ({ list: prepareEvents(db), latest: prepareLatestEvents(db) }));
  const eventPages = openPages(
    { ...options, name: 'event lists' },
    eventLists,
    async (client, page: EventFilter & { merchantId: MerchantId }): Promise<EventPage> => {
      const { types, orderId, after = { transactionId: '0', eventId: '' }, limit } = page;
      const rows = await client.run(({ list }) =>
        list.execute({
          merchantId: page.merchantId,
          transactionId: after.transactionId,
          eventId: after.eventId,
          types: types === undefined ? null : arrayLiteral(types, (type) => type),
          orderId: orderId ?? null,
          scannedMax: types === undefined && orderId === undefined ? limit : eventsScannedMax,
          limit,
        }),
      );
      const [{ feed } = {}] = rows;
      if (feed?.isKnown !== true) return { kind: 'cursor_expired' };
      const listed = rows.flatMap(({ event, order }): OrderEvent[] =>
        event === null || order === null
          ? []
          : [{ ...event, createdAtMs: event.createdAt.getTime(), order: orderOf(order) }],
      );
      const { transactionId, eventId } = feed;
      if (listed.length === limit || transactionId === null || eventId === null) {
        return { kind: 'found', events: listed, scannedTo: listed.at(-1) };
      }
      return { kind: 'found', events: listed, scannedTo: { transactionId, eventId }, isCut: feed.isCut };
    },
  );
  const listOrders = withExpiryStored(orderPages, expireOrder);
  return {
    list: (merchantId, filter, timeoutMs) => listOrders({ merchantId, ...filter }, timeoutMs),
    listEvents: (merchantId, page, timeoutMs) => eventPages.add({ merchantId, ...page }, timeoutMs),
    async latestEvents(merchantIds) {
      try {
        const rows = await eventLists.run(({ latest }) =>
          latest.execute({ merchantIds: arrayLiteral(merchantIds, (id) => id) }),
        );
        return new Map(rows.map(({ merchantId, ...position }) => [Number(merchantId) as MerchantId, position]));
      } catch (error) {
        if (statementFailure(error) === undefined) throw redact(error);
        return new Map();
      }
    },
    async close() {
      await Promise.all([orderPages.close(), eventPages.close()]);
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

function openLists<Statements>(options: DatabaseOptions, prepare: (db: PostgresJsDatabase) => Statements) {
  return openClient({ ...options, applicationName: 'order-gateway lists', settings: plansEveryRun }, prepare);
}

/** The queue of one kind of pages, which closes its client. */
function openPages<Statement, Request, Page>(
  { name, meter }: Pick<DatabaseOptions, 'meter'> & { readonly name: string },
  client: Client<Statement>,
  read: (client: Client<Statement>, request: Request) => Promise<Page>,
) {
  return createBatchQueue<Client<Statement>, Request, Page>({
    name,
    meter,
    clients: [client],
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
 * orders are joined, so that PostgreSQL has no plan that reads other orders of the merchant. The event of the position must exist:
 * then all later events have higher numbers, also after a restore (docs/decisions/024-event-feed.md).
 */
function prepareEvents(db: PostgresJsDatabase) {
  const merchantId = sql`${sql.placeholder('merchantId')}::bigint`;
  const [transactionId, eventId] = [
    sql`${sql.placeholder('transactionId')}::xid8`,
    sql`${sql.placeholder('eventId')}::text`,
  ];
  const [types, orderId] = [sql`${sql.placeholder('types')}::text[]`, sql`${sql.placeholder('orderId')}::text`];
  const scannedMax = sql.placeholder('scannedMax');
  const scanned = db.$with('scanned').as(
    db
      .select()
      .from(events)
      .where(
        and(
          eq(events.merchantId, merchantId),
          sql`(${events.transactionId}, ${events.eventId}) > (${transactionId}, ${eventId})`,
          sql`${events.transactionId} < pg_snapshot_xmin(pg_current_snapshot())`,
        ),
      )
      .orderBy(asc(events.transactionId), asc(events.eventId))
      .limit(scannedMax),
  );
  const page = db
    .$with('page')
    .as(
      db
        .select()
        .from(scanned)
        .where(sql`(${types} is null or type = any(${types})) and (${orderId} is null or order_id = ${orderId})`)
        .orderBy(asc(scanned.transactionId), asc(scanned.eventId))
        .limit(sql.placeholder('limit')),
    );
  const last = (column: string) =>
    sql.raw(`(select ${column} from scanned order by transaction_id desc, event_id desc limit 1)`);
  const feed = sql`(
    select ${eventId} = '' or (
      ${transactionId} < pg_snapshot_xmax(pg_current_snapshot()) and exists (
        select from ${events}
        where merchant_id = ${merchantId} and transaction_id = ${transactionId} and event_id = ${eventId}
      )
    ) as is_known, (select count(*) from scanned) = ${scannedMax}::bigint as is_cut,
      ${last('transaction_id')}::text as last_transaction_id, ${last('event_id')} as last_event_id
  ) as feed`;
  return db
    .with(scanned, page)
    .select({
      feed: {
        isKnown: sql<boolean>`feed.is_known`,
        isCut: sql<boolean>`feed.is_cut`,
        transactionId: sql<string | null>`feed.last_transaction_id`,
        eventId: sql<string | null>`feed.last_event_id`,
      },
      event: {
        eventId: page.eventId,
        transactionId: sql<string>`${page.transactionId}::text`,
        type: page.type,
        createdAt: page.createdAt,
      },
      order: storedColumns,
    })
    .from(feed)
    .leftJoin(page, sql`true`)
    .leftJoin(orders, and(eq(orders.merchantId, page.merchantId), eq(orders.order_id, page.order_id)))
    .orderBy(asc(page.transactionId), asc(page.eventId))
    .prepare('list_events');
}

/** One look into the index for each merchant, for the last of the events that a page can have. */
function prepareLatestEvents(db: PostgresJsDatabase) {
  const latest = sql`(
    select wanted.id as merchant_id, latest.transaction_id, latest.event_id
    from unnest(${sql.placeholder('merchantIds')}::bigint[]) as wanted (id) cross join lateral (
      select transaction_id, event_id from ${events}
      where merchant_id = wanted.id and transaction_id < pg_snapshot_xmin(pg_current_snapshot())
      order by transaction_id desc, event_id desc limit 1
    ) as latest
  ) as latest`;
  return db
    .select({
      merchantId: sql<string>`merchant_id`,
      transactionId: sql<string>`transaction_id::text`,
      eventId: sql<string>`event_id`,
    })
    .from(latest)
    .prepare('latest_events');
}
