import { settledWithin } from '@order-gateway/runtime/settled-within';
import { and, eq, sql } from 'drizzle-orm';
import { type Closable, type DatabaseOptions, openClient, plansEveryRun } from '../../connections/client.ts';
import { unlessUnreachable } from '../../connections/errors.ts';
import { orders } from '../../schema.ts';

/** Shorter than the deadline of a readiness probe, so that the other servers are still reported. */
const timeoutMs = 1_000;

/** A check of one server of merchants. */
export interface ServerCheck extends Closable {
  /** Resolves to whether the server can commit now. Rejects only because of a bug. */
  canCommit(): Promise<boolean>;
}

/**
 * Opens a check of whether a server of merchants can commit, on a separate connection. Citus sends the statement to
 * that server, which commits a message in its log, as `write-check.ts` does on the server to which the gateway
 * connects.
 */
export function openServerCheck(options: DatabaseOptions): ServerCheck {
  const { server, patience = 1 } = options;
  const client = openClient({ ...options, applicationName: 'order-gateway readiness', settings: plansEveryRun }, (db) =>
    db
      .select({
        count: sql`count(*)`,
        message: sql`pg_logical_emit_message(true, 'order-gateway', 'ready')`,
      })
      .from(orders)
      .where(and(eq(orders.merchantId, sql.placeholder('merchantId')), eq(orders.order_id, '')))
      .prepare('check_server'),
  );
  let running: Promise<boolean> | undefined;
  const run = async () => {
    const checked = client.run((check) => check.execute({ merchantId: server?.anyMerchant() }));
    return (await unlessUnreachable(checked)) !== undefined;
  };
  return {
    async canCommit() {
      running ??= run().finally(() => {
        running = undefined;
      });
      return (await settledWithin(timeoutMs * patience, running)) === true;
    },
    close: client.close,
  };
}
