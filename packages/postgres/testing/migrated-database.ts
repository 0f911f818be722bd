import { createTestDatabase, type TestDatabase } from '@order-gateway/dev-postgres/testing';
import { migrateDatabase } from '../src/migrate.ts';

/** Creates a database with the schema on the server that the test run shares. */
export function createMigratedDatabase(): Promise<TestDatabase> {
  return createTestDatabase(migrateDatabase);
}
