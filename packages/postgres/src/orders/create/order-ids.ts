import { createServiceOrderIds, idBlockSize, type ServiceOrderIds } from '@order-gateway/domain/orders';
import { type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { MerchantServer } from '../../connections/client.ts';
import { statementFailure } from '../../connections/errors.ts';
import { orders, serviceOrderIdBlocks } from '../../schema.ts';

const sequence = `${serviceOrderIdBlocks.schema ?? 'public'}.${serviceOrderIdBlocks.seqName}`;

/**
 * The advisory lock that a session holds while it skips blocks: any number that no other program locks. Its bytes spell
 * `blocks` in ASCII.
 */
export const skipLock = 0x626c6f636b73;

/**
 * The maximum number of blocks skipped one by one: a fraction of a second of work, and far more than all sessions
 * reserve in that time.
 */
const skippedMax = 100_000;

/**
 * Creates the ids for the orders that one connection inserts, from blocks that the same connection reserves. A block is
 * not used on another connection, because that connection may lead to a different server. After an asynchronous
 * failover, that server may not know of the block, and may reserve it again. The orders and the sequence are in the
 * same log, so a server that has an order also has the reservation of its id. If orders are on different servers, only
 * the first block and the one after a `drop` are checked, because the check needs all servers. If one of them is lost,
 * the sequence is moved past the blocks that a failover can lose, so that orders are still created.
 */
export function createOrderIds(db: PostgresJsDatabase, server: MerchantServer | undefined): ServiceOrderIds {
  let skipsCheck = false;
  const ids = createServiceOrderIds(async () => {
    if (skipsCheck) return nextBlock(db);
    skipsCheck = server !== undefined;
    try {
      return await reserveBlock(db);
    } catch (error) {
      if (server === undefined || statementFailure(error) === undefined) throw error;
      await db.execute(moveTo((await nextBlock(db)) + 2 * skippedMax));
      return nextBlock(db);
    }
  });
  return {
    take: ids.take,
    drop() {
      skipsCheck = false;
      ids.drop();
    },
  };
}

/**
 * Reserves a block and returns its number. The sequence never waits for another session, and never returns a number
 * twice unless it was set back. In that case, this function moves it past the ids in use.
 */
async function reserveBlock(db: PostgresJsDatabase): Promise<number> {
  for (;;) {
    const block = await nextBlock(db);
    // This is a separate statement, because Citus cannot do both in one.
    const [used] = await db.execute<{ last: string | null }>(
      sql`select max(service_order_id) as last from ${orders} where service_order_id > ${(block - 1) * idBlockSize}`,
    );
    const last = used?.last ?? null;
    if (last === null) return block;
    await db.execute(moveTo(Math.ceil(Number(last) / idBlockSize)));
  }
}

async function nextBlock(db: PostgresJsDatabase): Promise<number> {
  const [reserved] = await db.execute<{ block: string }>(sql`select nextval(${sequence}) as block`);
  return Number(reserved?.block);
}

/**
 * Returns the statement that moves the sequence forward to a block, but never back. Sessions run it one after the
 * other, and each waiting session takes only one number: it finds that block in use, and waits for the lock. So the
 * target of `setval`, which is more than {@link skippedMax} numbers ahead, is beyond the numbers of all sessions.
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
