import { hash, randomBytes } from 'node:crypto';
import { randomBase62 } from '@order-gateway/domain/accounts';
import {
  arrayLiteral,
  type DatabaseOptions,
  isDuplicate,
  openClient,
  redact,
} from '@order-gateway/postgres/connections';
import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  inArray,
  isNull,
  lte,
  ne,
  notInArray,
  or,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import {
  type Attempt,
  attempts,
  auditLog,
  calls,
  connections,
  decidedStates,
  demoPayments,
  unfinishedStates,
} from './schema.ts';

export type { Attempt } from './schema.ts';

/** The store of everything that the checkout stores. */
export type Store = ReturnType<typeof openStore>;

/** The values of an attempt that has not started. */
type NewAttempt = Omit<typeof attempts.$inferInsert, 'attemptId' | 'state'>;

/** A merchant's account at a provider. */
export type Connection = typeof connections.$inferSelect;

/** A provider's lists of an account: changed attempts, and payments with changed refunds or disputes. */
export type List = keyof typeof marks;

/** The columns with the times up to which the lists were read. */
const marks = { recent: 'listedUntil', reversed: 'reversedUntil' } as const;

/** Whether due attempts are payments in progress, or payments whose refunds and disputes must be reported. */
export type DueKind = 'payments' | 'reversals';

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

/** Returns an identifier with 131 random bits. */
export const newId = (prefix: string) => `${prefix}_${randomBase62(22, randomBytes)}`;

/** Whether the key of a connection has not been erased. */
const hasKey = sql`secrets <> ''`;

const inSeconds = (seconds: number): SQL => sql`now() + make_interval(secs => ${seconds})`;

/** Whether an attempt of a connection has one of these ids, or its session or payment has. */
const isNoticed = (connectionId: string, ids: readonly string[]): SQL | undefined =>
  and(
    eq(attempts.connectionId, connectionId),
    or(
      // One parameter, because a statement has at most 65,535, and a provider's list has any length.
      ...[attempts.attemptId, attempts.sessionId, attempts.paymentId].map(
        (column) => sql`${column} = any(${arrayLiteral(ids, (id) => id)}::text[])`,
      ),
    ),
  );

/** Runs statements. `first` returns the first row. */
interface Run {
  readonly run: <Result>(statement: (db: PostgresJsDatabase) => Promise<Result>) => Promise<Result>;
  readonly first: <Row>(statement: (db: PostgresJsDatabase) => Promise<Row[]>) => Promise<Row | undefined>;
}

/**
 * Opens the store, on one connection that the first statement opens. Every statement is a separate transaction. Rejects
 * with errors that contain no values.
 */
export function openStore(options: Pick<DatabaseOptions, 'url' | 'patience'>) {
  const client = openClient({ ...options, applicationName: 'order-gateway checkout' }, (db) => db);
  const run = async <Result>(statement: (db: PostgresJsDatabase) => Promise<Result>): Promise<Result> => {
    try {
      return await client.run(statement);
    } catch (error) {
      throw isDuplicate(error) ? error : redact(error);
    }
  };
  const first = async <Row>(statement: (db: PostgresJsDatabase) => Promise<Row[]>): Promise<Row | undefined> =>
    (await run(statement))[0];
  return {
    run,
    first,
    close: () => client.close(),
    ...findAttempts({ run, first }),
    ...changeAttempts({ run, first }),
    ...scheduleWork({ run, first }),
    ...manageConnections({ run, first }),
    ...storeDemoPayments({ run, first }),
  };
}

