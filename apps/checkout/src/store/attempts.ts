import { hash } from 'node:crypto';
import { arrayLiteral, isDuplicate } from '@order-gateway/postgres/connections';
import { and, asc, desc, eq, getTableColumns, gt, inArray, isNull, lte, or, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { newId } from './ids.ts';
import type { Run } from './run.ts';
import { type Attempt, attempts, calls, refundedByHand, unfinishedStates } from './schema.ts';

/** The values of an attempt that has not started. */
type NewAttempt = Omit<typeof attempts.$inferInsert, 'attemptId' | 'state'>;

/** Changes of an attempt. */
export type AttemptChange = Partial<Omit<Attempt, 'attemptId'>>;

/**
 * Stripe forgets an idempotency key after 24 hours. A provider may forget it sooner, because the effect of an earlier
 * call is looked for before the call is repeated.
 */
const keyHours = 23;

/** How long a process may work on an attempt before another one takes over: longer than any call. */
const leaseSeconds = 60;

const pageLength = 500;

const inSeconds = (seconds: number): SQL => sql`now() + make_interval(secs => ${seconds})`;

/** Whether no process works on an attempt. */
export const isFree: SQL | undefined = or(isNull(attempts.leasedUntil), lte(attempts.leasedUntil, sql`now()`));

/** Whether an attempt of a connection has one of these ids, or its session or payment has. */
export const isNoticed = (connectionId: string, ids: readonly string[]): SQL | undefined =>
  and(
    eq(attempts.connectionId, connectionId),
    or(
      // One parameter, because a statement has at most 65,535, and a provider's list has any length.
      ...[attempts.attemptId, attempts.sessionId, attempts.paymentId].map(
        (column) => sql`${column} = any(${arrayLiteral(ids, (id) => id)}::text[])`,
      ),
    ),
  );

const select = (condition: SQL | undefined) => (db: PostgresJsDatabase) => db.select().from(attempts).where(condition);

/** Returns the reads of attempts. */
export function findAttempts({ run, first }: Run) {
  return {
    /** Returns an attempt. */
    find: (attemptId: string) => first(select(eq(attempts.attemptId, attemptId))),

    /** Returns the attempt with a payment. */
    findByPayment: (orderToken: string, paymentId: string) =>
      first(select(and(eq(attempts.orderToken, orderToken), eq(attempts.paymentId, paymentId)))),

    /** Returns the refused payments that are owed, and those of the last days that the provider has refunded. */
    refused: (days: number) =>
      run((db) =>
        select(
          or(
            eq(attempts.state, 'OWED'),
            and(
              eq(attempts.state, 'REFUNDED'),
              gt(attempts.createdAt, inSeconds(-days * 86_400)),
              sql`${attempts.reason} is distinct from ${refundedByHand}`,
            ),
          ),
        )(db).orderBy(asc(attempts.createdAt)),
      ),

    /** Returns an attempt that paid an order. */
    recorded: (orderToken: string) =>
      first(select(and(eq(attempts.orderToken, orderToken), eq(attempts.state, 'RECORDED')))),

    /** Returns the newest attempt of an order. */
    newest: (orderToken: string) =>
      first((db) => select(eq(attempts.orderToken, orderToken))(db).orderBy(desc(attempts.createdAt)).limit(1)),

    /** Returns the attempts of an order that have one of these reasons. */
    withReason: (orderToken: string, reasons: readonly string[]) =>
      run(select(and(eq(attempts.orderToken, orderToken), inArray(attempts.reason, [...reasons])))),

    /** Returns the attempts that a notice is about, by their ids or those of their sessions or payments. */
    findNoticed: (connectionId: string, ids: readonly string[]) => run(select(isNoticed(connectionId, ids))),

    /** Returns the recorded attempts of a connection since a time. */
    async *recordedSince(connectionId: string, since: Date): AsyncGenerator<Attempt> {
      let after = '';
      for (;;) {
        const isNext = and(
          eq(attempts.connectionId, connectionId),
          eq(attempts.state, 'RECORDED'),
          gt(attempts.createdAt, since),
          gt(attempts.attemptId, after),
        );
        const page = await run((db) => select(isNext)(db).orderBy(asc(attempts.attemptId)).limit(pageLength));
        yield* page;
        if (page.length < pageLength) return;
        after = page.at(-1)?.attemptId ?? after;
      }
    },
  };
}

/** Returns the changes of attempts and their calls. */
export function changeAttempts({ run, first }: Run) {
  return {
    /** Returns the unfinished attempt of an order. */
    unfinished: (orderToken: string) =>
      first(select(and(eq(attempts.orderToken, orderToken), inArray(attempts.state, [...unfinishedStates])))),

    /** Stores an attempt unless the order has an unfinished one. Returns the order's unfinished attempt. */
    async start(attempt: NewAttempt): Promise<Attempt | undefined> {
      const values = { ...attempt, attemptId: newId('att') };
      const started = await first((db) => db.insert(attempts).values(values).onConflictDoNothing().returning());
      return started ?? (await this.unfinished(attempt.orderToken));
    },

    /**
     * Takes the lease of an attempt, and returns it with the database's time; `undefined` if another process has it.
     */
    lease: (attemptId: string) =>
      first((db) =>
        db
          .update(attempts)
          .set({ leasedUntil: inSeconds(leaseSeconds) })
          .where(and(eq(attempts.attemptId, attemptId), isFree))
          .returning({ ...getTableColumns(attempts), now: sql<Date>`now()`.mapWith(attempts.createdAt) }),
      ),

    /**
     * Ends the lease, and makes the attempt due again after a number of seconds; `null` for never. `failed` counts a
     * further failure in a row. Has no effect once the lease has expired and another process has it. Without `wait`,
     * nothing else changes.
     */
    release: (
      { attemptId, leasedUntil }: Attempt,
      wait?: { readonly seconds: number | null; readonly failed: boolean },
    ) =>
      run((db) =>
        db
          .update(attempts)
          .set({
            leasedUntil: null,
            ...(wait && {
              dueAt: wait.seconds === null ? null : inSeconds(wait.seconds),
              failures: wait.failed ? sql`${attempts.failures} + 1` : 0,
            }),
          })
          .where(and(eq(attempts.attemptId, attemptId), eq(attempts.leasedUntil, leasedUntil ?? new Date(0)))),
      ),

    /**
     * Changes an attempt if it is still in the state that was read, and makes it due, so that it is continued even if
     * this process ends before it releases the attempt. Returns the changed attempt; `undefined` if another process
     * changed it, or if the order has another unfinished attempt.
     */
    async change({ attemptId, state }: Attempt, change: AttemptChange): Promise<Attempt | undefined> {
      try {
        return await first((db) =>
          db
            .update(attempts)
            .set({ ...change, changedAt: sql`now()`, dueAt: sql`now()` })
            .where(and(eq(attempts.attemptId, attemptId), eq(attempts.state, state)))
            .returning(),
        );
      } catch (error) {
        if (isDuplicate(error)) return undefined;
        throw error;
      }
    },

    /** Stores that a person refunded a refused payment without the provider, or that the bank returned this refund. */
    setRefundedByHand: (attemptId: string, isRefunded: boolean) =>
      run((db) =>
        db
          .update(attempts)
          .set(
            isRefunded
              ? { state: 'REFUNDED', reason: refundedByHand, dueAt: null }
              : { state: 'OWED', reason: null, dueAt: sql`now()` },
          )
          .where(and(eq(attempts.attemptId, attemptId), inArray(attempts.state, ['OWED', 'REFUNDED']))),
      ),

    /**
     * Returns the key and the request of the last call of a kind, which are repeated for {@link keyHours} unless the
     * provider responded with an error. Otherwise stores this request under a new key. The key follows from the call
     * before it, so that two processes that make a call at the same time send one request.
     */
    async prepareCall({ attemptId }: Attempt, purpose: string, request: object) {
      const last = await first((db) =>
        db
          .select({
            callId: calls.callId,
            key: calls.key,
            request: calls.request,
            isRepeated: sql<boolean>`${calls.error} is null and ${calls.createdAt} > ${inSeconds(-keyHours * 3_600)}`,
          })
          .from(calls)
          .where(and(eq(calls.attemptId, attemptId), eq(calls.purpose, purpose)))
          .orderBy(desc(calls.callId))
          .limit(1),
      );
      if (last?.isRepeated) return { key: last.key, request: last.request };
      const key = `key_${hash('sha256', `${attemptId} ${purpose} ${last?.callId}`)}`;
      const stored = await first((db) =>
        db
          .insert(calls)
          .values({ attemptId, purpose, key, request })
          // Changes nothing, but returns the request of the other process.
          .onConflictDoUpdate({ target: calls.key, set: { error: sql`${calls.error}` } })
          .returning({ key: calls.key, request: calls.request }),
      );
      return stored ?? { key, request };
    },

    /** Stores that the provider responded to a call with an error, so that its key is not used again. */
    endCall: (key: string, error: string) => run((db) => db.update(calls).set({ error }).where(eq(calls.key, key))),
  };
}
