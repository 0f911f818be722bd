import type { MerchantId } from '@gateway/domain/merchant';
import type { Order } from '@gateway/domain/order';
import type { EventType } from '@gateway/domain/order-states';
import { and, asc, eq, gt, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { noStatementTimeoutMs, openConnection } from './client.ts';
import { withoutValues } from './errors.ts';
import { type OrderRow, orderOf } from './order-rows.ts';
import { events, orders } from './schema.ts';

/** Rows read in one statement: about a megabyte. */
const [pageOrders, pageEvents] = [2_000, 5_000];

/** Which orders an audit is about. The prefix is compared byte by byte. */
export interface ScanFilter {
  readonly merchantId: MerchantId;
  readonly orderIdPrefix: string;
}

/** A stored event without its order. */
export interface StoredEvent {
  readonly eventId: string;
  readonly type: EventType;
  readonly orderId: string;
}

/**
 * Reads page after page on a connection of its own, until one has fewer than `pageMax` rows; `read` gets the last row of the one
 * before. A page has no time limit. Rejects with an error without values.
 */
export async function* readPages<Row>(
  {
    url,
    applicationName,
    pageMax,
  }: { readonly url: string; readonly applicationName: string; readonly pageMax: number },
  read: (db: PostgresJsDatabase, after: Row | undefined) => PromiseLike<readonly Row[]>,
): AsyncGenerator<readonly Row[], void> {
  const connection = openConnection({ url, applicationName, statementTimeoutMs: noStatementTimeoutMs });
  try {
    let after: Row | undefined;
    for (;;) {
      const page = await read(connection.db, after);
      yield page;
      after = page.at(-1);
      if (page.length < pageMax) return;
    }
  } catch (error) {
    throw withoutValues(error);
  } finally {
    await connection.close();
  }
}

const applicationName = 'order-gateway scan';

/**
 * Reads all orders of a merchant whose order_id begins with a prefix, as they are stored, in the order of their ids, over the
 * primary key: for audits, not for requests.
 */
export async function* scanOrders(url: string, { merchantId, orderIdPrefix }: ScanFilter): AsyncGenerator<Order, void> {
  const pages = readPages<OrderRow>({ url, applicationName, pageMax: pageOrders }, (db, after) => {
    const beyond = after && gt(orders.order_id, after.order_id);
    return db
      .select()
      .from(orders)
      .where(and(eq(orders.merchantId, merchantId), beyond, sql`starts_with(${orders.order_id}, ${orderIdPrefix})`))
      .orderBy(asc(orders.order_id))
      .limit(pageOrders);
  });
  for await (const page of pages) yield* page.map(orderOf);
}

/**
 * Reads all events about such orders in the order of the feed, over the primary key. Unlike the feed, it does not wait for
 * transactions in flight.
 */
export async function* scanEvents(
  url: string,
  { merchantId, orderIdPrefix }: ScanFilter,
): AsyncGenerator<StoredEvent, void> {
  const { merchantId: merchant, transactionId, eventId, type, order_id: orderId } = events;
  const pages = readPages<StoredEvent & { readonly transactionId: string }>(
    { url, applicationName, pageMax: pageEvents },
    (db, after) => {
      const beyond = after && sql`(${transactionId}, ${eventId}) > (${after.transactionId}::xid8, ${after.eventId})`;
      return db
        .select({ transactionId, eventId, type, orderId })
        .from(events)
        .where(and(eq(merchant, merchantId), beyond, sql`starts_with(${orderId}, ${orderIdPrefix})`))
        .orderBy(asc(transactionId), asc(eventId))
        .limit(pageEvents);
    },
  );
  for await (const page of pages) yield* page;
}
