import { desc, eq, isNull } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type DatabaseOptions, withConnection } from '../../connections/client.ts';
import { accounts, refusedPayments } from '../../schema.ts';

/**
 * Lists the latest refused payments of all orders, newest first: all of them, or only those that are still owed.
 * Rejects with an error that contains no values.
 */
export function listRefusedPayments({ url }: Pick<DatabaseOptions, 'url'>, limit: number, isOwed = false) {
  const options = { url, applicationName: 'order-gateway orders' };
  const checkouts = alias(accounts, 'checkouts');
  return withConnection(options, async ({ db }) => {
    return db
      .select({
        refusedAt: refusedPayments.refusedAt,
        code: refusedPayments.code,
        amount: refusedPayments.amount,
        currency: refusedPayments.currency,
        paidAt: refusedPayments.paidAt,
        paymentId: refusedPayments.paymentId,
        checkoutClientId: checkouts.clientId,
        clientId: accounts.clientId,
        mode: accounts.mode,
        orderId: refusedPayments.order_id,
      })
      .from(refusedPayments)
      .innerJoin(accounts, eq(accounts.id, refusedPayments.merchantId))
      .leftJoin(checkouts, eq(checkouts.id, refusedPayments.checkoutId))
      .where(isOwed ? isNull(refusedPayments.refundedAt) : undefined)
      .orderBy(desc(refusedPayments.refusedAt), desc(refusedPayments.paymentId))
      .limit(limit);
  });
}
