import type { AccountId } from '@order-gateway/domain/accounts';
import {
  type OrderFilter,
  type OrderStatus,
  type OrderStore,
  orderStatuses,
  transitions,
} from '@order-gateway/domain/orders';
import { and, desc, eq, getTableColumns, getTableName, type SQL, type SQLWrapper, Subquery, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { openListClient, openListQueue } from '../../batches/list-queue.ts';
import type { Closable, DatabaseOptions } from '../../connections/client.ts';
import { isExpired, orderMetadata, orders, pairDigest } from '../../schema.ts';
import { orderColumns, orderOf } from '../order-rows.ts';
import { type ExpireOrder, unlessUnstored, withExpiryStored } from './expired-orders.ts';

/**
 * The maximum number of orders that a page filtered by metadata or currency reads: a few milliseconds of work. With
 * metadata and another condition, it limits the orders that have the pair; with a currency, the orders of each status.
 */
const scannedMax = 1_000;

/** Lists orders in PostgreSQL on a separate connection, so that lists delay neither lookups nor new orders. */
export function openOrderLists(
  options: DatabaseOptions,
  expireOrder: ExpireOrder,
): Pick<OrderStore, 'list'> & Closable {
  const orderPages = openListQueue(
    { ...options, name: 'order lists' },
    openListClient(options, (db) => ({
      list: prepareOrders(db),
      listByCurrency: prepareOrdersByCurrency(db),
      listByMetadata: prepareOrdersByMetadata(db),
    })),
    async (client, page: OrderFilter & { merchantId: AccountId }) => {
      const { merchantId, status, currency, createdFromMs, metadata, limit } = page;
      const range = {
        merchantId,
        status: status ?? null,
        currency: currency ?? null,
        limit,
        createdFrom: createdFromMs === undefined ? '-infinity' : new Date(createdFromMs).toISOString(),
        ...upperBoundOf(page),
      };
      if (metadata === undefined && currency === undefined) {
        const rows = await client.run(({ list }) => list.execute(range));
        return unlessUnstored(rows, { kind: 'found' as const, orders: rows.map(orderOf) });
      }
      const [[key, value] = ['', ''], [secondKey, secondValue] = [null, null]] = Object.entries(metadata ?? {});
      const rows = await client.run(({ listByCurrency, listByMetadata }) =>
        (metadata === undefined ? listByCurrency : listByMetadata).execute({
          ...range,
          key,
          value,
          secondKey,
          secondValue,
          metadata: JSON.stringify(metadata),
          // With one pair and no other condition, every order that is read is listed.
          scannedMax: secondKey === null && status === undefined && currency === undefined ? limit : scannedMax,
        }),
      );
      const listed = rows.flatMap(({ order }) => order ?? []);
      const [scan] = rows;
      const scannedTo = scan?.isCut
        ? { createdAtMs: Number(scan.createdAtMs), serviceOrderId: Number(scan.serviceOrderId) }
        : undefined;
      return unlessUnstored(listed, { kind: 'found' as const, orders: listed.map(orderOf), scannedTo });
    },
  );
  const listOrders = withExpiryStored(orderPages, expireOrder);
  return {
    list: (merchantId, filter, timeoutMs) => listOrders({ merchantId, ...filter }, timeoutMs),
    close: orderPages.close,
  };
}

/**
 * Combines the two upper bounds of a list, its cursor and `created_to`, into one position. Given both, PostgreSQL would
 * start to scan the index at the later one.
 */
function upperBoundOf({ createdToMs, after }: OrderFilter): { readonly beforeTime: string; readonly beforeId: number } {
  if (after !== undefined && after.createdAtMs < (createdToMs ?? Number.POSITIVE_INFINITY)) {
    return { beforeTime: new Date(after.createdAtMs).toISOString(), beforeId: after.serviceOrderId };
  }
  // Ids are positive, so no order of that millisecond precedes this position.
  return { beforeTime: createdToMs === undefined ? 'infinity' : new Date(createdToMs).toISOString(), beforeId: 0 };
}

/**
 * Lists the orders of a page. First finds their ids, because planning all columns in each range takes longer than
 * looking up the orders by their ids, above all on Citus. There, one more subquery with all columns would also take as
 * long as the rest of the list.
 */
function prepareOrders(db: PostgresJsDatabase) {
  const limit = sql.placeholder('limit');
  const ids = sql`array(
    select service_order_id from (${newestOfStatuses(limit, sql`created_at, service_order_id`)}) as newest
    order by created_at desc, service_order_id desc limit ${limit}
  )`;
  return db
    .select(orderColumns)
    .from(sql`unnest(${ids}) as page (id)`)
    .crossJoinLateral(orderOfPage(sql.placeholder('merchantId')))
    .orderBy(...newestFirst)
    .prepare('list_orders');
}

/**
 * The merchant's order with the id of a row of `page`. `offset 0` makes PostgreSQL look up each id. With one condition
 * for all ids, it reads the merchant's whole range of `orders_list` (docs/decisions/082).
 */
const orderOfPage = (merchantId: SQLWrapper) =>
  inPlaceOfTable(
    sql`select * from ${orders} where ${eq(orders.merchantId, merchantId)} and ${orders.serviceOrderId} = page.id offset 0`,
  );

/** The merchant's orders that a scan found. */
const scannedOrders = (merchantId: SQLWrapper) =>
  inPlaceOfTable(
    sql`select ${orders}.* from unnest(scan.ids) as page (id) cross join lateral ${orderOfPage(merchantId)}`,
  );

const inPlaceOfTable = (rows: SQL) => new Subquery(rows, getTableColumns(orders), getTableName(orders));

const newestFirst = [desc(orders.createdAt), desc(orders.serviceOrderId)];

/**
 * The newest orders of each status. Reads one range of `orders_list` per status, so that the cost of a page depends
 * neither on its position nor on how rare the status is, and merges the ranges. Orders past their expiry that are still
 * stored as unpaid are read from `orders_unpaid_expiry_of_merchant`; `offset 0` makes PostgreSQL read all of them
 * first.
 */
function newestOfStatuses(limit: SQLWrapper, columns: SQL): SQL {
  const status = sql`${sql.placeholder('status')}::text`;
  const isOfMerchant = eq(orders.merchantId, sql.placeholder('merchantId'));
  const isOnPage = and(
    isOfMerchant,
    sql`${orders.createdAt} >= ${sql.placeholder('createdFrom')}::timestamptz`,
    sql`(${orders.createdAt}, ${orders.serviceOrderId}) < (${sql.placeholder('beforeTime')}::timestamptz, ${sql.placeholder('beforeId')}::bigint)`,
  );
  const newest = sql`order by ${sql.join(newestFirst, sql`, `)} limit ${limit}`;
  const rangeOf = (stored: OrderStatus) => sql`(
    select ${columns} from ${orders}
    where ${isOnPage} and ${orders.orderStatus} = ${sql.raw(`'${stored}'`)}
      and (${status} is null or ${status} = ${sql.raw(`'${stored}'`)} and (${isExpired}) is not true) ${newest}
  )`;
  const unstored = sql`(
    select ${columns} from (select * from ${orders} where ${isOfMerchant} and ${isExpired} offset 0) as ${orders}
    where ${status} = ${sql.raw(`'${transitions.expire.to}'`)} and ${isOnPage} ${newest}
  )`;
  return sql.join([...orderStatuses.map(rangeOf), unstored], sql` union all `);
}

/**
 * Reads the newest `scannedMax` orders, and lists those of the currency. Each row also says whether there are more
 * orders to read, and where the range ends.
 */
function prepareOrdersByCurrency(db: PostgresJsDatabase) {
  const scannedMax = sql.placeholder('scannedMax');
  const scan = sql`(
    with scanned as (
      select * from (${newestOfStatuses(scannedMax, sql`created_at, service_order_id, order_currency`)}) as newest
      order by created_at desc, service_order_id desc limit ${scannedMax}
    )
    select array(
        select service_order_id from scanned where order_currency = ${sql.placeholder('currency')}
        order by created_at desc, service_order_id desc limit ${sql.placeholder('limit')}
      ) as ids,
      count(*) = ${scannedMax}::int as is_cut, ${endOfScan}
    from scanned
  ) as scan`;
  return db
    .select(scanColumns)
    .from(scan)
    .leftJoinLateral(scannedOrders(sql.placeholder('merchantId')), sql`true`)
    .orderBy(...newestFirst)
    .prepare('list_orders_by_currency');
}

/** The position of the oldest row of `scanned`. */
const endOfScan = sql.raw(`(array_agg(created_at order by created_at, service_order_id))[1] as last_created_at,
      (array_agg(service_order_id order by created_at, service_order_id))[1] as last_id`);

/** The result of a scan, repeated in each row, and the orders. */
const scanColumns = {
  isCut: sql<boolean>`scan.is_cut`,
  createdAtMs: sql<number | null>`(extract(epoch from scan.last_created_at) * 1000)::float8`,
  serviceOrderId: sql<string | null>`scan.last_id`,
  order: orderColumns,
};

/**
 * Reads a range of the rows of one pair. If two pairs were sent, this is the pair with fewer rows in that range. Then
 * reads the orders of these rows that also have the other pair, and applies all conditions to them. At most
 * `scannedMax` rows of each pair are read. Each row of the result also says whether there are more, and where the range
 * ends.
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
  // The other pair is also looked up in its index: `offset 0` keeps PostgreSQL from reading all rows of the pair into a
  // hash table. Without a filter by status or currency, a page reads no more orders than it shows.
  const hasOther = sql`(${secondKey} is null or exists (
    select 1 from ${orderMetadata}
    where ${eq(orderMetadata.merchantId, merchantId)} and ${orderMetadata.pairDigest} = other
      and ${orderMetadata.createdAt} = scanned.created_at and ${orderMetadata.serviceOrderId} = scanned.service_order_id
    offset 0
  ))`;
  const currency = sql`${sql.placeholder('currency')}::text`;
  const newest = sql`case when ${status} is null and ${currency} is null then ${limit}::int else ${scannedMax} end`;
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
      count(*) = ${scannedMax} as is_cut, ${endOfScan}
    from scanned
  ) as scan`;
  const isOnPage = and(
    sql`${orders.metadata} @> ${sql.placeholder('metadata')}::jsonb`,
    sql`(${currency} is null or ${orders.order_currency} = ${currency})`,
    sql`(${status} is null or ${status} = case when ${isExpired} then ${transitions.expire.to} else ${orders.orderStatus} end)`,
  );
  return db
    .select(scanColumns)
    .from(scan)
    .leftJoinLateral(scannedOrders(merchantId), isOnPage)
    .orderBy(...newestFirst)
    .limit(limit)
    .prepare('list_orders_by_metadata');
}
