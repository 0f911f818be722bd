import type { AccountId } from '@order-gateway/domain/accounts';
import {
  countedOrdersMax,
  type OrderStatus,
  type OrderStore,
  orderStatuses,
  transitions,
} from '@order-gateway/domain/orders';
import { eq, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { openListQueue } from '../../batches/list-queue.ts';
import { type Closable, type DatabaseOptions, openTransactionClient, plansEveryRun } from '../../connections/client.ts';
import { isExpired, orders } from '../../schema.ts';

/**
 * The transaction of a count. Without sorts, PostgreSQL must use the index in which the orders of a range are
 * already sorted. Otherwise, for a merchant that is newer than the statistics of the table, it would expect only a few
 * orders, read all of them through another index, and sort them.
 */
const count = { begin: 'begin; set local enable_sort = off', returnsEarly: true };

/**
 * Counts orders in PostgreSQL on a separate connection, which the first count opens. A count takes longer than a page
 * of a list.
 */
export function openOrderCounts(options: DatabaseOptions): Pick<OrderStore, 'countByDay'> & Closable {
  const counts = openListQueue(
    { ...options, name: 'order counts' },
    openTransactionClient(
      { ...options, applicationName: 'order-gateway counts', settings: plansEveryRun },
      count,
      (db) => ({ count: prepareCount(db) }),
    ),
    async (client, { merchantId, sinceMs }: { readonly merchantId: AccountId; readonly sinceMs: number }) => {
      const rows = await client.run(({ count }) =>
        count.execute({ merchantId, since: new Date(sinceMs).toISOString() }),
      );
      const isCut = rows.reduce((sum, { created }) => sum + created, 0) === countedOrdersMax;
      const days = rows.map(({ oldestMs, paidHundredths, ...day }) => ({
        ...day,
        paidHundredths: BigInt(paidHundredths),
      }));
      const cutOffMs = isCut ? Math.min(...rows.map(({ oldestMs }) => oldestMs)) : undefined;
      return { kind: 'found' as const, days, cutOffMs };
    },
  );
  return {
    countByDay: (merchantId, sinceMs, timeoutMs) => counts.add({ merchantId, sinceMs }, timeoutMs),
    close: counts.close,
  };
}

/**
 * Merges the ranges of `orders_list`, one per status, from their newest ends, until {@link countedOrdersMax} orders are
 * read. So the work does not grow with the number of orders. PostgreSQL merges only ranges that are already sorted.
 */
function prepareCount(db: PostgresJsDatabase) {
  const newestFirst = sql.raw(`order by created_at desc, service_order_id desc limit ${countedOrdersMax}`);
  const rangeOf = (status: OrderStatus) => sql`(
    select ${orders.createdAt}, ${orders.serviceOrderId}, order_currency, order_amount,
      jsonb_array_length(${orders.refusedPayments}) as refused,
      case when ${isExpired} then ${sql.raw(`'${transitions.expire.to}'`)} else ${orders.orderStatus} end as status
    from ${orders}
    where ${eq(orders.merchantId, sql.placeholder('merchantId'))} and ${orders.orderStatus} = ${sql.raw(`'${status}'`)}
      and ${orders.createdAt} >= ${sql.placeholder('since')}::timestamptz
    ${newestFirst}
  )`;
  const newest = sql`(
    select * from (${sql.join(orderStatuses.map(rangeOf), sql` union all `)}) as ranges ${newestFirst}
  ) as newest`;
  const msOf = (time: SQL) => sql<number>`(extract(epoch from ${time}) * 1000)::float8`;
  const day = sql`date_trunc('day', created_at, 'UTC')`;
  const count = (condition: SQL) => sql<number>`(count(*) filter (where ${condition}))::int`;
  return db
    .select({
      dayMs: msOf(day),
      currency: sql<string>`order_currency`,
      created: count(sql`true`),
      paid: count(sql`status = 'PAID'`),
      expired: count(sql`status = 'EXPIRED'`),
      refusedPayments: sql<number>`coalesce(sum(refused), 0)::int`,
      paidHundredths: sql<string>`coalesce(sum(order_amount * 100) filter (where status = 'PAID'), 0)::bigint`,
      oldestMs: msOf(sql`min(created_at)`),
    })
    .from(newest)
    .groupBy(day, sql`order_currency`)
    .prepare('count_orders_by_day');
}
