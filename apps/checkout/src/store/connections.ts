import { arrayLiteral } from '@order-gateway/postgres/connections';
import { and, asc, desc, eq, isNull, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import type { Run } from './run.ts';
import { auditLog, connections } from './schema.ts';

/** A merchant's account at a provider. */
export type Connection = typeof connections.$inferSelect;

/** Returns the connections and the operators' changes, with the audit log. */
export function manageConnections({ run, first }: Run) {
  /** Runs a change of a connection and records it in the audit log, in one statement. Returns whether it changed. */
  const recorded = async (statement: (db: PostgresJsDatabase) => SQLWrapper, action: string, actor: string) => {
    const rows = await run((db) =>
      db.execute(sql`
        with acted as (${statement(db).getSQL()})
        insert into ${auditLog} (actor, action, merchant_id, details)
        select ${actor}, ${action}, merchant_id,
          jsonb_build_object('connection_id', connection_id, 'provider', provider, 'mode', mode, 'account', account)
        from acted returning id`),
    );
    return rows.length > 0;
  };
  const select = (condition: SQL | undefined) => (db: PostgresJsDatabase) =>
    db.select().from(connections).where(condition).orderBy(asc(connections.createdAt));
  const update =
    (connectionId: string, set: PgUpdateSetSource<typeof connections>, condition: SQL) => (db: PostgresJsDatabase) =>
      db
        .update(connections)
        .set(set)
        .where(and(eq(connections.connectionId, connectionId), condition))
        .returning();
  return {
    /** Returns a merchant's connections on which attempts may start. */
    connectionsOf: (merchantId: string) =>
      run(select(and(eq(connections.merchantId, merchantId), isNull(connections.disconnectedAt)))),

    /** Returns all connections, or those of a merchant, oldest first. */
    listConnections: (merchantId?: string) =>
      run(select(merchantId === undefined ? undefined : eq(connections.merchantId, merchantId))),

    /** Returns a connection, even if it was disconnected. */
    findConnection: (connectionId: string) => first(select(eq(connections.connectionId, connectionId))),

    /** Stores a connection. Returns `false` if the merchant already has one with the provider. */
    connect: (connection: typeof connections.$inferInsert, actor: string) =>
      recorded((db) => db.insert(connections).values(connection).onConflictDoNothing().returning(), 'connect', actor),

    /** Replaces the secrets and settings of a connection whose account is the same. */
    replaceSecrets: (
      { connectionId, account }: Connection,
      { secrets, settings }: Pick<Connection, 'secrets' | 'settings'>,
      actor: string,
    ) => recorded(update(connectionId, { secrets, settings }, eq(connections.account, account)), 'replace_key', actor),

    /** Ends new attempts with a connection. Its secrets stay until `eraseKeys` finds that nothing needs them. */
    disconnect: (connectionId: string, actor: string) =>
      recorded(
        update(connectionId, { disconnectedAt: sql`now()` }, isNull(connections.disconnectedAt)),
        'disconnect',
        actor,
      ),

    /**
     * Erases the secrets of disconnected accounts without unfinished attempts, except those of connections with pending
     * refunds, and records it in the audit log. Returns how many. The function in the migrations has all conditions.
     */
    async eraseKeys(withRefunds: readonly string[]): Promise<number> {
      const row = await first((db) =>
        db.execute<{ count: number }>(
          sql`select checkout.erase_keys(${arrayLiteral(withRefunds, (id) => id)}::text[]) as count`,
        ),
      );
      return row?.count ?? 0;
    },

    /** Adds an entry to the audit log. */
    log: (actor: string, action: string, merchantId: string, details: Readonly<Record<string, string>>) =>
      run((db) => db.insert(auditLog).values({ actor, action, merchantId, details })),

    /** Returns the details of the latest entry of the audit log for an action with these details. */
    findAction: async (action: string, merchantId: string, details: Readonly<Record<string, string>>) => {
      const isAction = and(eq(auditLog.action, action), eq(auditLog.merchantId, merchantId));
      const row = await first((db) =>
        db
          .select({ details: auditLog.details })
          .from(auditLog)
          .where(and(isAction, sql`${auditLog.details} @> ${JSON.stringify(details)}::jsonb`))
          .orderBy(desc(auditLog.id))
          .limit(1),
      );
      return row?.details;
    },

    /** Returns the audit log, oldest first. */
    actions: () => run((db) => db.select().from(auditLog).orderBy(asc(auditLog.id))),
  };
}
