import {
  type Account,
  type AccountDirectory,
  type AccountId,
  type AccountLookup,
  lateDays,
} from '@order-gateway/domain/accounts';
import { and, eq, isNull, max, type SQL, sql } from 'drizzle-orm';
import type { PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { createBatchQueue } from '../batches/batch-queue.ts';
import {
  arrayLiteral,
  type Closable,
  type DatabaseClient,
  type DatabaseOptions,
  openClient,
} from '../connections/client.ts';
import { withRedactedErrors } from '../connections/errors.ts';
import { queueLimits } from '../queue-limits.ts';
import { accounts, clientSecrets, isLiveSecret } from '../schema.ts';

/** Time limit of a lookup. A call waits for one lookup at most. */
const lookupTimeoutMs = 5_000;

type Statements = ReturnType<typeof prepareStatements>;

/** The operations of a directory in addition to the lookups. */
interface AccountsCheck {
  /**
   * Looks up no account, with the statement and the connections of every lookup. Rejects with the reason if it fails.
   */
  check(): Promise<void>;
  /**
   * Returns for how many days after an order's expiry some checkout system can report a payment. A disabled one counts
   * as if it did not exist. Rejects if it can't be read.
   */
  longestLateDays(): Promise<number>;
}

/** Reads accounts and their live secrets. Lookups that arrive together share a prepared statement. */
export function openAccountDirectory(options: DatabaseOptions): AccountDirectory & AccountsCheck & Closable {
  const clients = Array.from({ length: queueLimits.accounts.connections }, () =>
    openClient({ ...options, applicationName: 'order-gateway accounts' }, prepareStatements),
  );
  const queue = createBatchQueue<DatabaseClient<Statements>, string, AccountLookup>({
    name: 'accounts',
    meter: options.meter,
    clients,
    ...queueLimits.accounts,
    run: findBatch,
  });
  return {
    async findAccount(clientId): Promise<AccountLookup> {
      const outcome = await queue.add(clientId, lookupTimeoutMs * (options.patience ?? 1));
      return outcome.kind === 'deadline_exceeded' ? { kind: 'unavailable' } : outcome;
    },
    async check() {
      await withRedactedErrors(() => Promise.all(clients.map((client) => findBatch(client, []))));
    },
    async longestLateDays() {
      const rows = await withRedactedErrors(async () => clients[0]?.run(({ findLateDays }) => findLateDays.execute()));
      return rows?.[0]?.days ?? lateDays.byDefault;
    },
    close: queue.close,
  };
}

/** The columns of an account that {@link accountOf} needs. */
export const accountColumns = {
  kind: accounts.kind,
  id: accounts.id,
  name: accounts.name,
  checksumMode: accounts.checksumMode,
  mode: accounts.mode,
  defaultLifetimeSeconds: accounts.defaultLifetimeSeconds,
  rateLimit: accounts.rateLimit,
  lateDays: accounts.lateDays,
  getsCustomerData: accounts.getsCustomerData,
};

function prepareStatements(db: PostgresJsDatabase) {
  return {
    findAccounts: db
      .select({
        clientId: accounts.clientId,
        account: accountColumns,
        secret: { hash: clientSecrets.secretHash, endsAt: clientSecrets.endsAt },
      })
      .from(accounts)
      .leftJoin(clientSecrets, and(eq(clientSecrets.accountId, accounts.id), isLiveSecret))
      // A disabled account is treated as if it did not exist.
      .where(
        sql`${accounts.clientId} = any(${sql.placeholder('clientIds')}::text[]) and ${isNull(accounts.disabledAt)}`,
      )
      .prepare('find_accounts'),
    findLateDays: db
      .select({ days: max(accounts.lateDays) })
      .from(accounts)
      .where(and(eq(accounts.kind, 'checkout'), isNull(accounts.disabledAt)))
      .prepare('find_late_days'),
  };
}

async function findBatch(client: DatabaseClient<Statements>, clientIds: readonly string[]): Promise<AccountLookup[]> {
  const rows = await client.run(({ findAccounts }) =>
    findAccounts.execute({ clientIds: arrayLiteral(clientIds, (id) => id) }),
  );
  const rowsOf = Map.groupBy(rows, ({ clientId }) => clientId);
  return clientIds.map((clientId) => {
    const found = rowsOf.get(clientId) ?? [];
    const account = found[0]?.account;
    if (account === undefined) return { kind: 'unknown' };
    const secrets = found.flatMap(({ secret }) =>
      secret === null ? [] : [{ hash: secret.hash, endsAtMs: secret.endsAt?.getTime() ?? null }],
    );
    return { kind: 'found', stored: { account: accountOf(account), secrets } };
  });
}

/** Returns an account for an operator, even if it is disabled; `undefined` if there is none. */
export async function findAccount(db: PostgresJsDatabase, clientId: string): Promise<Account | undefined> {
  const [row] = await db.select(accountColumns).from(accounts).where(eq(accounts.clientId, clientId));
  return row && accountOf(row);
}

/** Prepares a lookup of accounts for rows with their ids. A join would not run on a worker of Citus. */
export function prepareAccountsOf(db: PostgresJsDatabase) {
  const find = db
    .select({ id: accounts.id, clientId: accounts.clientId, mode: accounts.mode })
    .from(accounts)
    .where(sql`${accounts.id} = any(${sql.placeholder('ids')}::bigint[])`)
    .prepare('find_accounts_of');
  return async (rows: readonly { readonly merchantId: number }[]) => {
    const ids = arrayLiteral(rows, ({ merchantId }) => merchantId);
    const found = rows.length === 0 ? [] : await find.execute({ ids });
    return new Map(found.map(({ id, ...account }) => [id, account]));
  };
}

/** Whether an account is the merchant with this client id, and is enabled. */
export function isEnabledMerchant(clientId: string): SQL | undefined {
  return and(eq(accounts.clientId, clientId), eq(accounts.kind, 'merchant'), isNull(accounts.disabledAt));
}

type AccountRow = Pick<typeof accounts.$inferSelect, keyof typeof accountColumns>;

export function accountOf({ kind, id, name, lateDays, getsCustomerData, ...settings }: AccountRow): Account {
  const common = { id: id as AccountId, name };
  return kind === 'merchant' ? { kind, ...common, ...settings } : { kind, ...common, lateDays, getsCustomerData };
}
