import { createServiceOrderIds, idBlockSize, type ServiceOrderIds } from '@order-gateway/domain/orders';
import { type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { orders, serviceOrderIdBlocks } from '../../schema.ts';

const sequence = `${serviceOrderIdBlocks.schema ?? 'public'}.${serviceOrderIdBlocks.seqName}`;

/** Locked while a session skips blocks. Any number that no other program locks; these digits are `blocks` in ASCII. */
export const skipLock = 0x626c6f636b73;

/** Blocks that are skipped one by one: a fraction of a second's work, and far more than all sessions reserve in that time. */
const skippedMax = 100_000;

/**
 * The ids for the orders that one connection inserts, from blocks that the same connection reserves. They end with it, as the
 * next connection may lead to another server: after an asynchronous failover that server may not know of the block, and reserve
 * it again. What it has of the orders it also has of the sequence, which is in the same log. Where orders are on different
 * servers, only the first block is checked, which needs all of them, so that a lost one does not end the creation of orders.
 */
export function openOrderIds(db: PostgresJsDatabase, isDistributed: boolean): ServiceOrderIds {
  let isChecked = false;
  const ids = createServiceOrderIds(async () => {
    const block = await reserveBlock(db, isChecked);
    isChecked = isDistributed;
    return block;
  });
  return {
    take: ids.take,
    drop() {
      isChecked = false;
      ids.drop();
    },
  };
}

/** A sequence never returns a number twice, and never waits for another session. A set back one is moved past the ids in use. */
async function reserveBlock(db: PostgresJsDatabase, isChecked: boolean): Promise<number> {
  for (;;) {
    const [reserved] = await db.execute<{ block: string }>(sql`select nextval(${sequence}) as block`);
    const block = Number(reserved?.block);
    if (isChecked) return block;
    // A separate statement, because Citus has none that does both.
    const [used] = await db.execute<{ last: string | null }>(
      sql`select max(service_order_id) as last from ${orders} where service_order_id > ${(block - 1) * idBlockSize}`,
    );
    const last = used?.last ?? null;
    if (last === null) return block;
    await db.execute(moveTo(Math.ceil(Number(last) / idBlockSize)));
  }
}

/**
 * Moves the sequence to a block, and never back: one session after the other does it. Until it is done, each of the others takes
 * one number, finds its block in use, and waits; so `setval`, which skips more than {@link skippedMax}, is beyond them all.
 */
function moveTo(block: number): SQL {
  return sql.raw(`do $$
    declare
      skipped bigint;
    begin
      perform pg_advisory_xact_lock(${skipLock});
      skipped := ${block} - nextval('${sequence}');
      if skipped > ${skippedMax} then
        perform setval('${sequence}', ${block});
      else
        perform nextval('${sequence}') from generate_series(1, skipped);
      end if;
    end $$`);
}
