import { hasDatabase } from '@order-gateway/dev-postgres';
import type { BaseUrl } from '@order-gateway/domain/links';
import { type AccountAdmin, openAccountAdmin } from '@order-gateway/postgres/accounts';
import { openDatabase } from '@order-gateway/postgres/open-database';
import { messageOf, onStopSignal, StartError } from '@order-gateway/runtime/process';
import { type Config, readConfig } from '../config.ts';
import { defaultBaseUrl, hostInUrl } from '../runtime/network/listen.ts';

interface DatabaseOptions {
  /**
   * Whether to create the embedded database and the schema if they are missing, as `start` does. Otherwise, the
   * command fails without them.
   */
  readonly creates?: boolean;
  /** Overrides the variable MIGRATE of a command that creates the schema. */
  readonly migrate?: boolean;
}

/**
 * Opens the configured database for a command, prints the database's name to standard error, and closes the database
 * afterwards. Rejects with a {@link StartError}.
 */
export async function withDatabase(
  work: (url: string, config: Config) => Promise<void>,
  { creates = false, migrate }: DatabaseOptions = {},
): Promise<void> {
  const config = readConfig(process.env);
  if (!creates && config.databaseUrl === undefined && !hasDatabase(config.dataDir))
    throw new StartError(
      `There is no database in ${config.dataDir}. Set DATABASE_URL or DATA_DIR to the value that the gateway uses, or run \`start\` first.`,
    );
  const done = openAndWork(work, { ...config, migrate: creates && (migrate ?? config.migrate) });
  // On the first signal, the process gives the command time to end. Otherwise, PostgreSQL would keep running, or a new
  // secret would never be shown.
  onStopSignal(() => done);
  await done;
}

async function openAndWork(work: (url: string, config: Config) => Promise<void>, config: Config): Promise<void> {
  const database = await openDatabase(config);
  try {
    process.stderr.write(`Database: ${database.name}\n`);
    await work(database.url, config);
  } catch (error) {
    throw error instanceof StartError ? error : new StartError(`The command failed: ${messageOf(error)}`);
  } finally {
    await database.close();
  }
}

export function unknownAccount(clientId: string, kind = 'account'): StartError {
  return new StartError(`There is no ${kind} ${clientId}.`);
}

/** Returns the base URL of a gateway with this configuration. */
export function baseUrlOf({ baseUrl, host, httpPort, tls }: Config): BaseUrl {
  return baseUrl ?? defaultBaseUrl(tls === undefined ? 'http' : 'https', hostInUrl(host), httpPort);
}

interface AccountsOptions extends DatabaseOptions {
  /** The actor in the audit log. */
  readonly actor?: string | undefined;
}

/** Opens the accounts of merchants and checkout systems for a command, and closes them afterwards. */
export function withAccounts(
  work: (accounts: AccountAdmin, config: Config) => Promise<void>,
  { actor, ...options }: AccountsOptions = {},
): Promise<void> {
  return withDatabase(async (url, config) => {
    await using accounts = openAccountAdmin({ url, actor });
    await work(accounts, config);
  }, options);
}

export type OpenAccounts = typeof withAccounts;

/** Returns a function that changes a setting of an account of this kind, and prints the new state. */
export function settingChanger(openAccounts: OpenAccounts, print: (line: string) => void, kind?: string) {
  return (clientId: string, change: (accounts: AccountAdmin) => Promise<string>, sentence: string) =>
    openAccounts(async (accounts) => {
      if ((await change(accounts)) === 'unknown_account') throw unknownAccount(clientId, kind);
      print(sentence);
    });
}
