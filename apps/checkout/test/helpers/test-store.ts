import { migrateDatabase } from '@order-gateway/postgres/migrate';
import { createMigratedDatabase } from '@order-gateway/postgres/testing/migrated-database';
import { testPatience } from '@order-gateway/postgres/testing/patience';
import { checkoutMigrations } from '../../src/store/migrate.ts';
import { openStore } from '../../src/store/store.ts';

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
