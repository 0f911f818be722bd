import { sql } from 'drizzle-orm';
import { openConnection } from './client.ts';
import { withoutValues } from './errors.ts';

/** What the gateway has to know of its database server at its start. */
export interface ServerFacts {
  /**
   * The settings that are off, although without them the server can lose an order after it was acknowledged: `fsync`,
   * `full_page_writes`, `synchronous_commit` (PostgreSQL 18, 19.5.1).
   */
  readonly losesOrdersBy: readonly string[];
  /** Whether the database may be distributed over several servers. */
  readonly hasCitus: boolean;
}

/** Asks the server. Rejects with an error without values. */
export async function inspectServer(url: string): Promise<ServerFacts> {
  const connection = openConnection({ url, applicationName: 'order-gateway start' });
  try {
    const [row] = await connection.run(() =>
      connection.db.execute<{ off: string[]; hasCitus: boolean }>(sql`
        select
          array_to_json(array(
            select name from pg_settings
            where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name
          )) as off,
          exists (select from pg_extension where extname = 'citus') as "hasCitus"`),
    );
    return { losesOrdersBy: row?.off ?? [], hasCitus: row?.hasCitus === true };
  } catch (error) {
    throw withoutValues(error);
  } finally {
    await connection.close();
  }
}
