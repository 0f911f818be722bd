import type { AccountId } from '@gateway/domain/accounts/account';
import { orderStatuses } from '@gateway/domain/orders/order';
import { transitions } from '@gateway/domain/orders/order-states';
import type { EventFilter, EventPage, FeedEvent, OrderFilter, OrderStore } from '@gateway/domain/orders/order-store';
import { and, asc, desc, eq, gt, isNull, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from '../batches/batch-queue.ts';
import {
  arrayLiteral,
  type DatabaseClient,
  type DatabaseOptions,
  openClient,
  plansEveryRun,
} from '../connections/client.ts';
import { redact, statementFailure } from '../connections/errors.ts';
import { eventFeeds, events, isExpired, orderMetadata, orders, pairDigest } from '../schema.ts';
import { unlessUnstored, withExpiryStored } from './expired-orders.ts';
import type { OrderChanges } from './order-changes.ts';
import { orderColumns, orderOf, storedColumns } from './order-rows.ts';

/** Pages that may wait for the connection of their kind: half a second's work. Any more are `overloaded` at once. */
const waitingMax = 256;

/** Orders with a pair of metadata that one page reads, if it has another condition: some milliseconds of work. */
const scannedMax = 1_000;

/** Events that one page reads, if they are filtered: some milliseconds of work. */
const eventsScannedMax = 10_000;

/** Events that get their positions in one statement: some ten milliseconds of work. More than a page lists. */
const positionedMax = 1_000;

/** The part of an order store that lists. */
export interface OrderLists extends Pick<OrderStore, 'list' | 'listEvents'> {
  /**
   * Returns those of the merchants whose feeds have events after these positions; none while the database is not reachable. Rejects
   * with an error without values.
   */
  findNewEvents(after: ReadonlyMap<AccountId, number>): Promise<ReadonlySet<AccountId>>;
  /** Lets running calls finish, then closes the connections. */
  close(): Promise<void>;
}

/** Lists orders and events in PostgreSQL, on a connection each, so that they delay neither lookups nor new orders. */
export function openOrderLists(options: DatabaseOptions, expireOrder: OrderChanges['expireOrder']): OrderLists {
  const orderPages = openPages(
    { ...options, name: 'order lists' },
    openLists(options, (db) => ({ list: prepareOrders(db), listByMetadata: prepareOrdersByMetadata(db) })),
    async (client, page: OrderFilter & { merchantId: AccountId }) => {
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
  const eventLists = openLists(options, prepareEvents);
  const eventPages = openPages({ ...options, name: 'event lists' }, eventLists, readEvents);
  const listOrders = withExpiryStored(orderPages, expireOrder);
  return {
    list: (merchantId, filter, timeoutMs) => listOrders({ merchantId, ...filter }, timeoutMs),
    listEvents: (merchantId, page, timeoutMs) => eventPages.add({ merchantId, ...page }, timeoutMs),
    async findNewEvents(after) {
      const values = {
        merchantIds: arrayLiteral([...after.keys()], (id) => id),
        positions: arrayLiteral([...after.values()], (position) => position),
      };
      try {
        const rows = await eventLists.run(({ findNew }) => findNew.execute(values));
        return new Set(rows.map(({ merchantId }) => Number(merchantId) as AccountId));
      } catch (error) {
        if (statementFailure(error) === undefined) throw redact(error);
        return new Set();
      }
    },
    async close() {
      await Promise.all([orderPages.close(), eventPages.close()]);
    },
  };
}

type EventRequest = EventFilter & { readonly merchantId: AccountId };
type EventLists = DatabaseClient<ReturnType<typeof prepareEvents>>;

/** Reads a page of a feed. If it is not full, the events without a position get one first. */
async function readEvents(client: EventLists, page: EventRequest): Promise<EventPage> {
  const read = await readPositioned(client, page);
  if (read.kind !== 'found' || !read.lacksPositions || read.isCut || read.events.length === page.limit) return read;
  await assignPositions(client, page.merchantId);
  const complete = await readPositioned(client, page);
  if (complete.kind !== 'found') return complete;
  return { ...complete, isCut: complete.isCut || complete.lacksPositions };
}

async function readPositioned(
  client: EventLists,
  { merchantId, types, orderId, after = { position: 0, eventId: '' }, limit }: EventRequest,
) {
  const rows = await client.run(({ list }) =>
    list.execute({
      ...{ merchantId, ...after, orderId: orderId ?? null, limit },
      types: types === undefined ? null : arrayLiteral(types, (type) => type),
      scannedMax: types === undefined && orderId === undefined ? limit : eventsScannedMax,
    }),
  );
  const [{ feed } = {}] = rows;
  if (feed?.isKnown !== true) return { kind: 'cursor_expired' as const };
  const stored = rows.flatMap(({ event }) => event ?? []);
  const orderIds = arrayLiteral(stored, ({ orderId }) => orderId);
  const found = stored.length === 0 ? [] : await client.run(({ find }) => find.execute({ merchantId, orderIds }));
  const orderOfId = new Map(found.map((row) => [row.order_id, orderOf(row)]));
  const events = stored.flatMap(({ orderId, createdAt, ...event }): FeedEvent[] => {
    const order = orderOfId.get(orderId);
    return order === undefined ? [] : [{ ...event, createdAtMs: createdAt.getTime(), order }];
  });
  const { position, eventId, isCut, lacksPositions } = feed;
  if (stored.length === limit || position === null || eventId === null) {
    return { kind: 'found' as const, events, scannedTo: stored.at(-1), isCut: false, lacksPositions };
  }
  return { kind: 'found' as const, events, scannedTo: { position: Number(position), eventId }, isCut, lacksPositions };
}

/**
 * Gives positions to the oldest events of a merchant that have none. Its feed stays locked until they are committed: so a reader that sees
 * a position sees all that are lower, and no event can appear before a cursor.
 */
async function assignPositions(client: EventLists, merchantId: AccountId): Promise<void> {
  const assigned = await client.run(({ assign }) => assign.execute({ merchantId }));
  if (assigned.length > 0) return;
  // Another process has done it, or the merchant has no feed yet.
  await client.run(({ openFeed }) => openFeed.execute({ merchantId }));
  await client.run(({ assign }) => assign.execute({ merchantId }));
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
  client: DatabaseClient<Statement>,
  read: (client: DatabaseClient<Statement>, request: Request) => Promise<Page>,
) {
  return createBatchQueue<DatabaseClient<Statement>, Request, Page>({
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
 * Orders past their expiry that are still stored as unpaid are read from `orders_unpaid_expiry`: `offset 0` makes PostgreSQL
 * read them first.
 */
function prepareOrders(db: PostgresJsDatabase) {
  const status = sql`${sql.placeholder('status')}::text`;
  const limit = sql.placeholder('limit');
  const isMerchants = eq(orders.merchantId, sql.placeholder('merchantId'));
  const isOnPage = and(
    isMerchants,
    sql`${orders.createdAt} >= ${sql.placeholder('createdFrom')}::timestamptz`,
    sql`(${orders.createdAt}, ${orders.serviceOrderId}) < (${sql.placeholder('beforeTime')}::timestamptz, ${sql.placeholder('beforeId')}::bigint)`,
  );
  const newestFirst = [desc(orders.createdAt), desc(orders.serviceOrderId)];
  const order = sql.join(newestFirst, sql`, `);
  const page = sql`(
    select listed.* from unnest(${sql.placeholder('statuses')}::text[]) as wanted(status) cross join lateral (
      select order_id from ${orders}
      where ${isOnPage} and ${orders.orderStatus} = wanted.status and (${status} is null or (${isExpired}) is not true)
      order by ${order} limit ${limit}
    ) as listed
    union all
    select order_id from (select * from ${orders} where ${isMerchants} and ${isExpired} offset 0) as ${orders}
    where ${status} = 'EXPIRED' and ${isOnPage}
  ) as page`;
  return db
    .select(orderColumns)
    .from(orders)
    .innerJoin(page, and(isMerchants, sql`page.order_id = ${orders.order_id}`))
    .orderBy(...newestFirst)
    .limit(limit)
    .prepare('list_orders');
}

/**
 * Reads one range of the rows of a pair, of two pairs the one that has fewer there, and then the orders that also have the other pair,
 * which are compared with all conditions. At most `scannedMax` rows are read. The first row says whether there are more, and where the range ends.
 */
function prepareOrdersByMetadata(db: PostgresJsDatabase) {
  const limit = sql.placeholder('limit');
  const merchantId = sql`${sql.placeholder('merchantId')}::bigint`;
  const [status, scannedMax] = [sql`${sql.placeholder('status')}::text`, sql`${sql.placeholder('scannedMax')}::int`];
  const secondKey = sql`${sql.placeholder('secondKey')}::text`;
  const digest = pairDigest(sql`${sql.placeholder('key')}::text`, sql`${sql.placeholder('value')}::text`);
  const secondDigest = pairDigest(secondKey, sql`${sql.placeholder('secondValue')}::text`);
  const rowsOf = (wanted: SQL) => sql`
    select created_at, service_order_id from ${orderMetadata}
    where ${eq(orderMetadata.merchantId, merchantId)} and pair_digest = ${wanted}
      and created_at >= ${sql.placeholder('createdFrom')}::timestamptz
      and (created_at, service_order_id) < (${sql.placeholder('beforeTime')}::timestamptz, ${sql.placeholder('beforeId')}::bigint)
    order by created_at desc, service_order_id desc limit ${scannedMax}`;
  // The other pair is looked up in its index too. A page reads no more orders than it shows, unless they are compared with a status.
  const hasOther = sql`(${secondKey} is null or exists (
    select 1 from ${orderMetadata}
    where ${eq(orderMetadata.merchantId, merchantId)} and ${orderMetadata.pairDigest} = other
      and ${orderMetadata.createdAt} = scanned.created_at and ${orderMetadata.serviceOrderId} = scanned.service_order_id
  ))`;
  const newest = sql`case when ${status} is null then ${limit}::int else ${scannedMax} end`;
  const scan = sql`(
    with first as materialized (${rowsOf(digest)}), second as materialized (${rowsOf(secondDigest)}),
    choice as (
      select ${secondKey} is null or (select count(*) from first) <= (select count(*) from second) as is_first
    ),
    scanned as (
      select first.*, ${secondDigest} as other from first, choice where is_first
      union all select second.*, ${digest} from second, choice where not is_first
    )
    select array(
        select service_order_id from (select * from scanned order by created_at desc, service_order_id desc offset 0) as scanned
        where ${hasOther} order by created_at desc, service_order_id desc limit ${newest}
      ) as ids,
      count(*) = ${scannedMax} as is_cut,
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

/** The statements of the feeds. Those that read orders read nothing else, so that one shard of a distributed table answers. */
function prepareEvents(db: PostgresJsDatabase) {
  const merchantId = sql`${sql.placeholder('merchantId')}::bigint`;
  const [position, eventId] = [sql`${sql.placeholder('position')}::bigint`, sql`${sql.placeholder('eventId')}::text`];
  const [types, orderId] = [sql`${sql.placeholder('types')}::text[]`, sql`${sql.placeholder('orderId')}::text`];
  const scannedMax = sql.placeholder('scannedMax');
  const isMerchants = eq(events.merchantId, merchantId);
  const scanned = db.$with('scanned').as(
    db
      .select()
      .from(events)
      .where(and(isMerchants, gt(events.position, position)))
      .orderBy(asc(events.position))
      .limit(scannedMax),
  );
  const page = db
    .$with('page')
    .as(
      db
        .select()
        .from(scanned)
        .where(sql`(${types} is null or type = any(${types})) and (${orderId} is null or order_id = ${orderId})`)
        .orderBy(asc(scanned.position))
        .limit(sql.placeholder('limit')),
    );
  const last = (column: string) => sql.raw(`(select ${column} from scanned order by position desc limit 1)`);
  // The event of the cursor must exist: then it is of this history of the database, and all later events have higher positions.
  const feed = sql`(
    select ${eventId} = '' or exists (
      select 1 from ${events} where ${isMerchants} and ${eq(events.position, position)} and ${eq(events.eventId, eventId)}
    ) as is_known, exists (select 1 from ${events} where ${isMerchants} and ${isNull(events.position)}) as lacks_positions,
      (select count(*) from scanned) = ${scannedMax}::bigint as is_cut,
      ${last('position')} as last_position, ${last('event_id')} as last_event_id
  ) as feed`;
  // An array, which PostgreSQL looks up in the index of the events whatever it knows of the table.
  const waiting = sql`array(
    select ${events.eventId} from ${events} where ${isMerchants} and ${isNull(events.position)}
    order by ${events.eventId} limit ${positionedMax}
  )`;
  const locked = db.$with('locked').as(
    db
      .update(eventFeeds)
      .set({ lastPosition: sql`${eventFeeds.lastPosition} + cardinality(waiting.ids)` })
      .from(sql`(select ${waiting} as ids) as waiting`)
      .where(eq(eventFeeds.merchantId, merchantId))
      .returning({
        before: sql<string>`${eventFeeds.lastPosition} - cardinality(waiting.ids)`.as('before'),
        ids: sql<string[]>`waiting.ids`.as('ids'),
      }),
  );
  const wanted = sql`unnest(${sql.placeholder('merchantIds')}::bigint[], ${sql.placeholder('positions')}::bigint[]) as wanted (merchant_id, position)`;
  return {
    list: db
      .with(scanned, page)
      .select({
        feed: {
          isKnown: sql<boolean>`feed.is_known`,
          lacksPositions: sql<boolean>`feed.lacks_positions`,
          isCut: sql<boolean>`feed.is_cut`,
          position: sql<string | null>`feed.last_position`,
          eventId: sql<string | null>`feed.last_event_id`,
        },
        event: {
          position: sql<number>`${page.position}`.mapWith(Number),
          eventId: page.eventId,
          type: page.type,
          createdAt: page.createdAt,
          orderId: page.order_id,
        },
      })
      .from(feed)
      .leftJoin(page, sql`true`)
      .orderBy(asc(page.position))
      .prepare('list_events'),
    find: db
      .select(storedColumns)
      .from(orders)
      .where(
        sql`${orders.merchantId} = ${merchantId} and ${orders.order_id} = any(${sql.placeholder('orderIds')}::text[])`,
      )
      .prepare('find_orders_of_events'),
    assign: db
      .with(locked)
      .update(events)
      .set({ position: sql`${locked.before} + array_position(${locked.ids}, ${events.eventId})` })
      .from(locked)
      // Without a position still: another process may have assigned them while this one waited for the feed.
      .where(and(isMerchants, sql`${events.eventId} = any(${locked.ids})`, isNull(events.position)))
      .returning({ eventId: events.eventId })
      .prepare('assign_positions'),
    openFeed: db
      .insert(eventFeeds)
      .values({ merchantId: sql`${sql.placeholder('merchantId')}`, lastPosition: 0 })
      .onConflictDoNothing()
      .prepare('open_feed'),
    findNew: db
      .select({ merchantId: sql<string>`merchant_id` })
      .from(
        sql`(
          select ${events.merchantId} from ${events} join ${wanted} on ${events.merchantId} = wanted.merchant_id and ${events.position} > wanted.position
          union all
          select ${events.merchantId} from ${events} where ${events.merchantId} = any(${sql.placeholder('merchantIds')}::bigint[]) and ${isNull(events.position)}
        ) as found`,
      )
      .groupBy(sql`merchant_id`)
      .prepare('find_new_events'),
  };
}
