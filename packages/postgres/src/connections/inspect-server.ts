import { sql } from 'drizzle-orm';
import { withConnection } from './client.ts';

/** What the gateway must know about its database server when it starts. */
export interface ServerFacts {
  /**
   * The settings that are off and without which the server can lose an acknowledged order: `fsync`, `full_page_writes`,
   * `synchronous_commit` (PostgreSQL 18, 19.5.1).
   */
  readonly losesOrdersBy: readonly string[];
  /** Whether the database may be distributed over several servers. */
  readonly hasCitus: boolean;
}

/** Asks the server. Rejects with an error without values. */
export function inspectServer(url: string): Promise<ServerFacts> {
  return withConnection({ url, applicationName: 'order-gateway start' }, async ({ db, run }) => {
    const [row] = await run(() =>
      db.execute<{ off: string[]; hasCitus: boolean }>(sql`
        select
          array_to_json(array(
            select name from pg_settings
            where name in ('fsync', 'full_page_writes', 'synchronous_commit') and setting = 'off' order by name
          )) as off,
          exists (select from pg_extension where extname = 'citus') as "hasCitus"`),
    );
    return { losesOrdersBy: row?.off ?? [], hasCitus: row?.hasCitus === true };
  });
}
