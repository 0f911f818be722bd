import type { AccountId } from '@order-gateway/domain/accounts';
import type { OrderToken } from '@order-gateway/domain/links';
import type { OrderStore, RefundPosition } from '@order-gateway/domain/orders';
import { and, asc, eq, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { openListClient, openListQueue } from '../../batches/list-queue.ts';
import type { Closable, DatabaseOptions } from '../../connections/client.ts';
import { accounts, pendingRefunds } from '../../schema.ts';
import { amountOf } from '../order-rows.ts';

/** Opens the part of an order store that lists pending refunds. Checkout systems take turns. */
export function openRefundLists(options: DatabaseOptions): Pick<OrderStore, 'listPendingRefunds'> & Closable {
  const client = openListClient(options, prepareList);
  const pages = openListQueue(
    { ...options, name: 'refund lists' },
    client,
    async (
      { run },
      { merchantId: checkoutId, after, limit }: { merchantId: AccountId; after: RefundPosition; limit: number },
    ) => {
      const values = {
        checkoutId,
        limit,
        createdAt: new Date(after.createdAtMs).toISOString(),
        id: after.serviceOrderId,
      };
      const rows = await run((list) => list.execute(values));
      const refunds = rows.map(({ createdAt, orderToken, amount, ...refund }) => ({
        ...refund,
        createdAtMs: createdAt.getTime(),
        orderToken: orderToken as OrderToken,
        amount: amountOf(amount),
      }));
      return { kind: 'found' as const, refunds };
    },
  );
  return {
    listPendingRefunds: (checkoutId, { after = { createdAtMs: 0, serviceOrderId: 0 }, limit }, timeoutMs) =>
      pages.add({ merchantId: checkoutId, after, limit }, timeoutMs),
    close: pages.close,
  };
}

function prepareList(db: PostgresJsDatabase) {
  const { createdAt, serviceOrderId } = pendingRefunds;
  return db
    .select({
      serviceOrderId,
      createdAt,
      orderId: pendingRefunds.order_id,
      orderToken: pendingRefunds.orderToken,
      merchantClientId: accounts.clientId,
      mode: accounts.mode,
      paymentId: pendingRefunds.paymentId,
      refundId: pendingRefunds.refundId,
      providerRefundId: pendingRefunds.providerRefundId,
      amount: pendingRefunds.amount,
      currency: pendingRefunds.currency,
    })
    .from(pendingRefunds)
    .innerJoin(accounts, eq(accounts.id, pendingRefunds.merchantId))
    .where(
      and(
        eq(pendingRefunds.checkoutId, sql.placeholder('checkoutId')),
        sql`(${createdAt}, ${serviceOrderId}) > (${sql.placeholder('createdAt')}::timestamptz, ${sql.placeholder('id')}::bigint)`,
      ),
    )
    .orderBy(asc(createdAt), asc(serviceOrderId))
    .limit(sql.placeholder('limit'))
    .prepare('list_pending_refunds');
}