/** Returns the reads of attempts. */
function findAttempts({ run, first }: Run) {
  const select = (condition: SQL | undefined) => (db: PostgresJsDatabase) =>
    db.select().from(attempts).where(condition);
  return {
    /** Returns an attempt. */
    find: (attemptId: string) => first(select(eq(attempts.attemptId, attemptId))),

    /** Returns the attempt with a payment that was reported to the gateway, whether or not it paid the order. */
    reported: (orderToken: string, paymentId: string) =>
      first(
        select(
          and(
            eq(attempts.orderToken, orderToken),
            eq(attempts.paymentId, paymentId),
            inArray(attempts.state, ['RECORDED', 'OWED', 'REFUNDED']),
          ),
        ),
      ),

    /** Returns the newest attempt of an order. */
    newest: (orderToken: string) =>
      first((db) => select(eq(attempts.orderToken, orderToken))(db).orderBy(desc(attempts.createdAt)).limit(1)),

    /** Returns the attempts of an order that have one of these reasons. */
    withReason: (orderToken: string, reasons: readonly string[]) =>
      run(select(and(eq(attempts.orderToken, orderToken), inArray(attempts.reason, [...reasons])))),

    /** Returns the attempts with these ids, of all connections. */
    findAll: (attemptIds: readonly string[]) => run(select(inArray(attempts.attemptId, [...attemptIds]))),

    /** Returns the attempts that a notice is about, by their ids or those of their sessions or payments. */
    findNoticed: (connectionId: string, ids: readonly string[]) => run(select(isNoticed(connectionId, ids))),

    /** Returns the recorded attempts of a connection since a time. */
    async *recordedSince(connectionId: string, since: Date): AsyncGenerator<Attempt> {
      let after = '';
      for (;;) {
        const page = await run((db) =>
          db
            .select()
            .from(attempts)
            .where(
              and(
                eq(attempts.connectionId, connectionId),
                eq(attempts.state, 'RECORDED'),
                gt(attempts.createdAt, since),
                gt(attempts.attemptId, after),
              ),
            )
            .orderBy(asc(attempts.attemptId))
            .limit(pageLength),
        );
        yield* page;
        if (page.length < pageLength) return;
        after = page.at(-1)?.attemptId ?? after;
      }
    },
  };
}

/** Returns the changes of attempts and their calls. */
function changeAttempts({ run, first }: Run) {
  const unfinishedOf = (orderToken: string) =>
    and(eq(attempts.orderToken, orderToken), inArray(attempts.state, [...unfinishedStates]));

  return {
    /** Returns the unfinished attempt of an order. */
    unfinished: (orderToken: string) => first((db) => db.select().from(attempts).where(unfinishedOf(orderToken))),

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
          .where(
            and(
              eq(attempts.attemptId, attemptId),
              or(isNull(attempts.leasedUntil), lte(attempts.leasedUntil, sql`now()`)),
            ),
          )
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

/** Returns the attempts that are due, and for how long they have been due. */
function scheduleWork({ run }: Run) {
  const setDue = (condition: SQL | undefined) =>
    run((db) => db.update(attempts).set({ dueAt: sql`now()` }).where(condition));
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
              or(isNull(attempts.leasedUntil), lte(attempts.leasedUntil, sql`now()`)),
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
     * authorisation ends that was neither captured nor released.
     */
    async moneyOnItsWay() {
      const [row] = await run((db) =>
        db.execute<{ oldest: string | null; owed: string; ends: string | null }>(sql`
          select extract(epoch from now() - min(coalesce(paid_at, created_at))) as oldest,
            count(*) filter (where state = 'OWED') as owed,
            extract(epoch from min(capture_before) filter (where state in ('CLAIMED', 'VOIDING')) - now()) as ends
          from ${attempts} where due_at is not null and state in ('CLAIMED', 'VOIDING', 'CAPTURED', 'OWED')`),
      );
      return {
        oldestSeconds: Math.max(0, Number(row?.oldest ?? 0)),
        owed: Number(row?.owed ?? 0),
        authorisationSeconds: row?.ends == null ? undefined : Number(row.ends),
      };
    },

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
        const rows = await db.execute<{ connection_id: string; provider: string; read_until: string }>(sql`
          with due as (
            select connection_id, ${mark} as read_until from ${connections}
            where ${mark} < now() - interval '1 minute' and ${hasKey} and (${list === 'reversed' ? sql`true` : isUsed})
              and connection_id <> all(${arrayLiteral(paused, (id) => id)}::text[])
            for update skip locked
          )
          update ${connections} set ${mark} = now() from due
          where ${connections.connectionId} = due.connection_id
          returning due.connection_id, provider, due.read_until`);
        return rows.map(({ connection_id: connectionId, provider, read_until }) => ({
          connectionId,
          provider,
          readUntil: new Date(read_until),
        }));
      }),

    /** Restores the time up to which a list was read, because reading it failed. */
    resetList: (connectionId: string, list: List, readUntil: Date) =>
      run((db) =>
        db
          .update(connections)
          .set({ [marks[list]]: readUntil })
          .where(eq(connections.connectionId, connectionId)),
      ),

    /**
     * Returns a connection whose payments were not compared for a day, and marks it; `undefined` if there is none. The
     * refunds and disputes of the last days are listed again, because providers list old ones that changed late.
     */
    takeComparison: (days: number) =>
      run(async (db) => {
        const rows = await db.execute<{ connection_id: string; provider: string }>(sql`
          update ${connections}
          set compared_at = now(), reversed_until = least(reversed_until, now() - make_interval(days => ${days}))
          where connection_id = (
            select connection_id from ${connections} where compared_at < now() - interval '1 day' and ${hasKey}
            order by compared_at limit 1 for update skip locked
          )
          returning connection_id, provider`);
        const [row] = rows;
        return row && { connectionId: row.connection_id, provider: row.provider };
      }),
  };
}

