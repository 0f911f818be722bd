import type { AccountId } from '@order-gateway/domain/accounts';
import type { OrderToken } from '@order-gateway/domain/links';
import type { OrderStore, RefundPosition } from '@order-gateway/domain/orders';
import { and, asc, eq, isNotNull, isNull, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { openListClient, openListQueue } from '../../batches/list-queue.ts';
import type { Closable, DatabaseOptions } from '../../connections/client.ts';
import { unlessUnreachable } from '../../connections/errors.ts';
import { accounts, pendingRefunds, refusedPayments } from '../../schema.ts';
import { amountOf } from '../order-rows.ts';

/** How long the oldest outstanding refund of live orders has waited, in seconds; 0 if none waits. */
export interface RefundHealth {
  /** The age of the oldest refused payment that is still owed. */
  readonly owedSeconds: number;
  /** The age of the oldest pending refund. */
  readonly pendingSeconds: number;
}

export interface RefundLists extends Pick<OrderStore, 'listPendingRefunds'>, Closable {
  /** Resolves to `undefined` while the database is unreachable. Rejects only because of a bug. */
  readRefundHealth(): Promise<RefundHealth | undefined>;
}

/** Opens the part of an order store that lists pending refunds. Checkout systems take turns. */
export function openRefundLists(options: DatabaseOptions): RefundLists {
  const client = openListClient(options, prepareStatements);
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
      const rows = await run(({ list }) => list.execute(values));
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
    async readRefundHealth() {
      const reads = [
        client.run(({ oldestOwed }) => oldestOwed.execute()),
        client.run(({ oldestPending }) => oldestPending.execute()),
      ];
      const rows = await unlessUnreachable(Promise.all(reads));
      if (rows === undefined) return undefined;
      const [owedSeconds = 0, pendingSeconds = 0] = rows.map(([oldest]) => oldest?.seconds);
      return { owedSeconds, pendingSeconds };
    },
    close: pages.close,
  };
}

function prepareStatements(db: PostgresJsDatabase) {
  const ageOf = (column: PgColumn) => ({ seconds: sql<number>`extract(epoch from now() - ${column})::float8` });
  const isLive = eq(accounts.mode, 'live');
  return {
    list: prepareList(db),
    oldestOwed: db
      .select(ageOf(refusedPayments.refusedAt))
      .from(refusedPayments)
      .innerJoin(accounts, eq(accounts.id, refusedPayments.merchantId))
      .where(and(isNull(refusedPayments.refundedAt), isNotNull(refusedPayments.checkoutId), isLive))
      .orderBy(asc(refusedPayments.refusedAt))
      .limit(1)
      .prepare('oldest_owed_payment'),
    oldestPending: db
      .select(ageOf(pendingRefunds.createdAt))
      .from(pendingRefunds)
      .innerJoin(accounts, eq(accounts.id, pendingRefunds.merchantId))
      .where(isLive)
      .orderBy(asc(pendingRefunds.createdAt))
      .limit(1)
      .prepare('oldest_pending_refund'),
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
