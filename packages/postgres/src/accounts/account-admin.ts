import { randomBytes } from 'node:crypto';
import {
  type Account,
  type ChecksumMode,
  type ClientSecretStore,
  type ConsoleUser,
  type Credentials,
  createClientId,
  createClientSecret,
  createConsoleToken,
  hashSecret,
  liveSecretsMax,
} from '@order-gateway/domain/accounts';
import { systemActor } from '@order-gateway/runtime/process';
import { and, asc, eq, getTableColumns, gt, type SQL, sql } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import { accounts, clientSecrets, consoleLinks, consoleSessions, isLiveSecret } from '../schema.ts';
import { isEnabledMerchant } from './account-directory.ts';
import { type AdminOptions, openOperatorClient, type Run } from './admin-connection.ts';
import { type Action, type Actor, listActions, runRecorded } from './audit-log.ts';
import { recordConsoleLink } from './console-sessions.ts';

/**
 * Opens the operators' administration of accounts and their secrets, on one connection that the first call opens. A new
 * secret is returned only by the call that creates it. The statement that makes a change also records it in the audit
 * log. Rejects with errors that contain no values.
 */
export function openAccountAdmin({ actor = systemActor(), ...options }: AdminOptions) {
  const { run, ...client } = openOperatorClient(options, 'accounts');
  return {
    /**
     * Creates a live or test merchant, or a checkout system, with one secret that never expires. Only checkout systems
     * have settings.
     */
    create: (
      name: string,
      kind: 'live' | 'test' | 'checkout' = 'live',
      { lateDays, getsCustomerData, makesRefunds }: CheckoutSettings = {},
    ): Promise<Credentials> =>
      run(async (db) => {
        const [clientId, clientSecret] = [createClientId(randomBytes, kind), createClientSecret(randomBytes)];
        const account =
          kind === 'checkout' ? ({ kind, lateDays, getsCustomerData, makesRefunds } as const) : { mode: kind };
        const insertion = db
          .insert(accounts)
          .values({ name, clientId, ...account })
          .returning({ id: accounts.id });
        const details = {
          name,
          kind,
          ...(lateDays !== undefined && { late_days: lateDays }),
          ...(getsCustomerData && { customer_data: 'yes' }),
          ...(makesRefunds && { refunds: 'yes' }),
        };
        const addSecret = sql`
          insert into ${clientSecrets} (account_id, secret_hash)
          select id, ${hashSecret(clientSecret)}::bytea from acted`;
        await runRecorded(db, insertion, { actor, name: 'create', clientId, details }, { also: [addSecret] });
        return { clientId, clientSecret };
      }),

    /**
     * Returns at most `limit` accounts after `afterClientId`, in order of creation, each with its number of live
     * secrets.
     */
    list: (page: { readonly limit: number; readonly afterClientId?: string | undefined }) =>
      run(async (db) => {
        const after = db
          .select({ id: accounts.id })
          .from(accounts)
          .where(eq(accounts.clientId, page.afterClientId ?? ''));
        return db
          .select({ ...getTableColumns(accounts), liveSecrets: sql<number>`count(${clientSecrets.id})::int` })
          .from(accounts)
          .leftJoin(clientSecrets, and(eq(clientSecrets.accountId, accounts.id), isLiveSecret))
          .where(page.afterClientId === undefined ? undefined : gt(accounts.id, sql`(${after})`))
          .groupBy(accounts.id)
          .orderBy(asc(accounts.id))
          .limit(page.limit);
      }),

    ...accountSettingsOn(run, actor),

    /**
     * Creates a one-time link to the console of a merchant, valid for {@link consoleLimits.linkMs}. Returns its token;
     * `undefined` if there is no such merchant or it is disabled.
     */
    createConsoleLink: (clientId: string, { name, role }: ConsoleUser): Promise<string | undefined> =>
      run(async (db) => {
        const token = createConsoleToken(randomBytes);
        const created = await recordConsoleLink(
          db,
          { tokenDigest: hashSecret(token), name, role },
          sql`select ${accounts.id}, null::bigint as session_id from ${accounts} where ${isEnabledMerchant(clientId)}`,
          { actor, clientId },
        );
        return created.length === 1 ? token : undefined;
      }),

    /** Lists entries of the audit log: see {@link listActions}. */
    log: (page: Parameters<typeof listActions>[1]) => run((db) => listActions(db, page)),

    ...clientSecretsOn(run, actor),

    ...client,
  };
}

