import { transitions } from '@order-gateway/domain/orders';
import { systemActor } from '@order-gateway/runtime/process';
import { and, eq, sql } from 'drizzle-orm';
import type { AdminOptions } from '../../accounts/admin-connection.ts';
import { runRecorded } from '../../accounts/audit-log.ts';
import { withConnection } from '../../connections/client.ts';
import { accounts, endedNow, isLeaseLive, orders } from '../../schema.ts';

/**
 * Ends the claim of the payment attempt that holds the order of a payment link, so that the attempt can't claim it
 * again, and records this in the audit log. Returns `unknown` if there is no such order, and `unclaimed` if no attempt
 * holds it. Rejects with an error that contains no values.
 */
export function releasePayment({ url, actor = systemActor() }: AdminOptions, orderToken: string) {
  return withConnection({ url, applicationName: 'order-gateway orders' }, async ({ db, run }) => {
    const [order] = await run(() =>
      db
        .select({
          merchantId: orders.merchantId,
          orderId: orders.order_id,
          clientId: accounts.clientId,
          checkoutId: orders.leaseCheckoutId,
          attemptId: orders.leaseAttemptId,
        })
        .from(orders)
        .innerJoin(accounts, eq(accounts.id, orders.merchantId))
        .where(eq(orders.orderToken, orderToken))
        .execute(),
    );
    if (order === undefined) return { kind: 'unknown' } as const;
    const { merchantId, orderId, clientId, checkoutId, attemptId } = order;
    if (checkoutId === null || attemptId === null) return { kind: 'unclaimed' } as const;
    const release = db
      .update(orders)
      .set(endedNow(sql`${checkoutId}::bigint`, sql`${attemptId}::text`))
      .where(
        and(
          eq(orders.merchantId, merchantId),
          eq(orders.order_id, orderId),
          eq(orders.orderStatus, transitions.pay.from),
          eq(orders.leaseCheckoutId, checkoutId),
          eq(orders.leaseAttemptId, attemptId),
          isLeaseLive,
        ),
      )
      .returning({ order_id: orders.order_id });
    const action = { name: 'orders.release', actor, clientId, details: { order_id: orderId, attempt_id: attemptId } };
    const details = sql`(select jsonb_build_object('checkout', client_id) from ${accounts} where id = ${checkoutId})`;
    const [released] = await run(() => runRecorded(db, release, action, { details }));
    if (released === undefined) return { kind: 'unclaimed' } as const;
    return { kind: 'released', orderId, attemptId } as const;
  });
}
