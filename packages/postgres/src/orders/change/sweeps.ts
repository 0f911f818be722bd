import { and, eq, lt, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import {
  arrayLiteral,
  type DatabaseOptions,
  type MerchantServer,
  openClient,
  plansEveryRun,
} from '../../connections/client.ts';
import { isConcurrencyFailure, isConnectionLost, redact } from '../../connections/errors.ts';
import { events, isExpired, orders, webhookDeliveries } from '../../schema.ts';
import { expireOrders } from '../plpgsql-functions.ts';
import { prepareServerQuery } from '../server-query.ts';

/**
 * The maximum number of orders that expire, or of events that are deleted, at a time: about a tenth of a second of
 * work.
 */
const sweptMax = 500;

/** How long events are stored. */
const eventLifetime = sql`interval '30 days'`;

/**
 * The number of orders or events that a sweep changed. `isDone` is false if it should run again immediately, because
 * more rows may remain.
 */
export interface SweepResult {
  readonly count: number;
  readonly isDone: boolean;
}

/** The background jobs of an order store. */
export type Sweeps = ReturnType<typeof openSweeps>;

/**
 * Opens the background jobs on one connection. If merchants are on different servers, the jobs concern those of one
 * server.
 */
export function openSweeps(options: DatabaseOptions) {
  const client = openClient({ ...options, applicationName: 'order-gateway sweeps', settings: plansEveryRun }, (db) =>
    prepareStatements(db, options.server),
  );
  const sweep = async (job: 'expire' | 'deleteOldEvents'): Promise<SweepResult> => {
    let count = 0;
    try {
      const found = await client.run(({ [job]: { find } }) => find());
      for (const [merchantId, rows] of Map.groupBy(found.slice(0, sweptMax), ({ merchantId }) => merchantId)) {
        const ids = arrayLiteral(rows, ({ id }) => id);
        count += await client.run(({ [job]: { change } }) => change(merchantId, ids));
      }
      return { count, isDone: found.length < sweptMax };
    } catch (error) {
      // Two sweeps, or a sweep and an erasure, may lock the same orders in a different sequence.
      if (isConcurrencyFailure(error)) return { count, isDone: false };
      if (!isConnectionLost(error)) throw redact(error);
      return { count, isDone: true };
    }
  };
  return {
    /**
     * Stores the expiry of at most {@link sweptMax} expired orders, with their events. Returns their number, and
     * whether the sweep is done for now. An unreachable database also counts as done. Rejects with an error that
     * contains no values.
     */
    expire: () => sweep('expire'),
    /**
     * Deletes at most {@link sweptMax} events that are older than 30 days, and their deliveries. Returns and rejects as
     * `expire` does.
     */
    deleteOldEvents: () => sweep('deleteOldEvents'),
    close: client.close,
  };
}

function prepareStatements(db: PostgresJsDatabase, server: MerchantServer | undefined) {
  const [merchantId, ids] = [sql.placeholder('merchant_id'), sql.placeholder('ids')];
  const columns = { merchantId: 'bigint', id: 'text' };
  const expire = db.select({ changed: sql<number>`changed` }).from(expireOrders.call).prepare(expireOrders.name);
  const deleteOld = (table: typeof events | typeof webhookDeliveries) =>
    db.delete(table).where(and(eq(table.merchantId, merchantId), sql`${table.eventId} = any(${ids}::text[])`));
  const deleteDeliveries = deleteOld(webhookDeliveries).prepare('delete_deliveries');
  const deleteEvents = deleteOld(events).returning({ eventId: events.eventId }).prepare('delete_events');
  return {
    expire: {
      find: prepareServerQuery(db, server, { name: 'find_expired_orders', columns }, () =>
        db
          .select({ merchantId: orders.merchantId, id: orders.order_id })
          .from(orders)
          .where(isExpired)
          .orderBy(orders.expiresAt)
          .limit(sweptMax),
      ),
      change: async (merchant_id: number, order_ids: string) => {
        const [called] = await expire.execute({ merchant_id, order_ids });
        return called?.changed ?? 0;
      },
    },
    deleteOldEvents: {
      find: prepareServerQuery(db, server, { name: 'find_old_events', columns }, () =>
        db
          .select({ merchantId: events.merchantId, id: events.eventId })
          .from(events)
          .where(lt(events.createdAt, sql`now() - ${eventLifetime}`))
          .orderBy(events.createdAt)
          .limit(sweptMax),
      ),
      // Events are deleted after their deliveries. If the process dies in between, the next run finds the events again.
      change: async (merchant_id: number, ids: string) => {
        await deleteDeliveries.execute({ merchant_id, ids });
        return (await deleteEvents.execute({ merchant_id, ids })).length;
      },
    },
  };
}
