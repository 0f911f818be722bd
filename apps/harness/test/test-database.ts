import { createTestDatabase } from '@order-gateway/dev-postgres/testing';

/** Creates a database on the server that all tests share. */
export async function testDatabase() {
  const { url, drop } = await createTestDatabase();
  return { url, stop: drop };
}
