import { createTestDatabase, type TestDatabase } from '@gateway/dev-postgres/testing';

export type ThrowawayPostgres = { url: string; createDatabase(): Promise<string>; stop(): Promise<void> };

/** Goes with its last user: `createTestDatabase` and `createMigratedDatabase` replace it. */
export async function startThrowawayPostgres(): Promise<ThrowawayPostgres> {
  const databases: TestDatabase[] = [];
  const createDatabase = async () => {
    const database = await createTestDatabase();
    databases.push(database);
    return database.url;
  };
  const stop = async () => {
    for (const { drop } of databases.splice(0)) await drop();
  };
  return { url: await createDatabase(), createDatabase, stop };
}
