import type { ReserveIdBlock } from '@gateway/domain/service-order-id';
import { sql } from 'drizzle-orm';
import { type DatabaseOptions, openClient } from './client.ts';
import { statementFailure, withoutValues } from './errors.ts';
import { serviceOrderIdBlocks } from './schema.ts';

/** Blocks of service order ids, reserved in the database. */
export interface OrderIds {
  /** Reserves a block. A sequence never returns a number twice, not even after a crash, and never waits for another session. */
  readonly reserve: ReserveIdBlock;
  /** Whether the database responds. */
  isReachable(): Promise<boolean>;
  /** Closes the connection. */
  close(): Promise<void>;
}

/** Opens the blocks on one connection, made with the first call. Rejects only for bugs, with errors that contain no values. */
export function openOrderIds(options: DatabaseOptions): OrderIds {
  const sequence = `${serviceOrderIdBlocks.schema ?? 'public'}.${serviceOrderIdBlocks.seqName}`;
  const client = openClient({ ...options, applicationName: 'order-gateway ids' }, (db) => db);
  return {
    async reserve() {
      try {
        const rows = await client.run((db) => db.execute<{ block: string }>(sql`select nextval(${sequence}) as block`));
        return Number(rows[0]?.block);
      } catch (error) {
        const failure = statementFailure(error);
        if (failure === undefined) throw withoutValues(error);
        return failure;
      }
    },
    isReachable: () =>
      client
        .run((db) => db.execute(sql`select 1`))
        .then(
          () => true,
          () => false,
        ),
    close: () => client.close(),
  };
}
