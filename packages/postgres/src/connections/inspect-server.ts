import { sql } from 'drizzle-orm';
import { withConnection } from './client.ts';

/**
 * Queries what the gateway must know about its database server when it starts. Rejects with an error without values.
 */
export function inspectServer(url: string) {
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
    return {
      /**
       * Which of `fsync`, `full_page_writes` and `synchronous_commit` are off. If any of them is off, the server can
       * lose acknowledged orders (PostgreSQL 18, 19.5.1).
       */
      losesOrdersBy: row?.off ?? [],
      /** Whether the database may be distributed over several servers. */
      hasCitus: row?.hasCitus === true,
    };
  });
}