/** Returns the changes of an account's settings. The statement that makes a change also records it in the audit log. */
function accountSettingsOn(run: Run, actor: Actor) {
  /**
   * Changes settings of an account. `kind` is the kind of accounts that have these settings, if not all have, and
   * `also` are further statements to run with the change.
   */
  const changeSettings = (
    { kind, ...action }: Action & { readonly clientId: string; readonly kind?: Account['kind'] },
    settings: PgUpdateSetSource<typeof accounts>,
    also: readonly SQL[] = [],
  ) =>
    run(async (db) => {
      const isTarget = and(eq(accounts.clientId, action.clientId), kind && eq(accounts.kind, kind));
      const statement = db.update(accounts).set(settings).where(isTarget).returning({ id: accounts.id });
      const changed = await runRecorded(db, statement, { ...action, actor }, { also });
      return changed.length === 1 ? 'done' : 'unknown_account';
    });
  return {
    /** Takes effect within a second, when a process next reads the merchant. */
    setChecksumMode: (clientId: string, checksumMode: ChecksumMode) =>
      changeSettings(
        { name: 'checksum', clientId, kind: 'merchant', details: { mode: checksumMode } },
        { checksumMode },
      ),

    /** Sets the lifetime of orders sent without an expiry; `null` for none. Takes effect within a second. */
    setDefaultLifetime: (clientId: string, defaultLifetimeSeconds: number | null) =>
      changeSettings(
        { name: 'lifetime', clientId, kind: 'merchant', details: { seconds: defaultLifetimeSeconds } },
        { defaultLifetimeSeconds },
      ),

    /**
     * Sets for how many days after an order's expiry a checkout system can report a payment that was made in time.
     * Takes effect within a second.
     */
    setLateDays: (clientId: string, lateDays: number) =>
      changeSettings({ name: 'late_days', clientId, kind: 'checkout', details: { days: lateDays } }, { lateDays }),

    /** Sets whether a checkout system makes the refunds of its payments. Takes effect immediately. */
    setMakesRefunds: (clientId: string, makesRefunds: boolean) =>
      changeSettings(
        { name: 'refunds', clientId, kind: 'checkout', details: { refunds: makesRefunds ? 'on' : 'off' } },
        { makesRefunds },
      ),

    /**
     * Sets the calls per second in one process; `null` for the limit configured for all accounts. Takes effect within a
     * second.
     */
    setRateLimit: (clientId: string, rateLimit: number | null) =>
      changeSettings(
        { name: 'limit', clientId, kind: 'merchant', details: { calls_per_second: rateLimit } },
        { rateLimit },
      ),

    /** Changes the name that customers see. */
    rename: (clientId: string, name: string) =>
      changeSettings({ name: 'rename', clientId, details: { name } }, { name }),

    /**
     * Makes every process reject the account's credentials within a second, until {@link enable} is called. Ends the
     * account's console sessions and unused sign-in links permanently.
     */
    disable: (clientId: string) =>
      changeSettings(
        { name: 'disable', clientId },
        { disabledAt: sql`coalesce(${accounts.disabledAt}, now())` },
        [consoleSessions, consoleLinks].map(
          (table) => sql`delete from ${table} where account_id = (select id from acted)`,
        ),
      ),

    enable: (clientId: string) => changeSettings({ name: 'enable', clientId }, { disabledAt: null }),
  };
}

