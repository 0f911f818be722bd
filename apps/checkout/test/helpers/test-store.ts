import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { checkoutMigrations } from '../../src/store/migrate.ts';
import { connections } from '../../src/store/schema.ts';
import { openStore, type Store } from '../../src/store/store.ts';

/** What attempts of tests start with, besides the token of their order. Their session has ended. */
export const startedAttempt = {
  merchantId: 'app_live_1',
  orderId: 'o',
  serviceOrderId: 1,
  amountHundredths: 1_000n,
  currency: 'EUR',
  provider: 'stripe',
  connectionId: 'con_1',
  method: 'card',
  locale: 'en',
  sessionEndsAt: new Date(),
};

/** Stores the connection of a live account. `values` has the columns that differ from the defaults of tests. */
export function storeConnection(
  store: Pick<Store, 'run'>,
  connectionId: string,
  values: Partial<typeof connections.$inferInsert>,
) {
  const account = { provider: 'listed', mode: 'live', account: 'a', secrets: new Uint8Array(1) } as const;
  return store.run((db) =>
    db.insert(connections).values({ connectionId, merchantId: connectionId, ...account, ...values }),
  );
}

/** Opens a store on a new database. `close` also drops the database. */
export async function openTestStore() {
  const database = await createMigratedDatabase();
  await migrateDatabase(database.url, undefined, checkoutMigrations);
  const store = openStore({ url: database.url, patience: testPatience });
  return {
    store,
    async close(): Promise<void> {
      await store.close();
      await database.drop();
    },
  };
}
