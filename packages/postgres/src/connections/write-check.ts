import { getTableName, sql } from 'drizzle-orm';
import { orders } from '../schema.ts';
import { type DatabaseOptions, openClient } from './client.ts';
import { withRedactedErrors } from './errors.ts';

/** Shorter than the deadline of a readiness probe, so that a locked table is reported as the reason. */
const lockTimeoutMs = 1_000;

/**
 * The size of the temporary file. It exceeds `memory`, and is about as much as PostgreSQL adds to a busy table at once.
 */
const file = { chunkBytes: 8_000, chunks: 64, memory: '64kB' };

/**
 * A transaction that stores nothing, but needs everything that an insert of an order needs: first the privilege, a
 * writable session and a lock on the table, then space on the data disk, and finally a commit in the log, on its disk
 * and on the synchronous standby. The statements are separate, because Citus does not allow an insert within another
 * statement. Without parameters, the driver sends them as one message, which is one transaction (PostgreSQL 18,
 * 54.2.2.1).
 */
const storeNothing = sql.raw(`
  select set_config('lock_timeout', '${lockTimeoutMs}', true), set_config('work_mem', '${file.memory}', true);
  insert into ${getTableName(orders)} (merchant_id) select 1 where false;
  with filler as materialized (
    select repeat('x', ${file.chunkBytes}) from generate_series(1, ${file.chunks})
  ) select count(*) from filler;
  select pg_logical_emit_message(true, 'order-gateway', 'ready')`);

const readClock = sql`select extract(epoch from clock_timestamp())::float8 * 1000 as now`;

/** The result of a check, if the database can store orders. */
export interface WriteCheckResult {
  /**
   * How far this process's clock is ahead of the database's, in milliseconds; negative if it is behind. The time that
   * the check takes never counts: 0 means that the database's clock was between the start and the end of the check.
   */
  readonly clockOffsetMs: number;
}

/**
 * Opens a check of whether the database can store orders now. It has a separate connection, so that it delays no order.
 */
export function openWriteCheck(database: DatabaseOptions) {
  const client = openClient({ ...database, applicationName: 'order-gateway readiness' }, (db) => db);
  return {
    /**
     * Rejects with the reason, without SQL and values, if the database can't store orders. Completes within the
     * deadline of a statement.
     */
    async run(): Promise<WriteCheckResult> {
      const sentAt = Date.now();
      const [, [clock]] = await withRedactedErrors(() =>
        client.run((db) => Promise.all([db.execute(storeNothing), db.execute<{ now: number }>(readClock)])),
      );
      // `Date.now` rounds down.
      return { clockOffsetMs: distanceTo(clock?.now ?? sentAt, sentAt, Date.now() + 1) };
    },
    close: client.close,
  };
}

/** Returns how far the interval from `start` to `end` is above a time; negative if it is below, 0 if it contains it. */
function distanceTo(time: number, start: number, end: number): number {
  return Math.max(0, start - time) + Math.min(0, end - time);
}
