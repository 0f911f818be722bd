import { and, asc, desc, eq, isNotNull, isNull } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { withConnection } from '../../connections/client.ts';
import { accounts, refusedPayments } from '../../schema.ts';

/**
 * Lists refused payments of all orders: the latest ones, newest first, or those that are still owed, oldest first. A
 * simulated payment is never owed. Rejects with an error that contains no values.
 */
export function listRefusedPayments(url: string, limit: number, isOwed = false) {
  const options = { url, applicationName: 'order-gateway orders' };
  const checkouts = alias(accounts, 'checkouts');
  const { refusedAt, paymentId, refundedAt, checkoutId } = refusedPayments;
  return withConnection(options, async ({ db }) =>
    db
      .select({
        refusedAt,
        code: refusedPayments.code,
        amount: refusedPayments.amount,
        currency: refusedPayments.currency,
        paidAt: refusedPayments.paidAt,
        refundedAt,
        paymentId,
        checkoutClientId: checkouts.clientId,
        clientId: accounts.clientId,
        mode: accounts.mode,
        orderId: refusedPayments.order_id,
      })
      .from(refusedPayments)
      .innerJoin(accounts, eq(accounts.id, refusedPayments.merchantId))
      .leftJoin(checkouts, eq(checkouts.id, checkoutId))
      .where(isOwed ? and(isNull(refundedAt), isNotNull(checkoutId)) : undefined)
      .orderBy(...(isOwed ? [asc(refusedAt)] : [desc(refusedAt), desc(paymentId)]))
      .limit(limit),
  );
}
