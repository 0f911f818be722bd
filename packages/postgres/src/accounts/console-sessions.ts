import {
  type ConsolePerson,
  type ConsoleSession,
  type ConsoleSessionStore,
  type ConsoleUser,
  consoleLimits,
  type EndedSessions,
  type FoundConsoleSession,
  type FoundOutcome,
  type Merchant,
} from '@order-gateway/domain/accounts';
import { and, desc, eq, inArray, isNull, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from '../batches/batch-queue.ts';
import type { Closable, DatabaseOptions } from '../connections/client.ts';
import { queueLimits } from '../queue-limits.ts';
import { accounts, consoleLinks, consoleSessions, instructionChanges } from '../schema.ts';
import { accountColumns, accountOf, isEnabledMerchant } from './account-directory.ts';
import { openAdministration, type Run, runOn } from './admin-connection.ts';
import { type RecordedAction, runRecorded } from './audit-log.ts';

const since = (ms: number) => sql`now() - ${ms / 1_000} * interval '1 second'`;

const actorName = sql`'console:' || ${consoleSessions.name} as name`;

/** Whether a session is live, by the database's clock. */
const isLive = sql`${consoleSessions.createdAt} > ${since(consoleLimits.sessionMs)}
  and ${consoleSessions.lastSeenAt} > ${since(consoleLimits.idleMs)}`;

const latestFirst = sql`${consoleSessions.lastSeenAt} desc, ${consoleSessions.id} desc`;

/** The minimum time between two updates of `last_seen_at`, so that frequent use causes few writes. */
const lastSeenMs = 60_000;

/** The actor and the account of an action, for the audit log. */
const actionOf = (sessionDigest: Uint8Array) => ({
  actor: consoleActor(sessionDigest),
  clientId: sql`(${managerOf(sessionDigest, accounts.clientId)})`,
});

/** Opens the store of console sessions on its own connection, so that it delays no other call. */
export function openConsoleSessions(options: DatabaseOptions): ConsoleSessionStore & Closable {
  const client = openAdministration(options, 'console');
  const lookups = createBatchQueue<typeof client, Uint8Array, FoundOutcome<FoundConsoleSession>>({
    name: 'console_lookups',
    meter: options.meter,
    // The other queue closes the client.
    clients: [{ ...client, close: async () => {} }],
    ...queueLimits.consoleLookups,
    run: (_, digests) => runOn(client)((db) => findSessions(db, digests)),
  });
  const queue = createBatchQueue<typeof client, (run: Run) => Promise<unknown>, unknown>({
    name: 'console',
    meter: options.meter,
    clients: [client],
    ...queueLimits.console,
    run: (client, works) => Promise.all(works.map((work) => work(runOn(client)))),
  });
  const perform = <Found>(timeoutMs: number, work: (db: PostgresJsDatabase) => Promise<Found | undefined>) =>
    queue.add(async (run) => ({ kind: 'done', value: await run(work) }), timeoutMs) as Promise<FoundOutcome<Found>>;
  return {
    signIn: (by, sessionDigest, replacedDigest, timeoutMs) =>
      perform(timeoutMs, (db) => signIn(db, by, sessionDigest, replacedDigest)),

    find: lookups.add,

    createLink: (sessionDigest, linkDigest, colleague, timeoutMs) =>
      perform(timeoutMs, async (db) => {
        const created = await recordConsoleLink(
          db,
          { ...colleague, tokenDigest: linkDigest },
          managerOf(sessionDigest, sql`${accounts.id}, ${consoleSessions.id} as session_id`),
          actionOf(sessionDigest),
        );
        return created.length === 1 || undefined;
      }),

    list: (sessionDigest, timeoutMs) =>
      perform(timeoutMs, async (db) => {
        const accountOfSession = db
          .select({ id: consoleSessions.accountId })
          .from(consoleSessions)
          .where(and(eq(consoleSessions.tokenDigest, sessionDigest), isLive));
        const rows = await db
          .select(sessionColumns)
          .from(consoleSessions)
          .where(and(inArray(consoleSessions.accountId, accountOfSession), isLive))
          .orderBy(desc(consoleSessions.id));
        return rows.map(sessionOf);
      }),

    listInstructionChanges: (clientId, timeoutMs) =>
      perform(timeoutMs, async (db) => {
        const rows = await db
          .select({
            createdAt: instructionChanges.createdAt,
            actor: instructionChanges.actor,
            instructions: instructionChanges.instructions,
          })
          .from(instructionChanges)
          .where(eq(instructionChanges.clientId, clientId))
          .orderBy(desc(instructionChanges.id))
          .limit(consoleLimits.instructionChangesMax);
        return rows.map(({ createdAt, ...change }) => ({ createdAtMs: createdAt.getTime(), ...change }));
      }),

    end: (sessionDigest, which, timeoutMs) =>
      perform(timeoutMs, async (db) => (await endSessions(db, sessionDigest, which)).length > 0 || undefined),

    record: (sessionDigest, { name, details }, timeoutMs) =>
      perform(timeoutMs, async (db) => {
        const session = managerOf(sessionDigest, accounts.id);
        const recorded = await runRecorded(db, session, { ...actionOf(sessionDigest), name, details });
        return recorded.length === 1 || undefined;
      }),

    async close() {
      await lookups.close();
      await queue.close();
    },
  };
}

/**
 * Creates a session of the user of a link or of a person, and ends the session that it replaces and those beyond the
 * maximum. Returns `undefined` if neither may sign in.
 */
async function signIn(
  db: PostgresJsDatabase,
  by: Uint8Array | ConsolePerson,
  sessionDigest: Uint8Array,
  replacedDigest: Uint8Array | undefined,
): Promise<true | undefined> {
  const { user, actor } = by instanceof Uint8Array ? userOfLink(by) : userOfPerson(by);
  const [signedIn] = await runRecorded<{ account_id: string }>(
    db,
    user,
    { actor, name: 'console.sign_in', clientId: sql`client_id` },
    {
      also: [
        sql`
          insert into ${consoleSessions} (account_id, token_digest, name, role)
          select account_id, ${sessionDigest}::bytea, name, role from acted`,
        sql`
          delete from ${consoleSessions}
          where ${consoleSessions.tokenDigest} = ${replacedDigest ?? null}::bytea and exists (select from acted)`,
      ],
    },
  );
  if (signedIn === undefined) return undefined;
  const isOfAccount = eq(consoleSessions.accountId, Number(signedIn.account_id));
  // The latest session of each person is first, so that no person can end the sessions of all others.
  const kept = db
    .select({ id: consoleSessions.id })
    .from(consoleSessions)
    .where(and(isOfAccount, isLive))
    .orderBy(
      sql`row_number() over (
        partition by ${consoleSessions.name}, ${consoleSessions.role} order by ${latestFirst})`,
      latestFirst,
    )
    .limit(consoleLimits.sessionsMax);
  await db.delete(consoleSessions).where(and(isOfAccount, sql`${consoleSessions.id} not in ${kept}`));
  return true;
}

/** Ends the caller's own session, another one of the merchant, or all of them. Returns one row per ended session. */
function endSessions(db: PostgresJsDatabase, sessionDigest: Uint8Array, which: EndedSessions): Promise<unknown[]> {
  const isOwn = eq(consoleSessions.tokenDigest, sessionDigest);
  const merchant = managerOf(sessionDigest, accounts.id);
  const isOther = typeof which === 'object' ? eq(consoleSessions.id, which.other) : undefined;
  const isEnded = which === 'own' ? isOwn : and(sql`${consoleSessions.accountId} in (${merchant})`, isOther);
  const ownActor = sql`select ${actorName}, role from ${consoleSessions} where ${isOwn}`;
  return runRecorded(
    db,
    sql`delete from ${consoleSessions} where ${isEnded} returning account_id`,
    {
      actor: which === 'own' ? ownActor : consoleActor(sessionDigest),
      name: which === 'all' ? 'console.sign_out_all' : 'console.sign_out',
      clientId: sql`(select client_id from ${accounts} where id = account_id)`,
    },
    { also: which === 'all' ? [sql`delete from ${consoleLinks} where account_id in (${merchant})`] : [] },
  );
}

/** Finds the live sessions with these digests, and records that they are used. Returns one outcome per digest. */
async function findSessions(
  db: PostgresJsDatabase,
  digests: readonly Uint8Array[],
): Promise<FoundOutcome<FoundConsoleSession>[]> {
  const areSought = and(inArray(consoleSessions.tokenDigest, [...digests]), isLive);
  const touched = db.$with('touched').as(
    db
      .update(consoleSessions)
      .set({ lastSeenAt: sql`now()` })
      .where(and(areSought, sql`${consoleSessions.lastSeenAt} < ${since(lastSeenMs)}`))
      .returning({ id: consoleSessions.id }),
  );
  const rows = await db
    .with(touched)
    .select({
      digest: consoleSessions.tokenDigest,
      account: accountColumns,
      clientId: accounts.clientId,
      session: sessionColumns,
    })
    .from(consoleSessions)
    .innerJoin(accounts, eq(accounts.id, consoleSessions.accountId))
    .where(and(areSought, isNull(accounts.disabledAt)));
  return digests.map((digest) => {
    const row = rows.find((candidate) => Buffer.compare(candidate.digest, digest) === 0);
    const value = row && {
      merchant: accountOf(row.account) as Merchant,
      clientId: row.clientId,
      session: sessionOf(row.session),
    };
    return { kind: 'done', value };
  });
}

/**
 * Returns the statement that deletes a link and returns its user, if the merchant is enabled and the session that
 * created the link is live, and the query for the actor.
 */
function userOfLink(linkDigest: Uint8Array) {
  const isOfLink = eq(consoleLinks.tokenDigest, linkDigest);
  return {
    user: sql`
      delete from ${consoleLinks} using ${accounts}
      where ${isOfLink} and ${consoleLinks.createdAt} > ${since(consoleLimits.linkMs)}
        and ${accounts.id} = ${consoleLinks.accountId} and ${isNull(accounts.disabledAt)}
        and (${isNull(consoleLinks.createdBySession)} or exists (
          select from ${consoleSessions}
          where ${eq(consoleSessions.accountId, consoleLinks.accountId)}
            and ${eq(consoleSessions.id, consoleLinks.createdBySession)} and ${isLive}))
      returning account_id, client_id, ${consoleLinks.name}, role`,
    actor: sql`select 'console:' || name as name, role from ${consoleLinks} where ${isOfLink}`,
  };
}

/** Returns the statement that selects a person as the user, if the merchant is enabled, and the query for the actor. */
function userOfPerson({ clientId, name, role }: ConsolePerson) {
  return {
    user: sql`
      select ${accounts.id} as account_id, ${accounts.clientId}, ${name}::text as name, ${role}::text as role
      from ${accounts} where ${isEnabledMerchant(clientId)}`,
    actor: sql`select ${`console:${name}`}::text as name, ${role}::text as role, 'openid' as signed_in_by`,
  };
}

const sessionColumns = {
  id: consoleSessions.id,
  name: consoleSessions.name,
  role: consoleSessions.role,
  createdAt: consoleSessions.createdAt,
  lastSeenAt: consoleSessions.lastSeenAt,
};

type SessionRow = ConsoleUser & { readonly id: number; readonly createdAt: Date; readonly lastSeenAt: Date };

function sessionOf({ createdAt, lastSeenAt, ...session }: SessionRow): ConsoleSession {
  return { ...session, createdAtMs: createdAt.getTime(), lastSeenAtMs: lastSeenAt.getTime() };
}

/**
 * Selects columns of a session and its merchant, if the session is live and has the role `manage`, and the merchant is
 * enabled. Otherwise, selects nothing.
 */
function managerOf(sessionDigest: Uint8Array, columns: SQLWrapper): SQL {
  return sql`
    select ${columns} from ${consoleSessions} join ${accounts} on ${accounts.id} = ${consoleSessions.accountId}
    where ${consoleSessions.tokenDigest} = ${sessionDigest}::bytea and ${isLive}
      and ${consoleSessions.role} = 'manage' and ${isNull(accounts.disabledAt)}`;
}

/**
 * Selects the user of a session as the actor for the audit log. Selects nothing if the session has ended or may not
 * change anything, so that its change fails.
 */
export function consoleActor(sessionDigest: Uint8Array): SQL {
  return managerOf(sessionDigest, sql`${actorName}, ${consoleSessions.role} as role`);
}

/**
 * Creates a link for the merchant that `account` selects as `id`, which works only as long as the session `session_id`.
 * Deletes links that have expired.
 */
export function recordConsoleLink(
  db: PostgresJsDatabase,
  { tokenDigest, name, role }: ConsoleUser & { readonly tokenDigest: Uint8Array },
  account: SQL,
  action: Pick<RecordedAction, 'actor' | 'clientId'>,
): Promise<unknown[]> {
  return runRecorded(
    db,
    sql`
      insert into ${consoleLinks} (token_digest, account_id, name, role, created_by_session)
      select ${tokenDigest}::bytea, account.id, ${name}::text, ${role}::text, account.session_id
      from (${account}) account
      returning account_id`,
    { ...action, name: 'console.link', details: { for: name, for_role: role } },
    { also: [sql`delete from ${consoleLinks} where ${consoleLinks.createdAt} <= ${since(consoleLimits.linkMs)}`] },
  );
}