/** Returns the store of client secrets. The statement that makes a change also records it in the audit log. */
export function clientSecretsOn(run: Run, actor: Actor): ClientSecretStore {
  return {
    addSecret: (clientId, endsAt) =>
      run(async (db) => {
        const clientSecret = createClientSecret(randomBytes);
        const live = db.$count(clientSecrets, and(eq(clientSecrets.accountId, accounts.id), isLiveSecret));
        const endsAtText = endsAt?.toISOString() ?? null;
        const [added] = await runRecorded<{ id: string; created_at: string }>(
          db,
          sql`
            insert into ${clientSecrets} (account_id, secret_hash, ends_at)
            select ${accounts.id}, ${hashSecret(clientSecret)}::bytea, ${endsAtText}::timestamptz
            from ${accounts} where ${accounts.clientId} = ${clientId} and ${live} < ${liveSecretsMax}
            returning id, created_at`,
          { actor, name: 'secret.add', clientId, details: { ends_at: endsAtText } },
          { details: sql`jsonb_build_object('number', id)` },
        );
        if (added !== undefined) {
          const createdAt = new Date(added.created_at);
          return { kind: 'added', id: Number(added.id), createdAt, endsAt, clientSecret } as const;
        }
        const accountExists = (await db.$count(accounts, eq(accounts.clientId, clientId))) === 1;
        return { kind: accountExists ? 'too_many' : 'unknown_account' } as const;
      }),

    listSecrets: (clientId) =>
      run(async (db) => {
        const rows = await db
          .select({
            secret: { id: clientSecrets.id, createdAt: clientSecrets.createdAt, endsAt: clientSecrets.endsAt },
          })
          .from(accounts)
          .leftJoin(clientSecrets, eq(clientSecrets.accountId, accounts.id))
          .where(eq(accounts.clientId, clientId))
          .orderBy(asc(clientSecrets.id));
        return rows.length === 0 ? undefined : rows.flatMap(({ secret }) => secret ?? []);
      }),

    endSecret: (clientId, secretId, endsAt, { keepsLast = false } = {}) =>
      run(async (db) => {
        const account = db.select({ id: accounts.id }).from(accounts).where(eq(accounts.clientId, clientId));
        const isTarget = and(eq(clientSecrets.id, secretId), eq(clientSecrets.accountId, sql`(${account})`));
        const isNotLast = sql`exists (
          select from ${clientSecrets} as other where other.account_id = (${account}) and other.id <> ${secretId}
            and (other.ends_at is null or other.ends_at > now()))`;
        // Locks the caller's secret first. It may be the one that ends, and a statement cannot lock a row that it has
        // changed itself.
        const isLockedFirst = sql`(select count(*) from caller) >= 0`;
        const requestedEnd = endsAt === null ? sql`now()` : sql`${endsAt.toISOString()}::timestamptz`;
        const ending = db
          .update(clientSecrets)
          // `least` ignores the null of a secret without an end.
          .set({ endsAt: sql`least(${clientSecrets.endsAt}, ${requestedEnd})` })
          .where(and(isLockedFirst, isTarget, isLiveSecret, keepsLast ? isNotLast : undefined))
          .returning({ endsAt: clientSecrets.endsAt });
        const [ended] = await runRecorded<{ ends_at: string }>(
          db,
          ending,
          { actor, name: 'secret.revoke', clientId, details: { number: secretId } },
          { details: sql`jsonb_build_object('ends_at', ends_at)` },
        );
        if (ended !== undefined) return { kind: 'ends', endsAt: new Date(ended.ends_at) } as const;
        const [unchanged] = await db
          .select({ isLive: sql<boolean>`${isLiveSecret}` })
          .from(clientSecrets)
          .where(isTarget);
        if (unchanged !== undefined) return { kind: unchanged.isLive ? 'last' : 'ended_already' } as const;
        const accountExists = (await db.$count(accounts, eq(accounts.clientId, clientId))) === 1;
        return { kind: accountExists ? 'unknown_secret' : 'unknown_account' } as const;
      }),
  };
}

/** Settings of a checkout system; absent: the default. */
type CheckoutSettings = Pick<typeof accounts.$inferInsert, 'lateDays' | 'getsCustomerData' | 'makesRefunds'>;

/** The operations of {@link openAccountAdmin}. */
export type AccountAdmin = ReturnType<typeof openAccountAdmin>;

/** Creates one account as {@link AccountAdmin} does, on a separate connection. */
export async function createMerchant(
  url: string,
  name: string,
  kind?: 'live' | 'test' | 'checkout',
): Promise<Credentials> {
  await using accounts = openAccountAdmin({ url });
  return await accounts.create(name, kind);
}
