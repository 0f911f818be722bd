import type { AccountId } from '@order-gateway/domain/accounts';
import type { EventFeed, EventFilter, EventPage, FeedEvent } from '@order-gateway/domain/events';
import { and, asc, eq, gt, isNotNull, isNull, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { openListClient, openListQueue } from '../batches/list-queue.ts';
import {
  arrayLiteral,
  type Closable,
  type DatabaseClient,
  type DatabaseOptions,
  type MerchantServer,
} from '../connections/client.ts';
import { unlessUnreachable } from '../connections/errors.ts';
import { orderOf, storedColumns } from '../orders/order-rows.ts';
import { prepareServerQuery } from '../orders/server-query.ts';
import { eventFeeds, events, orders } from '../schema.ts';

/** The maximum number of events that one page filtered by type reads: a few milliseconds of work. */
const scannedMax = 2_000;

/**
 * The maximum number of events that get their positions in one statement: about ten milliseconds of work. This is more
 * than a page lists.
 */
const positionedMax = 1_000;

/** An event feed with its connection. */
export interface PostgresEventFeed extends EventFeed, Closable {
  /**
   * Returns the given merchants that have events after their given positions, or events without a position. Returns
   * none while the database is unreachable. Rejects with an error that contains no values.
   */
  findNewEvents(after: ReadonlyMap<AccountId, number>): Promise<ReadonlySet<AccountId>>;
}

/** Lists events in PostgreSQL on a separate connection, so that lists delay neither lookups nor new orders. */
export function openEventFeed(options: DatabaseOptions): PostgresEventFeed {
  const client = openListClient(options, (db) => prepareEvents(db, options.server));
  const pages = openListQueue({ ...options, name: 'event lists' }, client, readEvents);
  return {
    listEvents: (merchantId, page, timeoutMs) => pages.add({ merchantId, ...page }, timeoutMs),
    async findNewEvents(after) {
      const values = {
        merchantIds: arrayLiteral([...after.keys()], (id) => id),
        positions: arrayLiteral([...after.values()], (position) => position),
      };
      const rows = (await unlessUnreachable(client.run(({ findNew }) => findNew(values)))) ?? [];
      return new Set(rows.map(({ merchantId }) => merchantId as AccountId));
    },
    close: pages.close,
  };
}

type EventRequest = EventFilter & { readonly merchantId: AccountId };
type FeedClient = DatabaseClient<ReturnType<typeof prepareEvents>>;

/** Reads a page of a feed. If it is not full and some events have no position, assigns positions and reads it again. */
async function readEvents(client: FeedClient, page: EventRequest): Promise<EventPage> {
  const read = await readPositioned(client, page);
  if (read.kind !== 'found' || !read.lacksPositions || read.isCut || read.events.length === page.limit) return read;
  await assignPositions(client, page.merchantId);
  const complete = await readPositioned(client, page);
  if (complete.kind !== 'found') return complete;
  return { ...complete, isCut: complete.isCut || complete.lacksPositions };
}

async function readPositioned(
  client: FeedClient,
  { merchantId, types, orderId, after = { position: 0, eventId: '' }, limit }: EventRequest,
) {
  const rows = await client.run(({ list }) =>
    list.execute({
      merchantId,
      ...after,
      orderId: orderId ?? null,
      limit,
      types: types === undefined ? null : arrayLiteral(types, (type) => type),
      scannedMax: types === undefined ? limit : scannedMax,
    }),
  );
  const [{ feed } = {}] = rows;
  if (feed?.isKnown !== true) return { kind: 'cursor_expired' as const };
  const stored = rows.flatMap(({ event }) => event ?? []);
  const orderIds = arrayLiteral(stored, ({ orderId }) => orderId);
  const storedOrders =
    stored.length === 0 ? [] : await client.run(({ find }) => find.execute({ merchantId, orderIds }));
  const orderOfId = new Map(storedOrders.map((row) => [row.order_id, orderOf(row)]));
  const events = stored.flatMap(({ orderId, createdAt, ...event }): FeedEvent[] => {
    const order = orderOfId.get(orderId);
    return order === undefined ? [] : [{ ...event, createdAtMs: createdAt.getTime(), order }];
  });
  const { position, eventId, isCut, lacksPositions } = feed;
  // The query returns no position for a full page, which ends with its last event.
  const scannedTo = position === null || eventId === null ? stored.at(-1) : { position: Number(position), eventId };
  return { kind: 'found' as const, events, scannedTo, isCut, lacksPositions };
}

/**
 * Assigns positions to the oldest of a merchant's events that have none. The feed stays locked until the positions are
 * committed. So a reader that sees a position also sees all lower ones, and no event can appear behind a cursor.
 */
async function assignPositions(client: FeedClient, merchantId: AccountId): Promise<void> {
  const assigned = await client.run(({ assign }) => assign.execute({ merchantId }));
  if (assigned.length > 0) return;
  // Another process has assigned them, or the merchant has no feed yet.
  await client.run(({ createFeed }) => createFeed.execute({ merchantId }));
  await client.run(({ assign }) => assign.execute({ merchantId }));
}

const merchantParameter = sql`${sql.placeholder('merchantId')}::bigint`;
const isOfMerchant = eq(events.merchantId, merchantParameter);

/**
 * The statements of the feeds. A statement that reads orders reads nothing else, so that it runs on one shard of a
 * distributed table.
 */
function prepareEvents(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  return {
    list: preparePage(db),
    find: db
      .select(storedColumns)
      .from(orders)
      .where(
        sql`${orders.merchantId} = ${merchantParameter} and ${orders.order_id} = any(${sql.placeholder('orderIds')}::text[])`,
      )
      .prepare('find_orders_of_events'),
    ...preparePositions(db),
    findNew: prepareNewEvents(db, server),
  };
}

/** Lists one page of a feed, with its state. */
function preparePage(db: PostgresJsDatabase) {
  const [position, eventId] = [sql`${sql.placeholder('position')}::bigint`, sql`${sql.placeholder('eventId')}::text`];
  const [types, orderId] = [sql`${sql.placeholder('types')}::text[]`, sql`${sql.placeholder('orderId')}::text`];
  const scannedMax = sql.placeholder('scannedMax');
  const scanned = db.$with('scanned').as(
    db
      .select()
      .from(events)
      .where(and(isOfMerchant, gt(events.position, position), sql`(${orderId} is null or order_id = ${orderId})`))
      .orderBy(asc(events.position))
      .limit(scannedMax),
  );
  const page = db
    .$with('page')
    .as(
      db
        .select()
        .from(scanned)
        .where(sql`(${types} is null or type = any(${types}))`)
        .orderBy(asc(scanned.position))
        .limit(sql.placeholder('limit')),
    );
  const isFull = sql`(select count(*) from page) = ${sql.placeholder('limit')}::bigint`;
  const isCut = sql`(select count(*) from scanned) = ${scannedMax}::bigint`;
  // A full page ends with its last event, so that the rest of the scan is not read. Otherwise, all events of an order
  // have been read from its index, and its page ends where the feed ends.
  const last = (column: SQL) => sql`case when ${isFull} then null when ${orderId} is null or ${isCut}
      then (select ${column} from scanned order by position desc limit 1)
      else (select ${column} from ${events} where ${isOfMerchant} and ${isNotNull(events.position)} order by position desc limit 1) end`;
  // Once a page has events of the wanted order, only that order's later events matter, so that a backlog of other
  // orders, such as thousands that expired together, does not delay it. An empty page needs all positions, because its
  // caller may wait until the merchant has an event after the cursor.
  const lacksPosition = sql`select 1 from ${events} where ${isOfMerchant} and ${isNull(events.position)}`;
  const lacksPositions = sql`case when ${orderId} is null or not exists (select 1 from page) then exists (${lacksPosition})
      else exists (${lacksPosition} and ${eq(events.order_id, orderId)}) end`;
  // The event of the cursor must exist. Its existence shows that the cursor belongs to the current history of the
  // database, in which all later events have higher positions.
  const feed = sql`(
    select ${eventId} = '' or exists (
      select 1 from ${events} where ${isOfMerchant} and ${eq(events.position, position)} and ${eq(events.eventId, eventId)}
    ) as is_known, ${lacksPositions} as lacks_positions,
      not ${isFull} and ${isCut} as is_cut, ${last(sql`position`)} as last_position, ${last(sql`event_id`)} as last_event_id
  ) as feed`;
  return db
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
    .prepare('list_events');
}

/** Assigns positions to events of a merchant, and creates a merchant's feed. */
function preparePositions(db: PostgresJsDatabase) {
  // The ids are an array, because PostgreSQL then looks them up in the index of the events, regardless of the table's
  // statistics.
  const waiting = sql`array(
    select ${events.eventId} from ${events} where ${isOfMerchant} and ${isNull(events.position)}
    order by ${events.eventId} limit ${positionedMax}
  )`;
  const locked = db.$with('locked').as(
    db
      .update(eventFeeds)
      .set({ lastPosition: sql`${eventFeeds.lastPosition} + cardinality(waiting.ids)` })
      .from(sql`(select ${waiting} as ids) as waiting`)
      .where(eq(eventFeeds.merchantId, merchantParameter))
      .returning({
        before: sql<string>`${eventFeeds.lastPosition} - cardinality(waiting.ids)`.as('before'),
        ids: sql<string[]>`waiting.ids`.as('ids'),
      }),
  );
  return {
    assign: db
      .with(locked)
      .update(events)
      .set({ position: sql`${locked.before} + array_position(${locked.ids}, ${events.eventId})` })
      .from(locked)
      // Another process may have assigned the positions while this one waited for the feed, so events with a position
      // are skipped.
      .where(and(isOfMerchant, sql`${events.eventId} = any(${locked.ids})`, isNull(events.position)))
      .returning({ eventId: events.eventId })
      .prepare('assign_positions'),
    createFeed: db
      .insert(eventFeeds)
      .values({ merchantId: sql`${sql.placeholder('merchantId')}`, lastPosition: 0 })
      .onConflictDoNothing()
      .prepare('create_feed'),
  };
}

/** Finds the merchants that have events after their positions, or events without a position. */
function prepareNewEvents(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  return prepareServerQuery(db, server, { name: 'find_new_events', columns: { merchantId: 'bigint' } }, (value) => {
    const merchantIds = sql`${value('merchantIds')}::bigint[]`;
    const wanted = sql`unnest(${merchantIds}, ${value('positions')}::bigint[]) as wanted (merchant_id, position)`;
    return db
      .select({ merchantId: sql`merchant_id`.mapWith(events.merchantId) })
      .from(
        sql`(
          select ${events.merchantId} from ${events} join ${wanted} on ${events.merchantId} = wanted.merchant_id and ${events.position} > wanted.position
          union all
          select ${events.merchantId} from ${events} where ${events.merchantId} = any(${merchantIds}) and ${isNull(events.position)}
        ) as found`,
      )
      .groupBy(sql`merchant_id`);
  });
}
