import { and, eq, inArray } from 'drizzle-orm';
import { connections, transfers } from '../../store/schema.ts';
import type { Store } from '../../store/store.ts';
import { transfer } from './transfer.ts';

/** Opens the transfers that customers chose, and the accounts to which they are made. */
export function openTransfers({ run, first }: Pick<Store, 'run' | 'first'>) {
  const isAccount = (account: string) => and(eq(connections.provider, transfer.name), eq(connections.account, account));
  return {
    /** Stores the reference of an order whose customer chose a transfer. */
    choose: (chosen: typeof transfers.$inferInsert) =>
      run((db) => db.insert(transfers).values(chosen).onConflictDoNothing()),

    /** Returns the transfer with a reference. */
    find: (reference: string) => first((db) => db.select().from(transfers).where(eq(transfers.reference, reference))),

    /** Returns the transfers with one of these references to merchants who have, or had, connected the account. */
    findTo: (account: string, references: readonly string[]) =>
      run((db) =>
        db
          .selectDistinct({ reference: transfers.reference, orderToken: transfers.orderToken })
          .from(transfers)
          .innerJoin(connections, eq(connections.merchantId, transfers.merchantId))
          .where(and(inArray(transfers.reference, [...references]), isAccount(account))),
      ),

    /** Returns the merchants who have, or had, connected an account. */
    merchantsOf: async (account: string): Promise<readonly string[]> => {
      const rows = await run((db) =>
        db.selectDistinct({ merchantId: connections.merchantId }).from(connections).where(isAccount(account)),
      );
      return rows.map(({ merchantId }) => merchantId);
    },
  };
}
