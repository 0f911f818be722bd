import type { AccountId } from '@order-gateway/domain/accounts';
import type postgres from 'postgres';
import { expect } from 'vitest';

/**
 * Runs a function that locks a merchant's orders `order-1` and `order-2`, in this order, and makes PostgreSQL cancel
 * its statement because of a deadlock. Returns the function's result or error.
 */
export async function runIntoDeadlock(
  sql: postgres.Sql,
  { merchantId, applicationName }: { readonly merchantId: AccountId; readonly applicationName: string },
  run: () => Promise<unknown>,
): Promise<unknown> {
  const waiting = () => sql`select from pg_stat_activity
    where datname = current_database() and application_name = ${applicationName} and wait_event_type = 'Lock'`;
  const { running } = await sql.begin(async (session) => {
    // This session would look for a deadlock only after a minute, so the other session finds it and is cancelled.
    await session`set local deadlock_timeout = '1min'`;
    const lock = (orderId: string) =>
      session`select from orders where merchant_id = ${merchantId} and order_id = ${orderId} for update`;
    await lock('order-2');
    const running = run().catch((error: unknown) => error);
    await expect.poll(waiting).toHaveLength(1);
    await lock('order-1');
    return { running };
  });
  return running;
}