/** Returns the connections and the operators' changes, with the audit log. */
function manageConnections({ run, first }: Run) {
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
  return {
    /** Returns a merchant's connections on which attempts may start. */
    connectionsOf: (merchantId: string): Promise<Connection[]> =>
      run((db) =>
        db
          .select()
          .from(connections)
          .where(and(eq(connections.merchantId, merchantId), isNull(connections.disconnectedAt)))
          .orderBy(asc(connections.createdAt)),
      ),

    /** Returns all connections, or those of a merchant, oldest first. */
    listConnections: (merchantId?: string): Promise<Connection[]> =>
      run((db) =>
        db
          .select()
          .from(connections)
          .where(merchantId === undefined ? undefined : eq(connections.merchantId, merchantId))
          .orderBy(asc(connections.createdAt)),
      ),

    /** Returns a connection, even if it was disconnected. */
    findConnection: (connectionId: string): Promise<Connection | undefined> =>
      first((db) => db.select().from(connections).where(eq(connections.connectionId, connectionId))),

    /** Stores a connection. Returns `false` if the merchant already has one with the provider. */
    connect: (connection: typeof connections.$inferInsert, actor: string) =>
      recorded((db) => db.insert(connections).values(connection).onConflictDoNothing().returning(), 'connect', actor),

    /** Replaces the secrets and settings of a connection whose account is the same. */
    replaceSecrets: (
      { connectionId, account }: Connection,
      { secrets, settings }: Pick<Connection, 'secrets' | 'settings'>,
      actor: string,
    ) =>
      recorded(
        (db) =>
          db
            .update(connections)
            .set({ secrets, settings })
            .where(and(eq(connections.connectionId, connectionId), eq(connections.account, account)))
            .returning(),
        'replace_key',
        actor,
      ),

    /** Ends new attempts with a connection. Its secrets stay until `eraseKeys` finds that nothing needs them. */
    disconnect: (connectionId: string, actor: string) =>
      recorded(
        (db) =>
          db
            .update(connections)
            .set({ disconnectedAt: sql`now()` })
            .where(and(eq(connections.connectionId, connectionId), isNull(connections.disconnectedAt)))
            .returning(),
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

/** Returns the payments of the provider `demo`. */
function storeDemoPayments({ run, first }: Run) {
  return {
    /** Returns a payment of the provider `demo`. */
    findDemoPayment: (sessionId: string) =>
      first((db) => db.select().from(demoPayments).where(eq(demoPayments.sessionId, sessionId))),

    /** Stores a payment of the provider `demo`, once. */
    openDemoPayment: (payment: typeof demoPayments.$inferInsert) =>
      run((db) => db.insert(demoPayments).values(payment).onConflictDoNothing()),

    /** Changes a payment of the provider `demo` if it is in the state `from`. */
    changeDemoPayment: (
      sessionId: string,
      from: (typeof demoPayments.$inferSelect)['state'],
      change: Partial<typeof demoPayments.$inferInsert>,
    ) =>
      run((db) =>
        db
          .update(demoPayments)
          .set(change)
          .where(and(eq(demoPayments.sessionId, sessionId), eq(demoPayments.state, from)))
          .returning(),
      ),
  };
}
