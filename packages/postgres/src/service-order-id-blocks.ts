import type { ReserveIdBlock } from '@gateway/domain/service-order-id';
import { sql } from 'drizzle-orm';
import { openLane } from './lane.ts';
import { serviceOrderIdBlocks } from './schema.ts';
import { statementFailure, withoutValues } from './statement-error.ts';

/** Where a process gets its blocks of service order ids. */
export interface ServiceOrderIdBlocks {
  /** Reserves a block: a sequence never gives a number twice, also after a crash, and never waits for another session. */
  readonly reserve: ReserveIdBlock;
  /** Whether the database answers. */
  isReachable(): Promise<boolean>;
  /** Ends the connection. */
  close(): Promise<void>;
}

/** Opens the blocks on one connection, made with the first call. What it rejects with holds no values. */
export function openServiceOrderIdBlocks(url: string): ServiceOrderIdBlocks {
  const name = `${serviceOrderIdBlocks.schema ?? 'public'}.${serviceOrderIdBlocks.seqName}`;
  const lane = openLane({ url, applicationName: 'order-gateway ids', connectionsMax: 1 }, (db) => db);
  return {
    async reserve() {
      try {
        const rows = await lane.run((db) => db.execute<{ block: string }>(sql`select nextval(${name}) as block`));
        return Number(rows[0]?.block);
      } catch (error) {
        const failure = statementFailure(error);
        if (failure === undefined) throw withoutValues(error);
        return failure;
      }
    },
    isReachable: () =>
      lane
        .run((db) => db.execute(sql`select 1`))
        .then(
          () => true,
          () => false,
        ),
    close: () => lane.close(),
  };
}
