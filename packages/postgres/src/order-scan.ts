import type { MerchantId } from '@gateway/domain/merchant';
import type { Order } from '@gateway/domain/order';
import { and, asc, eq, gt, sql } from 'drizzle-orm';
import { noStatementTimeoutMs, openConnection } from './client.ts';
import { withoutValues } from './errors.ts';
import { orderColumns, orderOf } from './order-rows.ts';
import { orders } from './schema.ts';

/** Orders read in one statement: about a megabyte. */
const pageOrders = 2_000;

/**
 * Reads all orders of a merchant whose order_id begins with a prefix, in the order of their ids, page by page over the primary
 * key: for audits, not for requests. The prefix is compared byte by byte. A page has no time limit, as a merchant may have many
 * other orders. Rejects with an error without values.
 */
export async function* scanOrders(
  url: string,
  { merchantId, orderIdPrefix }: { readonly merchantId: MerchantId; readonly orderIdPrefix: string },
): AsyncGenerator<Order, void> {
  const connection = openConnection({
    url,
    applicationName: 'order-gateway scan',
    statementTimeoutMs: noStatementTimeoutMs,
  });
  try {
    let after: string | undefined;
    for (;;) {
      const beyond = after === undefined ? undefined : gt(orders.order_id, after);
      const page = await connection.db
        .select(orderColumns)
        .from(orders)
        .where(and(eq(orders.merchantId, merchantId), beyond, sql`starts_with(${orders.order_id}, ${orderIdPrefix})`))
        .orderBy(asc(orders.order_id))
        .limit(pageOrders);
      yield* page.map(orderOf);
      after = page.at(-1)?.order_id;
      if (page.length < pageOrders) return;
    }
  } catch (error) {
    throw withoutValues(error);
  } finally {
    await connection.close();
  }
}
