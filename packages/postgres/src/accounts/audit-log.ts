import { and, asc, desc, eq, gt, lt, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { auditLog } from '../schema.ts';

/** An action to record in the audit log. */
export interface Action {
  /** The name of the action, such as `secret.add`. */
  readonly name: string;
  /** Absent if the action concerns no account, or several accounts. */
  readonly clientId?: string | SQL | undefined;
  /** The values that were set, but never a secret or a customer's data. */
  readonly details?: Readonly<Record<string, string | number | null>>;
}

/**
 * The actor of an action: a name, or a query that returns the name in the column `name`. The other columns of the query
 * are added to the details. The query returns no row if the caller is no longer authorized. Then the actor is null,
 * which violates the NOT NULL constraint of the column, and the change fails with it ({@link isCallerEnded}).
 */
export type Actor = string | SQL;

/** An action to record, with its actor. */
export interface RecordedAction extends Action {
  readonly actor: Actor;
}

/** What {@link runRecorded} also stores, from expressions that can read its CTEs. */
export interface AlsoRecorded {
  readonly details?: SQL;
  readonly also?: readonly SQL[];
}

/**
 * Runs a change and, if it returns rows, inserts one audit log entry in the same SQL statement. Returns the rows as the
 * driver read them. The CTE `acted` contains the same rows, and the CTE `caller` contains the actor's name: `details`
 * is an expression that can read them and adds to the details of the action, and `also` are further statements that can
 * read them.
 */
export async function runRecorded<Row extends Record<string, unknown>>(
  db: PostgresJsDatabase,
  statement: SQLWrapper,
  { actor, name, clientId, details = {} }: RecordedAction,
  { details: addedDetails = sql`'{}'`, also = [] }: AlsoRecorded = {},
): Promise<Row[]> {
  const rows = await db.execute(sql`
    with caller as materialized (${typeof actor === 'string' ? sql`select ${actor}::text as name` : actor}),
    acted as (${statement.getSQL()}), ${sql.join(also.map((further, index) => sql`${sql.identifier(`also_${index}`)} as (${further}), `))}
    recorded as (
      insert into ${auditLog} (actor, action, client_id, details)
      select (select name from caller), ${name}, ${clientId ?? null},
        ${JSON.stringify(details)}::jsonb || ${addedDetails}::jsonb || coalesce((select to_jsonb(caller) - 'name' from caller), '{}')
      from acted limit 1
    )
    select * from acted`);
  return rows as unknown as Row[];
}

interface ActionFilter {
  readonly clientId?: string | undefined;
  readonly limit: number;
}

/**
 * Returns at most `limit` entries of one account or of all: oldest first after the entry with the id `after`, or newest
 * first before the entry with the id `before`.
 */
export function listActions(
  db: PostgresJsDatabase,
  { clientId, limit, ...position }: ActionFilter & ({ readonly after: number } | { readonly before: number }),
) {
  return db
    .select()
    .from(auditLog)
    .where(
      and(
        'after' in position ? gt(auditLog.id, position.after) : lt(auditLog.id, position.before),
        clientId === undefined ? undefined : eq(auditLog.clientId, clientId),
      ),
    )
    .orderBy('after' in position ? asc(auditLog.id) : desc(auditLog.id))
    .limit(limit);
}
