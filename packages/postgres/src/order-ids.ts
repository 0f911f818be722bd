import { createServiceOrderIds, idBlockSize, type ServiceOrderIds } from '@gateway/domain/service-order-id';
import { sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { orders, serviceOrderIdBlocks } from './schema.ts';

const sequence = `${serviceOrderIdBlocks.schema ?? 'public'}.${serviceOrderIdBlocks.seqName}`;

/** Blocks that are skipped in one statement: a fraction of a second's work. */
const skippedMax = 100_000;

/**
 * The ids for the orders that one connection inserts, from blocks that the same connection reserves. They end with it, as the
 * next connection may lead to another server: after an asynchronous failover that server may not know of the block, and reserve
 * it again. What it has of the orders it also has of the sequence, which is in the same log.
 */
export function openOrderIds(db: PostgresJsDatabase): ServiceOrderIds {
  return createServiceOrderIds(() => reserveBlock(db));
}

/** A sequence never returns a number twice, and never waits for another session. A set back one is moved past the ids in use. */
async function reserveBlock(db: PostgresJsDatabase): Promise<number> {
  for (;;) {
    const [reserved] = await db.execute<{ block: string }>(sql`select nextval(${sequence}) as block`);
    const block = Number(reserved?.block);
    // A statement of its own: Citus has none that does both.
    const [used] = await db.execute<{ last: string | null }>(
      sql`select max(service_order_id) as last from ${orders} where service_order_id > ${(block - 1) * idBlockSize}`,
    );
    const last = used?.last ?? null;
    if (last === null) return block;
    // Not by setval, which could move the sequence back when two processes do it.
    const skipped = Math.min(Math.ceil(Number(last) / idBlockSize) - block, skippedMax);
    await db.execute(sql`select max(nextval(${sequence})) from generate_series(1, ${skipped})`);
  }
}
