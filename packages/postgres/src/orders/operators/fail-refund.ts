import { decideFailure } from '@order-gateway/domain/orders';
import { systemActor } from '@order-gateway/runtime/process';
import { eq, sql } from 'drizzle-orm';
import type { AdminOptions } from '../../accounts/admin-connection.ts';
import { runRecorded } from '../../accounts/audit-log.ts';
import { withConnection } from '../../connections/client.ts';
import { accounts, orders } from '../../schema.ts';
import { reversalValues } from '../change/order-changes.ts';
import { orderOf, storedColumns } from '../order-rows.ts';
import { changeReversals } from '../plpgsql-functions.ts';

/**
 * Ends a merchant's pending refund as `FAILED`, with its event, and records this in the audit log. Returns `unknown` if
 * there is no order with the token, `not_pending` if it has no such pending refund, and `known_to_provider` if the
 * refund has a provider's id. Rejects with an error that contains no values.
 */
export function failRefund(
  { url, actor = systemActor() }: AdminOptions,
  orderToken: string,
  refundId: string,
): Promise<'failed' | 'unknown' | 'not_pending' | 'known_to_provider'> {
  return withConnection({ url, applicationName: 'order-gateway orders' }, async ({ db, run }) => {
    for (;;) {
      const [row] = await run(() =>
        db
          .select({ ...storedColumns, clientId: accounts.clientId, now: sql<Date>`now()`.mapWith(orders.createdAt) })
          .from(orders)
          .innerJoin(accounts, eq(accounts.id, orders.merchantId))
          .where(eq(orders.orderToken, orderToken))
          .execute(),
      );
      if (row === undefined) return 'unknown';
      const { clientId, now, ...order } = row;
      const decided = decideFailure(orderOf(order), refundId, 'ended_by_operator', now.getTime());
      if (decided.kind !== 'reverse') return decided.kind;
      const call = changeReversals.callWith(reversalValues(decided.change));
      const details = { order_id: order.order_id, refund_id: refundId };
      const action = { name: 'orders.refund_fail', actor, clientId, details };
      const [changed] = await run(() => runRecorded(db, sql`select changed from ${call} where changed > 0`, action));
      // Otherwise, another change of the order was stored first.
      if (changed !== undefined) return 'failed';
    }
  });
}
