import type { MerchantId } from '@gateway/domain/merchant';
import type { EventType } from '@gateway/domain/order-states';
import { and, asc, eq, sql } from 'drizzle-orm';
import { noStatementTimeoutMs, openConnection } from './client.ts';
import { withoutValues } from './errors.ts';
import { events } from './schema.ts';

/** Events read in one statement: about a megabyte. */
const pageEvents = 5_000;

/** A stored event without its order. */
export interface StoredEvent {
  readonly eventId: string;
  readonly type: EventType;
  readonly orderId: string;
}

/**
 * Reads all events of a merchant about orders whose order_id begins with a prefix, in the order of the feed, page by page over
 * the primary key: for audits, not for requests. Unlike the feed, it does not wait for transactions in flight. Rejects with an
 * error without values.
 */
export async function* scanEvents(
  url: string,
  { merchantId, orderIdPrefix }: { readonly merchantId: MerchantId; readonly orderIdPrefix: string },
): AsyncGenerator<StoredEvent, void> {
  const connection = openConnection({
    url,
    applicationName: 'order-gateway scan',
    statementTimeoutMs: noStatementTimeoutMs,
  });
  const { merchantId: merchant, transactionId, eventId, type, order_id: orderId } = events;
  try {
    let after: { readonly transactionId: string; readonly eventId: string } | undefined;
    for (;;) {
      const beyond = after && sql`(${transactionId}, ${eventId}) > (${after.transactionId}::xid8, ${after.eventId})`;
      const page = await connection.db
        .select({ transactionId, eventId, type, orderId })
        .from(events)
        .where(and(eq(merchant, merchantId), beyond, sql`starts_with(${orderId}, ${orderIdPrefix})`))
        .orderBy(asc(transactionId), asc(eventId))
        .limit(pageEvents);
      yield* page;
      after = page.at(-1);
      if (page.length < pageEvents) return;
    }
  } catch (error) {
    throw withoutValues(error);
  } finally {
    await connection.close();
  }
}
