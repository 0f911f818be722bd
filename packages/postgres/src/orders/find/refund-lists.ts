import type { AccountId } from '@order-gateway/domain/accounts';
import type { OrderToken } from '@order-gateway/domain/links';
import type { OrderStore, PendingRefund, RefundPosition } from '@order-gateway/domain/orders';
import { and, asc, eq, getTableColumns, isNotNull, isNull, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { prepareAccountsOf } from '../../accounts/account-directory.ts';
import { openListClient, openListQueue } from '../../batches/list-queue.ts';
import type { Closable, DatabaseOptions, MerchantServer } from '../../connections/client.ts';
import { unlessUnreachable } from '../../connections/errors.ts';
import type { OnServers } from '../../merchant-servers.ts';
import { pendingRefunds, refusedPayments } from '../../schema.ts';
import { amountOf } from '../order-rows.ts';
import { prepareServerQuery } from '../server-query.ts';

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

/**
 * Opens the part of an order store that lists pending refunds. Checkout systems take turns. If merchants are on
 * different servers, the lists concern those of one server, and a page may have more refunds than its limit, in any
 * order ({@link refundListsOn}).
 */
export function openRefundLists(options: DatabaseOptions): RefundLists {
  const client = openListClient(options, (db) => prepareStatements(db, options.server));
  const oldestLive = async (waiting: readonly { readonly merchantId: number; readonly seconds: number }[]) => {
    const accounts = await client.run(({ findAccountsOf }) => findAccountsOf(waiting));
    const live = waiting.filter(({ merchantId }) => accounts.get(merchantId)?.mode === 'live');
    return Math.max(0, ...live.map(({ seconds }) => seconds));
  };
  const pages = openListQueue(
    { ...options, name: 'refund lists' },
    client,
    async (
      { run },
      { merchantId: checkoutId, after, limit }: { merchantId: AccountId; after: RefundPosition; limit: number },
    ) => {
      const createdAt = new Date(after.createdAtMs).toISOString();
      const rows = await run(({ list }) => list({ checkoutId, limit, createdAt, id: after.serviceOrderId }));
      const accounts = await run(({ findAccountsOf }) => findAccountsOf(rows));
      const refunds = rows.flatMap(({ merchantId, orderToken, amount, ...refund }): PendingRefund[] => {
        const account = accounts.get(merchantId);
        if (account === undefined) return [];
        const { clientId: merchantClientId, mode } = account;
        return [{ ...refund, merchantClientId, mode, orderToken: orderToken as OrderToken, amount: amountOf(amount) }];
      });
      return { kind: 'found' as const, refunds, isIncomplete: false };
    },
  );
  const readHealth = async () => {
    const [owed, pending] = await Promise.all([
      client.run(({ owed }) => owed()),
      client.run(({ pending }) => pending()),
    ]);
    return { owedSeconds: await oldestLive(owed), pendingSeconds: await oldestLive(pending) };
  };
  return {
    listPendingRefunds: (checkoutId, { after = { createdAtMs: 0, serviceOrderId: 0 }, limit }, timeoutMs) =>
      pages.add({ merchantId: checkoutId, after, limit }, timeoutMs),
    readRefundHealth: () => unlessUnreachable(readHealth()),
    close: pages.close,
  };
}

/**
 * Returns the lists of all servers of merchants. If a server is lost or hangs, its refunds are missing from them until
 * it is back, so that those of other merchants are made.
 */
export function refundListsOn(servers: OnServers<RefundLists>): Omit<RefundLists, 'close'> {
  const readHealth = servers.onEach((lists) => lists.readRefundHealth());
  return {
    async listPendingRefunds(checkoutId, page, timeoutMs) {
      const lists = await servers.callEach(timeoutMs, (lists, timeoutMs) =>
        lists.listPendingRefunds(checkoutId, page, timeoutMs),
      );
      const found = lists.filter((list) => list.kind === 'found');
      if (found.length === 0) return lists[0] ?? { kind: 'unavailable' };
      const oldestFirst = found
        .flatMap(({ refunds }) => refunds)
        .toSorted((a, b) => a.createdAtMs - b.createdAtMs || a.serviceOrderId - b.serviceOrderId);
      const refunds = oldestFirst.slice(0, page.limit);
      return { kind: 'found', refunds, isIncomplete: found.length < lists.length };
    },
    async readRefundHealth() {
      const parts = (await readHealth(undefined)).filter((part) => part !== undefined);
      if (parts.length === 0) return undefined;
      return {
        owedSeconds: Math.max(...parts.map(({ owedSeconds }) => owedSeconds)),
        pendingSeconds: Math.max(...parts.map(({ pendingSeconds }) => pendingSeconds)),
      };
    },
  };
}

function prepareStatements(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  const columns = { merchantId: 'bigint', seconds: 'float8' };
  const ageOf = (column: PgColumn) => sql<number>`extract(epoch from now() - min(${column}))::float8`;
  return {
    list: prepareList(db, server),
    /** The merchants that owe money, each with the age of the oldest payment. */
    owed: prepareServerQuery(db, server, { name: 'owed_payments', columns }, () =>
      db
        .select({ merchantId: refusedPayments.merchantId, seconds: ageOf(refusedPayments.refusedAt) })
        .from(refusedPayments)
        .where(and(isNull(refusedPayments.refundedAt), isNotNull(refusedPayments.checkoutId)))
        .groupBy(refusedPayments.merchantId),
    ),
    /** The merchants with pending refunds, each with the age of the oldest one. */
    pending: prepareServerQuery(db, server, { name: 'pending_refunds', columns }, () =>
      db
        .select({ merchantId: pendingRefunds.merchantId, seconds: ageOf(pendingRefunds.createdAt) })
        .from(pendingRefunds)
        .groupBy(pendingRefunds.merchantId),
    ),
    findAccountsOf: prepareAccountsOf(db),
  };
}

function prepareList(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  const { checkoutId, createdAt, order_id: orderId, ...stored } = getTableColumns(pendingRefunds);
  const columns = { createdAtMs: 'float8', orderId, ...stored };
  return prepareServerQuery(db, server, { name: 'list_pending_refunds', columns }, (value) =>
    db
      .select({
        createdAtMs: sql<number>`(extract(epoch from ${createdAt}) * 1000)::float8`,
        orderId,
        ...stored,
      })
      .from(pendingRefunds)
      .where(
        and(
          eq(checkoutId, value('checkoutId')),
          sql`(${createdAt}, ${stored.serviceOrderId}) > (${value('createdAt')}::timestamptz, ${value('id')}::bigint)`,
        ),
      )
      .orderBy(asc(createdAt), asc(stored.serviceOrderId))
      .limit(value('limit')),
  );
}
