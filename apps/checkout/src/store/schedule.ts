import { arrayLiteral } from '@order-gateway/postgres/connections';
import { and, asc, eq, gt, inArray, isNull, lte, ne, notInArray, type SQL, sql } from 'drizzle-orm';
import { isFree, isNoticed } from './attempts.ts';
import type { Run } from './run.ts';
import { attempts, connections, decidedStates } from './schema.ts';

/** A provider's lists of an account: changed attempts, and payments with changed refunds or disputes. */
export type List = keyof typeof marks;

/** The columns with the times up to which the lists were read. */
const marks = { recent: 'listedUntil', reversed: 'reversedUntil' } as const;

/** Whether due attempts are payments in progress, or payments whose refunds and disputes must be reported. */
export type DueKind = 'payments' | 'reversals';

/** Whether the key of a connection has not been erased. */
const hasKey = sql`secrets <> ''`;

/** Returns the attempts that are due, and for how long they have been due. */
export function scheduleWork({ run, first }: Run) {
  const setDue = (condition: SQL | undefined) =>
    run((db) => db.update(attempts).set({ dueAt: sql`now()` }).where(condition));
  const setMark = (connectionId: string, mark: { readonly [name: string]: Date | SQL }) =>
    run((db) => db.update(connections).set(mark).where(eq(connections.connectionId, connectionId)));
  return {
    /**
     * Returns the ids of attempts that are due and that no process works on. The accounts take turns, so that a busy
     * account does not delay another one.
     */
    due: (limit: number, kind: DueKind = 'payments') =>
      run((db) =>
        db
          .select({ attemptId: attempts.attemptId })
          .from(attempts)
          .where(
            and(
              lte(attempts.dueAt, sql`now()`),
              isFree,
              (kind === 'payments' ? notInArray : inArray)(attempts.state, [...decidedStates]),
            ),
          )
          .orderBy(
            sql`row_number() over (partition by ${attempts.connectionId} order by ${attempts.dueAt})`,
            asc(attempts.dueAt),
          )
          .limit(limit),
      ),

    /**
     * Makes the attempts due that a provider's list mentions, by their ids or those of their sessions or payments. An
     * attempt that ended keeps the time of its next look, because lists repeat old changes.
     */
    makeDue: (connectionId: string, ids: readonly string[]) =>
      setDue(and(isNoticed(connectionId, ids), gt(attempts.dueAt, sql`now()`), ne(attempts.state, 'ENDED'))),

    /**
     * Makes the payments due whose refunds or disputes a webhook or a provider's list mentions. A payment that could
     * not be reported keeps its pause.
     */
    makeReversalsDue: (connectionId: string, ids: readonly string[]) =>
      setDue(and(isNoticed(connectionId, ids), inArray(attempts.state, [...decidedStates]), isNull(attempts.dueAt))),

    /**
     * Returns the age of the oldest payment in progress, how many payments must be refunded, and when the first
     * authorisation ends that was neither captured nor released; `null` if there is none. A session that ended may have
     * been paid if the provider can't be asked about it.
     */
    moneyOnItsWay: () =>
      first((db) =>
        db.execute<{ oldestSeconds: number; owed: number; authorisationSeconds: number | null }>(sql`
          select
            greatest(0, extract(epoch from now() - min(coalesce(paid_at, created_at))))::float8 as "oldestSeconds",
            count(*) filter (where state = 'OWED')::int as owed,
            extract(epoch from min(capture_before) filter (where state in ('CLAIMED', 'VOIDING')) - now())::float8
              as "authorisationSeconds"
          from ${attempts} where due_at is not null and (
            state in ('CLAIMED', 'VOIDING', 'CAPTURED', 'OWED')
            or state = 'OPEN' and failures > 0 and session_ends_at < now()
          )`),
      ),

    /**
     * Returns the connections whose list was not read for a minute, each with the time up to which it was read, and
     * marks them as read up to now. Refunds and disputes change after a merchant disconnected, too, and are read
     * until the key is erased. Those that are `paused` are left out.
     */
    takeLists: (list: List, paused: readonly string[] = []) =>
      run(async (db) => {
        const mark = sql.identifier(connections[marks[list]].name);
        const isUsed = sql`disconnected_at is null or exists (
          select from ${attempts} where ${attempts.connectionId} = ${connections.connectionId}
          and ${attempts.dueAt} is not null
        )`;
        const rows = await db.execute<{ connectionId: string; provider: string; readUntil: string }>(sql`
          with due as (
            select connection_id, ${mark} as read_until from ${connections}
            where ${mark} < now() - interval '1 minute' and ${hasKey} and (${list === 'reversed' ? sql`true` : isUsed})
              and connection_id <> all(${arrayLiteral(paused, (id) => id)}::text[])
            for update skip locked
          )
          update ${connections} set ${mark} = now() from due
          where ${connections.connectionId} = due.connection_id
          returning due.connection_id as "connectionId", provider, due.read_until as "readUntil"`);
        return rows.map((row) => ({ ...row, readUntil: new Date(row.readUntil) }));
      }),

    /** Restores the time up to which a list was read, because reading it failed. An earlier time since then stays. */
    resetList: (connectionId: string, list: List, readUntil: Date) =>
      setMark(connectionId, {
        [marks[list]]: sql`least(${connections[marks[list]]}, ${readUntil.toISOString()}::timestamptz)`,
      }),

    /**
     * Returns a connection whose payments were not compared for a day, and marks it, so that it is returned again after
     * 6 hours unless the comparison is ended; `undefined` if there is none. The refunds and disputes of the last days
     * are listed again, because providers list old ones that changed late.
     */
    takeComparison: (days: number) =>
      first((db) =>
        db.execute<{ connectionId: string; provider: string }>(sql`
          update ${connections}
          set compared_at = now() - interval '18 hours',
            reversed_until = least(reversed_until, now() - make_interval(days => ${days}))
          where connection_id = (
            select connection_id from ${connections} where compared_at < now() - interval '1 day' and ${hasKey}
            order by compared_at limit 1 for update skip locked
          )
          returning connection_id as "connectionId", provider`),
      ),

    /** Stores that all payments of a connection were compared. */
    endComparison: (connectionId: string) => setMark(connectionId, { comparedAt: sql`now()` }),
  };
}
