import { sql } from 'drizzle-orm';
import { openConnection } from './client.ts';
import { withoutValues } from './errors.ts';

/**
 * The settings of the server that are off, although without them it can lose an order after it was acknowledged: `fsync`,
 * `full_page_writes`, `synchronous_commit` (PostgreSQL 18, 19.5.1). Rejects with an error without values.
 */
export async function settingsThatLoseOrders(url: string): Promise<string[]> {
  const connection = openConnection({ url, applicationName: 'order-gateway settings' });
  try {
    const rows = await connection.run(() =>
      connection.db.execute<{ name: string }>(sql`
        select name from pg_settings
        where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name`),
    );
    return rows.map(({ name }) => name);
  } catch (error) {
    throw withoutValues(error);
  } finally {
    await connection.close();
  }
}
