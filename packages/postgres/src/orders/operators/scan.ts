import type { AccountId } from '@order-gateway/domain/accounts';
import type { OrderEvent } from '@order-gateway/domain/events';
import type { Order } from '@order-gateway/domain/orders';
import { and, asc, eq, gt, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import {
  arrayLiteral,
  type ConnectionOptions,
  noStatementTimeoutMs,
  openConnection,
} from '../../connections/client.ts';
import { redact } from '../../connections/errors.ts';
import { events, orders } from '../../schema.ts';
import { type OrderRow, orderOf } from '../order-rows.ts';

/** Rows read per statement: about a megabyte. */
const [pageOrders, pageEvents] = [2_000, 5_000];

/** Selects the orders of an audit. The prefix is compared byte by byte. */
export interface ScanFilter {
  readonly merchantId: AccountId;
  readonly orderIdPrefix: string;
}

/** A stored order. */
export interface ScannedOrder {
  readonly order: Order;
  /** `order_token`, `service_order_id` or both, if another order of any merchant has the same value. */
  readonly sharedFields: readonly string[];
}

/** A stored event without its order. */
export interface StoredEvent extends Omit<OrderEvent, 'order'> {
  readonly orderId: string;
}

/**
 * Reads page after page on a separate connection, until a page has fewer than `pageMax` rows. `read` receives the last
 * row of the previous page. A page has no time limit. Rejects with an error that contains no values.
 */
export async function* readPages<Row>(
  { pageMax, ...options }: Pick<ConnectionOptions, 'url' | 'applicationName'> & { readonly pageMax: number },
  read: (db: PostgresJsDatabase, after: Row | undefined) => PromiseLike<readonly Row[]>,
): AsyncGenerator<readonly Row[], void> {
  await using connection = openConnection({ ...options, statementTimeoutMs: noStatementTimeoutMs });
  try {
    await connection.open();
    let after: Row | undefined;
    for (;;) {
      const page = await read(connection.db, after);
      yield page;
      after = page.at(-1);
      if (page.length < pageMax) return;
    }
  } catch (error) {
    throw redact(error);
  }
}

const applicationName = 'order-gateway scan';

/**
 * Yields all of a merchant's orders whose order_id begins with a prefix, as they are stored. Reads them through the
 * primary key, so they are ordered by order_id. Meant for audits, not for requests.
 */
export async function* scanOrders(
  url: string,
  { merchantId, orderIdPrefix }: ScanFilter,
): AsyncGenerator<ScannedOrder, void> {
  const pages = readPages<OrderRow & Pick<ScannedOrder, 'sharedFields'>>(
    { url, applicationName, pageMax: pageOrders },
    async (db, after) => {
      const isAfterPrevious = after && gt(orders.order_id, after.order_id);
      const rows = await db
        .select()
        .from(orders)
        .where(
          and(
            eq(orders.merchantId, merchantId),
            isAfterPrevious,
            sql`starts_with(${orders.order_id}, ${orderIdPrefix})`,
          ),
        )
        .orderBy(asc(orders.order_id))
        .limit(pageOrders);
      const sharedFieldsOf = await findSharedFields(db, rows);
      return rows.map((row) => ({ ...row, sharedFields: sharedFieldsOf(row) }));
    },
  );
  for await (const page of pages)
    yield* page.map(({ sharedFields, ...row }) => ({ order: orderOf(row), sharedFields }));
}

/**
 * Finds orders of any merchant that have the same token or id as one of these rows. Returns a function that lists the
 * shared fields of a row. No unique key prevents such orders, because every key includes the merchant. A join would not
 * run on Citus.
 */
async function findSharedFields(db: PostgresJsDatabase, rows: readonly OrderRow[]) {
  const tokens = arrayLiteral(rows, (row) => row.orderToken);
  const ids = arrayLiteral(rows, (row) => row.serviceOrderId);
  const owners = await db
    .select({ orderToken: orders.orderToken, serviceOrderId: orders.serviceOrderId })
    .from(orders)
    .where(sql`${orders.orderToken} = any(${tokens}::text[]) or ${orders.serviceOrderId} = any(${ids}::bigint[])`);
  const ownersOfToken = Map.groupBy(owners, ({ orderToken }) => orderToken);
  const ownersOfId = Map.groupBy(owners, ({ serviceOrderId }) => serviceOrderId);
  return ({ orderToken, serviceOrderId }: OrderRow) => [
    ...(ownersOfToken.get(orderToken)?.length === 1 ? [] : ['order_token']),
    ...(ownersOfId.get(serviceOrderId)?.length === 1 ? [] : ['service_order_id']),
  ];
}

/**
 * Yields all events of the selected orders. Reads them through the primary key, so they are ordered by event id, which
 * begins with the time. Unlike a read of the feed, it does not assign positions.
 */
export async function* scanEvents(
  url: string,
  { merchantId, orderIdPrefix }: ScanFilter,
): AsyncGenerator<StoredEvent, void> {
  const { merchantId: merchant, eventId, type, createdAt, order_id: orderId } = events;
  const pages = readPages<Omit<StoredEvent, 'createdAtMs'> & { readonly createdAt: Date }>(
    { url, applicationName, pageMax: pageEvents },
    (db, after) => {
      const isAfterPrevious = after && gt(eventId, after.eventId);
      return db
        .select({ eventId, type, createdAt, orderId })
        .from(events)
        .where(and(eq(merchant, merchantId), isAfterPrevious, sql`starts_with(${orderId}, ${orderIdPrefix})`))
        .orderBy(asc(eventId))
        .limit(pageEvents);
    },
  );
  for await (const page of pages)
    yield* page.map(({ createdAt, ...event }) => ({ ...event, createdAtMs: createdAt.getTime() }));
}
